"""What all losses hold to: sums in float32 or better, no loss that is not a number, no group without a positive."""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec

import torch
from torch import Tensor

from trilens.errors import BadInput, TrainingFailed

Parameters = ParamSpec("Parameters")


def loss(function: Callable[Parameters, Tensor]) -> Callable[Parameters, Tensor]:
    """Call with half-precision tensors raised to float32 and autocast off; raise if the result is not a finite number."""

    @wraps(function)
    def checked(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Tensor:
        device = next((value.device.type for value in _tensors([*args, *kwargs.values()])), "cpu")
        raised: Any = {name: _raised(value) for name, value in kwargs.items()}
        with torch.autocast(device, enabled=False):
            found = function(*map(_raised, args), **raised)
        if not torch.isfinite(found):
            raise TrainingFailed(
                f"{function.__name__} is {found.item()}; expected a finite number: lower the learning rate, clip gradients, "
                "use bfloat16 instead of float16, or look for texts without tokens"
            )
        return found

    return checked


def require_batch(queries: Tensor, docs: Tensor) -> None:
    """Queries (queries, …) and docs (queries, group, …): the positive of each query first, then its hard negatives, if any."""
    if docs.ndim < 2 or queries.ndim < 1 or len(queries) != len(docs):
        raise BadInput(
            f"queries are {tuple(queries.shape)}, docs {tuple(docs.shape)}; expected a group of docs for each query: "
            "(queries, …) and (queries, group, …)"
        )
    if len(queries) == 0:
        raise BadInput("the batch has no queries; expected at least one")
    if docs.shape[1] == 0:
        raise BadInput("the queries have no docs; expected the positive of each, then its negatives")
    if queries.shape[-1] != docs.shape[-1]:
        raise BadInput(f"queries have {queries.shape[-1]} dimensions, docs {docs.shape[-1]}; expected the same")


def require_tokens(queries: Tensor, query_mask: Tensor, docs: Tensor, doc_mask: Tensor) -> None:
    """Masks that fit (queries, tokens, dims) and (queries, group, tokens, dims); queries and positives have some token."""
    require_batch(queries, docs)
    if query_mask.shape != queries.shape[:-1] or doc_mask.shape != docs.shape[:-1] or queries.ndim != 3 or docs.ndim != 4:
        raise BadInput(
            f"queries are {tuple(queries.shape)} with a mask {tuple(query_mask.shape)}, docs {tuple(docs.shape)} with a mask "
            f"{tuple(doc_mask.shape)}; expected (queries, tokens, dims) and (queries, group, tokens, dims), masks without dims"
        )
    _require_some(query_mask, "query")
    _require_some(doc_mask[:, 0], "the positive of query")


def require_scores(student: Tensor, teacher: Tensor) -> None:
    """Scores of two models for the same groups: (queries, group), the positive first and at least one other."""
    if student.ndim != 2 or student.shape != teacher.shape:
        raise BadInput(
            f"student scores are {tuple(student.shape)}, teacher scores {tuple(teacher.shape)}; expected the same shape, "
            "(queries, group)"
        )
    if len(student) == 0 or student.shape[1] < 2:
        raise BadInput(f"scores are {tuple(student.shape)}; expected at least one query and two docs for each, to compare them")
    if not torch.isfinite(teacher).all():
        raise BadInput("some teacher scores are not finite numbers; expected a score for every doc")


def require_temperature(temperature: float) -> None:
    """Scores are divided by it."""
    if not temperature > 0:
        raise BadInput(f"temperature is {temperature}; expected a number above 0")


def _require_some(mask: Tensor, what: str) -> None:
    if lacking := (~mask.bool().any(-1)).nonzero().flatten().tolist():
        raise BadInput(f"{what} {lacking[0]} has no token that counts; expected at least one: leave such texts out")


def _raised(value: Any) -> Any:
    if isinstance(value, Tensor) and value.dtype in (torch.float16, torch.bfloat16):
        return value.float()
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(_raised, value))
    return value


def _tensors(values: list[Any]) -> list[Tensor]:
    flat = [part for value in values for part in (value if isinstance(value, tuple) else (value,))]
    return [value for value in flat if isinstance(value, Tensor)]
