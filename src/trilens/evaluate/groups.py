"""Measures per group of queries: by query language, or by the length of the relevant documents."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from trilens.collection import Collection
from trilens.datasets.dataset import Split
from trilens.errors import BadInput
from trilens.evaluate.measures import ByQuery, means
from trilens.text.analysis import AnalysisConfig, Analyzer

LENGTH_LIMITS = (64, 128, 256, 512, 1024, 2048, 4096, 8192)
WORDS = Analyzer(AnalysisConfig(language="none", stop_words=False, stem=False))

Labels = dict[str, list[str]]
"""label → query ids"""


@dataclass(frozen=True, slots=True)
class GroupResult:
    """Means over one group of queries; `by` is the grouping, `label` the group."""

    by: str
    label: str
    queries: int
    measures: dict[str, float]


def require_grouping(by: str, splits: Sequence[Split]) -> "Grouping":
    """Look up a grouping by name and check that every split supports it."""
    if by not in GROUPINGS:
        raise BadInput(f"grouping is {by!r}; expected one of {', '.join(GROUPINGS)}")
    for split in splits:
        if by == "language" and not split.languages():
            raise BadInput(
                f"queries of {split.name!r} have no language; expected a field lang, or a dataset layout with languages"
            )
        if by == "length" and not split.qrels:
            raise BadInput(f"groups by length need judgements, but {split.name!r} has only answers; expected qrels")
    return GROUPINGS[by]


def measure_groups(by: str, labels: Labels, by_query: ByQuery) -> list[GroupResult]:
    """Means of each group of queries."""
    return [GroupResult(by, label, len(queries), means(by_query, set(queries))) for label, queries in labels.items()]


def _by_language(split: Split, collection: Collection) -> Labels:
    labels: Labels = {language: [] for language in split.languages()}
    for query_id, query in split.queries.items():
        labels.setdefault(query.language or "unknown", []).append(query_id)
    return labels


def _by_length(split: Split, collection: Collection) -> Labels:
    """Group by mean length of the relevant documents (title and text), in tokens of the BM25 tokenizer with stop words."""
    labels: Labels = {label: [] for label in (*_LABELS, "unknown")}
    cache: dict[str, int | None] = {}
    for query_id in split.queries:
        relevant = [doc_id for doc_id, grade in split.qrels[query_id].items() if grade > 0]
        lengths = [length for doc_id in relevant if (length := _length(doc_id, collection, cache)) is not None]
        labels[_label(fmean(lengths)) if lengths else "unknown"].append(query_id)
    return {label: queries for label, queries in labels.items() if queries}


def _length(doc_id: str, collection: Collection, cache: dict[str, int | None]) -> int | None:
    """Length of a document in words; None if the collection does not contain it."""
    if doc_id not in cache:
        document = collection.get(doc_id)
        cache[doc_id] = None if document is None else len(WORDS.terms(f"{document.title}\n{document.text}"))
    return cache[doc_id]


_LABELS = [
    *(f"{low + 1}–{high} words" for low, high in zip((0, *LENGTH_LIMITS), LENGTH_LIMITS, strict=False)),
    f"more than {LENGTH_LIMITS[-1]} words",
]


def _label(length: float) -> str:
    return next((label for label, limit in zip(_LABELS, LENGTH_LIMITS, strict=False) if length <= limit), _LABELS[-1])


@dataclass(frozen=True, slots=True)
class Grouping:
    """A way to group queries; `labels` assigns the queries of a split to groups, `title` describes it to readers."""

    name: str
    title: str
    labels: Callable[[Split, Collection], Labels]


GROUPINGS = {
    "language": Grouping("language", "the language of the query", _by_language),
    "length": Grouping("length", "the mean length of the relevant documents", _by_length),
}
