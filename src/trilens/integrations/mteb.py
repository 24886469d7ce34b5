"""MTEB: an encoder of trilens as a model that MTEB evaluates. The extra `trilens[mteb]` installs mteb, which needs torch.

mteb.evaluate(TrilensEncoder("trilens-mini"), tasks)
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from trilens.encode.model import HeadsEncoder
from trilens.encode.models import resolve_model
from trilens.encode.onnx import OnnxEncoder
from trilens.errors import BadInput
from trilens.integrations.extra import needs_extra
from trilens.kernels.array_types import Float32s

with needs_extra("mteb"):
    from mteb.models.abs_encoder import AbsEncoder
    from mteb.models.model_meta import ModelMeta, ScoringFunction
    from mteb.types import PromptType


class TrilensEncoder(AbsEncoder):
    """The dense head of a model; in tasks without queries all texts are encoded as documents."""

    def __init__(
        self,
        model_name: str | HeadsEncoder,
        revision: str | None = None,
        *,
        device: str | None = None,
        threads: int | None = None,
        **kwargs: Any,
    ) -> None:
        """`model_name` is a model folder or the name of one, or an encoder. The model runs on the CPU."""
        named = isinstance(model_name, str)
        self.model = OnnxEncoder(resolve_model(model_name), threads=threads, heads=["dense"]) if named else model_name
        if "dense" not in self.model.heads:
            raise BadInput(f"model {self.model.fingerprint} has the heads {', '.join(self.model.heads)}; expected dense")
        name = resolve_model(model_name).name if named else type(model_name).__name__
        self.mteb_model_meta = ModelMeta.create_empty(
            overwrites={
                "name": f"trilens/{name}",
                "revision": revision or self.model.fingerprint,
                "similarity_fn_name": ScoringFunction.DOT_PRODUCT,
            }
        )

    def encode(self, inputs: Iterable[Mapping[str, Any]], *, prompt_type: PromptType | None = None, **kwargs: Any) -> Float32s:
        """The vectors (texts, dimensions) of all batches."""
        encode = self.model.encode_queries if prompt_type == PromptType.query else self.model.encode_docs
        return np.concatenate([encode(_texts(batch), heads=["dense"]).dense.vectors for batch in inputs])


def _texts(batch: Mapping[str, Any]) -> list[str]:
    """The texts of a batch; documents with a title as indexes encode them."""
    if "title" not in batch or "body" not in batch:
        return list(batch["text"])
    return [f"{title}\n{body}" if title else body for title, body in zip(batch["title"], batch["body"], strict=True)]
