"""`CrossExport`: the export of a cross-encoder, a sequence classifier of transformers with one output."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from trilens.encode.cross_encoder import CrossEncoder
from trilens.encode.cross_folder import CrossConfig
from trilens.encode.folder import CONFIG_FILE, CROSS_ENCODER, WEIGHT_FILES
from trilens.encode.pair_reading import PairReading
from trilens.encode.tokens import Tokens
from trilens.errors import BadInput, BadModel
from trilens.export.bert import NAMES, Bert
from trilens.export.calibrate import calibrate
from trilens.export.calibration_texts import LONGEST, CalibrationTexts, read_pairs, sample_pairs, thin
from trilens.export.card import PRECISIONS
from trilens.export.check import LARGEST_DIFFERENCE, TEXTS, original_scores
from trilens.export.checkpoint import CONFIG, Checkpoint, read_json
from trilens.export.describe import NOT_STATED, ExportOptions
from trilens.export.encoder_graph import EncoderGraph
from trilens.export.heads import HeadWeights, PerToken, ScoreWeights
from trilens.export.layers import TYPES
from trilens.export.source import Source, copy_texts
from trilens.export.tower import Steps, require_embeddings
from trilens.kernels.array_types import Float32s

CLASSIFIER = "ForSequenceClassification"
TOKENIZER_CONFIG = "tokenizer_config.json"
LEAST_CORRELATION = 0.98  # for 8 bits


class HeadNames(NamedTuple):
    """The tensors of a classifier: the layer with an activation, and the one with the output."""

    dense: str = "classifier.dense"
    out: str = "classifier.out_proj"
    activation: Any = "Tanh"


HEADS = {"bert": HeadNames("pooler.dense", "classifier"), "distilbert": HeadNames("pre_classifier", "classifier", "Relu")}
"""By model type; the others are like RoBERTa."""


@dataclass(frozen=True)
class ScoreAgreement:
    """Agreement of the scores with the original: their correlation, and the largest difference of two scores."""

    correlation: float
    difference: float

    def __str__(self) -> str:
        return f"scores: correlation with the original {self.correlation:.5f}; largest difference {self.difference:.1e}"


def scores_pairs(source: Path) -> bool:
    """Whether a folder holds a sequence classifier."""
    if not (source / CONFIG).is_file():
        return False
    names = read_json(source / CONFIG).get("architectures") or []
    return any(isinstance(name, str) and name.endswith(CLASSIFIER) for name in names)


class CrossExport:
    """The export of one cross-encoder."""

    def __init__(self, source: Path, name: str, options: ExportOptions, texts: Path | None, steps: Steps) -> None:
        if given := options.for_plain:
            raise BadInput(f"{source} is a cross-encoder, to which {', '.join(given)} does not apply; leave it out")
        self._source, self._texts, self._steps = Source(source), CalibrationTexts(texts), steps
        checkpoint = Checkpoint(source)
        if checkpoint.model_type not in NAMES:
            raise BadModel(f"{source} has model_type {checkpoint.model_type!r}; expected one of {', '.join(NAMES)}")
        settings = read_json(source / TOKENIZER_CONFIG) if (source / TOKENIZER_CONFIG).is_file() else {}
        self._encoder = Bert(checkpoint, pairs=TYPES in settings.get("model_input_names", [TYPES]))
        self._tokens = Tokens(self._source.tokenizer)
        require_embeddings(self._tokens, self._encoder)
        self._head = read_head(self._encoder)
        longest = longest_pair(settings.get("model_max_length"), self._encoder)
        self.config = CrossConfig(
            kind=CROSS_ENCODER,
            name=name,
            max_tokens=longest,
            max_query_tokens=longest // 2,
            token_types=TYPES in self._encoder.reads,
            precision=options.precision,
            licence=options.licence or NOT_STATED,
            source=options.source or source.resolve().name,
        )

    def write(self, folder: Path) -> None:
        """Write everything but the model card."""
        (folder / CONFIG_FILE).write_text(self.config.model_dump_json(indent=2) + "\n", encoding="utf-8")
        copy_texts(self._source, folder)
        precision = self.config.precision
        graph = EncoderGraph(
            self._encoder,
            "cls",
            precision,
            self._ranges() if precision == "int8" else {},
            HeadWeights(dense=None, score=self._head),
        )
        (folder / WEIGHT_FILES[precision == "float32"]).write_bytes(graph.model())

    def check(self, folder: Path) -> list[ScoreAgreement]:
        """Compare the written folder with torch; insufficient agreement is an error."""
        pairs = sample_pairs(thin(self._texts.all, TEXTS))
        actual = CrossEncoder(folder).score_pairs(pairs)
        reading = PairReading.of(self._tokens, self.config)
        expected = original_scores(self._source.backbone, reading, pairs, self.config.token_types)
        agreement = agree(actual, expected)
        require_agreement(agreement, self.config)
        return [agreement]

    def card(self, sizes: dict[str, int], agreements: Sequence[ScoreAgreement] | None) -> str:
        """The model card."""
        config = self.config
        files = "\n".join(f"| {name} | {size / 1e3:,.0f} kB |" for name, size in sizes.items())
        checked = "".join(str(agreement) for agreement in agreements or ()) or "not checked against the original"
        return f"""# {config.name}

A cross-encoder, exported by `trilens export`. Source: {config.source}. Licence: {config.licence}.

{PRECISIONS[config.precision]}
A pair is truncated to {config.max_tokens} tokens, of which the query has at most {config.max_query_tokens}.

{checked[0].upper()}{checked[1:]}.

| file | size |
|---|---:|
{files}
"""

    def _ranges(self) -> Any:
        reading = PairReading(self._tokens, min(LONGEST, self.config.max_tokens), self.config.max_query_tokens)
        inputs = read_pairs(reading, sample_pairs(self._texts.all), self.config.token_types)
        with self._steps("choosing ranges", 4 * self._encoder.layers) as advance:
            return calibrate(self._encoder, inputs, advance)


def read_head(encoder: Bert) -> ScoreWeights:
    """The classifier of a checkpoint, which must have one output."""
    checkpoint = encoder.checkpoint
    names = HEADS.get(checkpoint.model_type, HeadNames())
    outputs = len(checkpoint.tensor(f"{names.out}.weight", -1, encoder.dim))
    if outputs != 1:
        raise BadModel(f"{checkpoint.folder} classifies texts into {outputs}; expected one output, the score of a pair")
    dense = checkpoint.matrix(names.dense, encoder.dim, encoder.dim), checkpoint.tensor(f"{names.dense}.bias", encoder.dim)
    out = PerToken(checkpoint.matrix(names.out, encoder.dim, 1), checkpoint.tensor(f"{names.out}.bias", 1))
    return ScoreWeights(dense, names.activation, out)


def longest_pair(stated: Any, encoder: Bert) -> int:
    """The longest pair in tokens: as the tokenizer states, at most the positions of the encoder."""
    positions = encoder.longest or LONGEST
    return min(positions, stated) if isinstance(stated, int) and stated > 0 else positions


def agree(actual: Float32s, expected: Float32s) -> ScoreAgreement:
    """The agreement of two lists of scores; equal ones agree."""
    difference = float(np.abs(actual - expected).max(initial=0))
    constant = len(actual) < 2 or not actual.std() or not expected.std()
    correlation = float(not difference) if constant else float(np.corrcoef(actual, expected)[0, 1])
    return ScoreAgreement(correlation, difference / max(1.0, float(np.abs(expected).max(initial=0))))


def require_agreement(agreement: ScoreAgreement, config: CrossConfig) -> None:
    """Require that the folder computes the same as its original, within tolerances."""
    if config.precision == "float32" and not agreement.difference <= LARGEST_DIFFERENCE:
        raise BadModel(
            f"scores differ from the original by {agreement.difference:.2g}; expected at most {LARGEST_DIFFERENCE}: the folder "
            "was not written"
        )
    if not agreement.correlation >= LEAST_CORRELATION:
        raise BadModel(
            f"scores have a correlation of {agreement.correlation:.4f} with the original; expected at least "
            f"{LEAST_CORRELATION}: the folder was not written, choose another --precision or --texts closer to your data"
        )
