"""`CrossEncoderScorer`: a sentence-transformers cross-encoder as a scorer."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from trilens.errors import BadInput, BadModel
from trilens.kernels.array_types import Float32s


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
