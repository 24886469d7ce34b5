"""A cross-encoder of sentence-transformers as a scorer: query and passage read together, slow and exact."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trilens.errors import BadInput, BadModel

Floats = NDArray[np.float32]


class CrossEncoderScorer:
    """Scores pairs with a model by name or folder; `raw` scores are those before the model's sigmoid, if it has one."""

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
            raise BadModel(
                f"cross-encoder {model} cannot be loaded ({reason}); expected a folder or a name on the hub"
            ) from error
        self._name = model
        self._settings: dict[str, Any] = {"batch_size": batch_size, "show_progress_bar": False}
        if raw:
            from torch.nn import Identity

            self._settings["activation_fn"] = Identity()

    @property
    def name(self) -> str:
        """As it was given."""
        return self._name

    def score(self, queries: Sequence[str], passages: Sequence[Sequence[str]]) -> list[Floats]:
        """See `Scorer`."""
        pairs = [(query, text) for query, some in zip(queries, passages, strict=True) for text in some]
        if not pairs:
            return [np.empty(0, np.float32) for _ in queries]
        scores = np.asarray(self._model.predict(pairs, **self._settings), np.float32)
        if scores.ndim != 1:
            raise BadModel(f"cross-encoder {self._name} gives {scores.shape[1]} scores per pair; expected one: choose another")
        return np.split(scores, np.cumsum([len(some) for some in passages])[:-1])
