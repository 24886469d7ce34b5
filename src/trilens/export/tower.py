"""`Tower`: one encoder of an export: reads or fits its heads, calibrates it, and writes its graphs."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import numpy as np

from trilens.encode.folder import SPARSE_FILE, WEIGHT_FILES, ModelConfig
from trilens.encode.tokens import Tokens
from trilens.errors import BadModel
from trilens.export.backbone import BackboneWriter, open_backbone
from trilens.export.calibrate import Advance, calibrate, token_states
from trilens.export.calibration_texts import CalibrationTexts, read_docs, read_queries
from trilens.export.describe import ExportOptions, describe
from trilens.export.encoder_graph import EncoderGraph
from trilens.export.fit import clip_vocabulary, fit_heads
from trilens.export.heads import DenseWeights, HeadWeights, read_heads
from trilens.export.published import require_no_more
from trilens.export.quantisation import Range
from trilens.export.source import Source
from trilens.export.sparse_graph import SparseHeadGraph
from trilens.kernels.array_types import Float32s

Steps = Callable[[str, int], AbstractContextManager[Advance]]
"""Called with the name of a task and its number of parts; yields a callback that counts finished parts."""


class Tower:
    """One encoder. Calibration texts are only read if something has to be fitted to them."""

    def __init__(self, source: Source, texts: CalibrationTexts, steps: Steps) -> None:
        self.source, self._texts, self._steps = source, texts, steps
        self.tokens = Tokens(source.tokenizer)
        self.backbone = open_backbone(source.backbone)
        require_embeddings(self.tokens, self.backbone)

    def describe(self, options: ExportOptions, name: str) -> ModelConfig:
        """The config of a folder called `name` with this encoder. To lose tensors of a plain one, `dense` has to be chosen."""
        if self.source.heads is None and not options.heads:
            require_no_more(self.backbone.checkpoint)
        return describe(options, name, self.source, self.backbone.dim, self.backbone.longest, self.tokens)

    def write(self, folder: Path, config: ModelConfig, heads: HeadWeights) -> None:
        """Write the graphs that `config` describes."""
        weights = folder / (WEIGHT_FILES[1] if config.precision == "float32" else WEIGHT_FILES[0])
        ranges = self._ranges(config) if config.precision == "int8" else {}
        graph = EncoderGraph(self.backbone, config.pooling, config.precision, ranges, heads)
        weights.write_bytes(graph.model())
        if heads.sparse is not None:
            vocabulary = SparseHeadGraph(config.precision, heads.sparse, graph)
            (folder / SPARSE_FILE).write_bytes(vocabulary.model(weights))

    def heads(self, config: ModelConfig) -> HeadWeights:
        """The heads that `config` describes, trained or fitted."""
        if self.source.heads is not None:
            heads = read_heads(self.source.heads, config, self.backbone.dim)
            if heads.sparse is not None and config.precision == "int8":
                heads = replace(heads, sparse=clip_vocabulary(heads.sparse, self._states(config), self.backbone.words))
            return heads
        dense = DenseWeights(normalised=config.dense is None)
        if config.heads == ["dense"]:
            return HeadWeights(dense)
        ids = [text.ids for text in read_docs(self.tokens, config, self._texts.all)]
        special = set(np.flatnonzero(self.tokens.special).tolist())
        fitted = fit_heads(config, self._states(config), ids, special, self.backbone.words, self.backbone.epsilon)
        return replace(fitted, dense=dense)

    def _ranges(self, config: ModelConfig) -> dict[str, Range]:
        texts = self._texts.all
        inputs = [*read_docs(self.tokens, config, texts), *read_queries(self.tokens, config, texts)]
        with self._steps("choosing ranges", 4 * self.backbone.layers) as advance:
            return calibrate(self.backbone, inputs, advance)

    def _states(self, config: ModelConfig) -> list[Float32s]:
        inputs = read_docs(self.tokens, config, self._texts.all)
        with self._steps("reading texts", len(inputs)) as advance:
            return token_states(self.backbone, inputs, advance)


def require_embeddings(tokens: Tokens, backbone: BackboneWriter) -> None:
    """Require an embedding for every token; more embeddings than tokens are common."""
    if tokens.size > len(backbone.words):
        raise BadModel(
            f"{tokens.file} has {tokens.size:,} tokens, the encoder {len(backbone.words):,} word embeddings; "
            "expected at least as many: tokenizer and encoder do not belong together"
        )
