"""MTEB: an encoder of trilens as a model that MTEB evaluates. The extra `trilens[mteb]` installs mteb, which needs torch.

mteb.evaluate(MtebEncoder("trilens-mini"), tasks)
"""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from trilens.encode.model import HeadsEncoder
from trilens.encode.models import resolve_model
from trilens.encode.onnx import OnnxEncoder
from trilens.errors import BadInput
from trilens.extras import needs_extra
from trilens.kernels.array_types import Float32s
from trilens.represent import Dense

with needs_extra("mteb"):
    from mteb.models.abs_encoder import AbsEncoder
    from mteb.models.model_meta import ModelMeta, ScoringFunction
    from mteb.types import PromptType


class MtebEncoder(AbsEncoder):
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
        if isinstance(model_name, str):
            folder = resolve_model(model_name)
            name, encoder = folder.name, cast(HeadsEncoder, OnnxEncoder(folder, threads=threads, heads=["dense"]))
        else:
            name, encoder = type(model_name).__name__, model_name
        if "dense" not in encoder.heads:
            raise BadInput(f"model {encoder.fingerprint} has the heads {', '.join(encoder.heads)}; expected dense")
        self.model: HeadsEncoder = encoder
        self.mteb_model_meta = ModelMeta.create_empty(
            overwrites={
                "name": f"trilens/{name}",
                "revision": revision or encoder.fingerprint,
                "similarity_fn_name": ScoringFunction.DOT_PRODUCT,
            }
        )

    def encode(self, inputs: Iterable[Mapping[str, Any]], *, prompt_type: PromptType | None = None, **kwargs: Any) -> Float32s:
        """The vectors (texts, dimensions) of all batches."""
        encode = self.model.encode_queries if prompt_type == PromptType.query else self.model.encode_docs
        parts = [encode(_texts(batch), heads=["dense"]).dense for batch in inputs]
        return Dense.concat([part for part in parts if part is not None]).vectors


def _texts(batch: Mapping[str, Any]) -> list[str]:
    """The texts of a batch; documents with a title as indexes encode them."""
    if "title" not in batch or "body" not in batch:
        return list(batch["text"])
    return [f"{title}\n{body}" if title else body for title, body in zip(batch["title"], batch["body"], strict=True)]
