"""Dev metrics of a model in training: exact search with every head over a small judged collection."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import ir_measures
import numpy as np

from trilens.encode.encoder import Encoded
from trilens.encode.folder import Head
from trilens.errors import BadInput
from trilens.evaluate.measures import depth_of, parse_measure
from trilens.index.exact import exact_dense, exact_multi, exact_sparse, exact_xtr
from trilens.index.term_weighting import PLAIN, weight_docs
from trilens.index.topk import TopK
from trilens.train.data.examples import Examples
from trilens.train.encoder import TorchEncoder

Representation = TypeVar("Representation")
DevHead = Head | Literal["tokens", "retrieved"]
"""A head, or another way to search with a head.

`tokens`: the sparse head's query weights against the token bags of passages. `retrieved`: the multi head scored as in XTR, by
retrieved tokens only.
"""

MEASURES = ("nDCG@10", "RR@10", "R@100", "Hit@1", "Hit@10", "Hit@100")


@dataclass(frozen=True, slots=True)
class DevSet:
    """Queries, passages, and the indices of the relevant passages of each query."""

    queries: Sequence[str]
    passages: Sequence[str]
    relevant: Sequence[frozenset[int]]

    @staticmethod
    def of(examples: Examples, passages: int, seed: int) -> "DevSet":
        """The queries of examples, over their positives and negatives, filled up with random passages to `passages`."""
        if not len(examples):
            raise BadInput("there are no dev examples; expected at least one: raise dev.hold_out, or give dev.source")
        positives = [frozenset(examples.positives(example).tolist()) for example in range(len(examples))]
        needed = set().union(*positives, *(examples.negatives(example).tolist() for example in range(len(examples))))
        others = np.random.default_rng(seed).permutation(examples.passage_count)
        numbers = list(dict.fromkeys([*sorted(needed), *others.tolist()]))[: max(passages, len(needed))]
        index_of = {number: index for index, number in enumerate(numbers)}
        return DevSet(
            [examples.query(example) for example in range(len(examples))],
            [examples.passage(number) for number in numbers],
            [frozenset(index_of[number] for number in relevant) for relevant in positives],
        )


def dev_metrics(
    encoder: TorchEncoder,
    dev: DevSet,
    heads: Sequence[DevHead],
    retrieved: int = 0,
    names: Sequence[str] = MEASURES,
    report: Callable[[int], None] = lambda texts: None,
) -> dict[str, float]:
    """Values by `head:metric`, for every head and measure; `retrieved` is the number of tokens each query token retrieves."""
    measures = by_name(names)
    depth = min(depth_of([*measures.values()]), len(dev.passages))
    wanted = sorted({"sparse" if head == "tokens" else "multi" if head == "retrieved" else head for head in heads})
    passages = encoder.encode_docs(dev.passages, report, heads=wanted)
    queries = encoder.encode_queries(dev.queries, heads=wanted)
    qrels = {str(query): {str(passage): 1 for passage in relevant} for query, relevant in enumerate(dev.relevant)}
    metrics: dict[str, float] = {}
    for head in heads:
        top = search(head, queries, passages, depth, retrieved)
        values = ir_measures.calc_aggregate([*measures.values()], qrels, as_run(top))
        metrics |= {f"{head}:{name}": float(values[measure]) for name, measure in measures.items()}
    return metrics


def by_name(names: Sequence[str]) -> dict[str, Any]:
    """Measures by the names of their metrics. `Hit@k` is `Success@k`: whether a relevant passage is among the first k."""
    parsed = [parse_measure(name.strip().replace("Hit@", "Success@")) for name in names]
    return {str(measure).replace("Success@", "Hit@"): measure for measure in parsed}


def search(head: DevHead, queries: Encoded, passages: Encoded, k: int, retrieved: int) -> TopK:
    """The top-k passages of each query by one head."""
    if head == "dense":
        return exact_dense(_computed(queries.dense), _computed(passages.dense), k)
    if head == "multi":
        return exact_multi(_computed(queries.multi), _computed(passages.multi), k)
    if head == "retrieved":
        return exact_xtr(_computed(queries.multi), _computed(passages.multi), k, retrieved)
    if head == "tokens":
        return exact_sparse(_computed(queries.sparse), weight_docs(passages, "bag", PLAIN), k)
    return exact_sparse(_computed(getattr(queries, head)), _computed(getattr(passages, head)), k)


def as_run(top: TopK) -> Mapping[str, dict[str, float]]:
    """The ranking as an ir-measures run; scores are negative ranks, which keep the order of ties."""
    return {
        str(query): {str(row): -float(rank) for rank, row in enumerate(rows.tolist()) if row >= 0}
        for query, rows in enumerate(top.rows)
    }


def _computed(representation: Representation | None) -> Representation:
    assert representation is not None, "the encoder computes this head"
    return representation
