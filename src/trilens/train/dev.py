"""Measures of a model in training: every head searches a small judged collection exactly."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import ir_measures
import numpy as np
from ir_measures import RR, R, Success, nDCG

from trilens.encode.encoder import Encoded
from trilens.encode.folder import Head
from trilens.errors import BadInput
from trilens.index.exact import exact_dense, exact_multi, exact_sparse, exact_xtr
from trilens.index.topk import TopK
from trilens.index.weighing import PLAIN, weigh_docs
from trilens.train.data.examples import Examples
from trilens.train.encoder import TorchEncoder

Representation = TypeVar("Representation")
Searched = Head | Literal["tokens", "retrieved"]
"""A head, or a head searched in another way.

`tokens` is the sparse head's queries against bare tokens of the passages; `retrieved` the multi head's token vectors as XTR
scores them, by retrieved tokens alone.
"""

MEASURES = (nDCG @ 10, RR @ 10, R @ 100, Success @ 1, Success @ 10, Success @ 100)
NAMES = {str(measure): str(measure).replace("Success@", "Hit@") for measure in MEASURES}
DEPTH = 100


@dataclass(frozen=True, slots=True)
class DevSet:
    """Questions, passages, and the places of the right passages of each question."""

    queries: Sequence[str]
    passages: Sequence[str]
    right: Sequence[frozenset[int]]

    @staticmethod
    def of(examples: Examples, passages: int, seed: int) -> "DevSet":
        """The questions of examples over their own positives and negatives, and others at random up to so many passages."""
        if not len(examples):
            raise BadInput("there are no examples to measure with; expected some: raise dev.hold_out, or give dev.source")
        positives = [frozenset(examples.positives(at).tolist()) for at in range(len(examples))]
        needed = set().union(*positives, *(examples.negatives(at).tolist() for at in range(len(examples))))
        others = np.random.default_rng(seed).permutation(examples.passage_count)
        chosen = list(dict.fromkeys([*sorted(needed), *others.tolist()]))[: max(passages, len(needed))]
        place = {number: at for at, number in enumerate(chosen)}
        return DevSet(
            [examples.query(at) for at in range(len(examples))],
            [examples.passage(number) for number in chosen],
            [frozenset(place[number] for number in found) for found in positives],
        )


def measure(
    encoder: TorchEncoder,
    dev: DevSet,
    heads: Sequence[Searched],
    retrieved: int = 0,
    report: Callable[[int], None] = lambda texts: None,
) -> dict[str, float]:
    """`head:measure` → value, for every head and measure; `retrieved` is how many tokens each query token retrieves."""
    wanted = sorted({"sparse" if head == "tokens" else "multi" if head == "retrieved" else head for head in heads})
    passages = encoder.encode_docs(dev.passages, report, heads=wanted)
    queries = encoder.encode_queries(dev.queries, heads=wanted)
    qrels = {str(at): {str(place): 1 for place in right} for at, right in enumerate(dev.right)}
    found: dict[str, float] = {}
    for head in heads:
        top = search(head, queries, passages, min(DEPTH, len(dev.passages)), retrieved)
        values = ir_measures.calc_aggregate(MEASURES, qrels, as_run(top))
        found |= {f"{head}:{NAMES[str(name)]}": float(values[name]) for name in MEASURES}
    return found


def search(head: Searched, queries: Encoded, passages: Encoded, k: int, retrieved: int) -> TopK:
    """The k best passages of each query by one head."""
    if head == "dense":
        return exact_dense(_there(queries.dense), _there(passages.dense), k)
    if head == "multi":
        return exact_multi(_there(queries.multi), _there(passages.multi), k)
    if head == "retrieved":
        return exact_xtr(_there(queries.multi), _there(passages.multi), k, retrieved)
    if head == "tokens":
        return exact_sparse(_there(queries.sparse), weigh_docs(passages, "bag", PLAIN), k)
    return exact_sparse(_there(getattr(queries, head)), _there(getattr(passages, head)), k)


def as_run(top: TopK) -> Mapping[str, dict[str, float]]:
    """In the form that ir-measures reads; of equal scores the first place wins, as in the ranking."""
    return {
        str(query): {str(row): -float(rank) for rank, row in enumerate(rows.tolist()) if row >= 0}
        for query, rows in enumerate(top.rows)
    }


def _there(found: Representation | None) -> Representation:
    assert found is not None, "the encoder was asked for this head"
    return found
