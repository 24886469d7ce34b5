"""Cross-encoders as scorers: model folders, and those of sentence-transformers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trilens.encode.cross_encoder import CrossEncoder as FolderEncoder
from trilens.encode.folder import CONFIG_FILE
from trilens.encode.models import cached_models, resolve_model
from trilens.errors import BadInput, BadModel
from trilens.kernels.array_types import Float32s
from trilens.train.negatives.scorers import Scorer


class CrossEncoderScorer:
    """Scores query–passage pairs with a model given by name or folder; `raw` scores skip the model's sigmoid."""

    def __init__(self, model: str, batch_size: int = 32, raw: bool = False) -> None:
        try:
            from sentence_transformers import CrossEncoder
        except ImportError as error:
            raise BadInput(
                f"the cross-encoder {model} needs sentence-transformers, which is not installed; "
                "install it with `pip install trilens[train]`"
            ) from error
        try:
            self._model = CrossEncoder(model)
        except (OSError, ValueError) as error:
            reason = str(error).strip().partition("\n")[0]
            raise BadModel(f"cross-encoder {model} cannot be loaded ({reason}); expected a folder or a hub id") from error
        self._name = model
        self._settings: dict[str, Any] = {"batch_size": batch_size, "show_progress_bar": False}
        if raw:
            from torch.nn import Identity

            self._settings["activation_fn"] = Identity()

    @property
    def name(self) -> str:
        """The name or folder of the model."""
        return self._name

    def score(self, queries: Sequence[str], passages: Sequence[Sequence[str]]) -> list[Float32s]:
        """See `Scorer`."""
        pairs = [(query, text) for query, texts in zip(queries, passages, strict=True) for text in texts]
        if not pairs:
            return [np.empty(0, np.float32) for _ in queries]
        scores = np.asarray(self._model.predict(pairs, **self._settings), np.float32)
        if scores.ndim != 1:
            raise BadModel(f"cross-encoder {self._name} gives {scores.shape[1]} scores per pair; expected one: choose another")
        return np.split(scores, np.cumsum([len(texts) for texts in passages])[:-1])


class FolderScorer:
    """Scores pairs with a model folder, without torch; `raw` scores skip the sigmoid."""

    def __init__(self, path: Path, threads: int | None = None, raw: bool = False) -> None:
        self._encoder, self._raw = FolderEncoder(path, threads), raw

    @property
    def name(self) -> str:
        """The fingerprint of the model."""
        return self._encoder.name

    def score(self, queries: Sequence[str], passages: Sequence[Sequence[str]]) -> list[Float32s]:
        """See `Scorer`."""
        scores = self._encoder.score(queries, passages)
        return scores if self._raw else [(1 / (1 + np.exp(-np.float64(single)))).astype(np.float32) for single in scores]


def open_cross_encoder(model: str, threads: int | None = None, raw: bool = False) -> Scorer:
    """The cross-encoder of a model folder or, for any other folder or a hub id, of sentence-transformers."""
    if model in cached_models() or (Path(model).expanduser() / CONFIG_FILE).is_file():
        return FolderScorer(resolve_model(model), threads, raw)
    return CrossEncoderScorer(model, raw=raw)
