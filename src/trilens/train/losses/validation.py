"""Checks of all losses: computation in at least float32, finite results, and well-formed batches."""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec

import torch
from torch import Tensor

from trilens.errors import BadInput, TrainingFailed

Parameters = ParamSpec("Parameters")


def loss(function: Callable[Parameters, Tensor]) -> Callable[Parameters, Tensor]:
    """Decorate a loss: half-precision tensors become float32, autocast is off, and a non-finite result is an error."""

    @wraps(function)
    def checked(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Tensor:
        device = next((value.device.type for value in _tensors([*args, *kwargs.values()])), "cpu")
        upcast: Any = {name: _upcast(value) for name, value in kwargs.items()}
        with torch.autocast(device, enabled=False):
            value = function(*map(_upcast, args), **upcast)
        if not torch.isfinite(value):
            raise TrainingFailed(
                f"{function.__name__} is {value.item()}; expected a finite number: lower the learning rate, clip gradients, "
                "use bfloat16 instead of float16, or look for texts without tokens"
            )
        return value

    return checked


def require_batch(queries: Tensor, docs: Tensor) -> None:
    """Require queries (queries, …) and docs (queries, group, …), each group with a positive first, then hard negatives."""
    if docs.ndim < 2 or queries.ndim < 1 or len(queries) != len(docs):
        raise BadInput(
            f"queries are {tuple(queries.shape)}, docs {tuple(docs.shape)}; expected a group of docs per query: "
            "(queries, …) and (queries, group, …)"
        )
    if len(queries) == 0:
        raise BadInput("the batch has no queries; expected at least one")
    if docs.shape[1] == 0:
        raise BadInput("the queries have no docs; expected a positive for each, then its negatives")
    if queries.shape[-1] != docs.shape[-1]:
        raise BadInput(f"queries have {queries.shape[-1]} dimensions, docs {docs.shape[-1]}; expected the same")


def require_tokens(queries: Tensor, query_mask: Tensor, docs: Tensor, doc_mask: Tensor) -> None:
    """Require masks that match the token vectors, and at least one token in each query and each positive."""
    require_batch(queries, docs)
    if query_mask.shape != queries.shape[:-1] or doc_mask.shape != docs.shape[:-1] or queries.ndim != 3 or docs.ndim != 4:
        raise BadInput(
            f"queries are {tuple(queries.shape)} with a mask {tuple(query_mask.shape)}, docs {tuple(docs.shape)} with a mask "
            f"{tuple(doc_mask.shape)}; expected (queries, tokens, dims) and (queries, group, tokens, dims), masks without dims"
        )
    _require_some(query_mask, "query")
    _require_some(doc_mask[:, 0], "the positive of query")


def require_scores(student: Tensor, teacher: Tensor) -> None:
    """Require scores of two models for the same groups (queries, group), with a positive and at least one negative."""
    if student.ndim != 2 or student.shape != teacher.shape:
        raise BadInput(
            f"student scores are {tuple(student.shape)}, teacher scores {tuple(teacher.shape)}; expected the same shape, "
            "(queries, group)"
        )
    if len(student) == 0 or student.shape[1] < 2:
        raise BadInput(f"scores are {tuple(student.shape)}; expected at least one query, and at least two docs per query")
    if not torch.isfinite(teacher).all():
        raise BadInput("some teacher scores are not finite; expected a finite score for every doc")


def require_temperature(temperature: float) -> None:
    """Require a positive temperature."""
    if not temperature > 0:
        raise BadInput(f"temperature is {temperature}; expected a number above 0")


def _require_some(mask: Tensor, text: str) -> None:
    if empty := (~mask.bool().any(-1)).nonzero().flatten().tolist():
        raise BadInput(f"{text} {empty[0]} has no unmasked token; expected at least one: leave such texts out")


def _upcast(value: Any) -> Any:
    if isinstance(value, Tensor) and value.dtype in (torch.float16, torch.bfloat16):
        return value.float()
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(_upcast, value))
    return value


def _tensors(values: list[Any]) -> list[Tensor]:
    flat = [part for value in values for part in (value if isinstance(value, tuple) else (value,))]
    return [value for value in flat if isinstance(value, Tensor)]
