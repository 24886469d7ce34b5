"""Queries in groups, each measured for itself: by their language, or by how long the documents are that they should find."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from trilens.collection import Collection
from trilens.errors import BadInput
from trilens.evaluate.measures import ByQuery, means
from trilens.text.analysis import AnalysisConfig, Analyzer
from trilens.text.dataset import Split

LONGEST = (64, 128, 256, 512, 1024, 2048, 4096, 8192)
WORDS = Analyzer(AnalysisConfig(language="none", stop_words=False, stem=False))

Labels = dict[str, list[str]]
"""label → query ids"""


@dataclass(frozen=True, slots=True)
class Group:
    """`by` is what the queries have in common, `label` which; measures are means over them."""

    by: str
    label: str
    queries: int
    measures: dict[str, float]


def require_grouping(by: str, splits: Sequence[Split]) -> "Grouping":
    """A grouping by its name, which the data must allow."""
    if by not in GROUPINGS:
        raise BadInput(f"groups are by {by!r}; expected one of {', '.join(GROUPINGS)}")
    for split in splits:
        if by == "language" and not split.languages():
            raise BadInput(
                f"queries of {split.name!r} do not say their language; expected a field lang, or a layout that tells it"
            )
        if by == "length" and not split.qrels:
            raise BadInput(
                f"groups by length need judgements, and {split.name!r} has answers alone; expected relevant documents"
            )
    return GROUPINGS[by]


def measure_groups(by: str, labels: Labels, by_query: ByQuery) -> list[Group]:
    """What each group is worth."""
    return [Group(by, label, len(queries), means(by_query, set(queries))) for label, queries in labels.items()]


def _by_language(split: Split, collection: Collection) -> Labels:
    labels: Labels = {language: [] for language in split.languages()}
    for query_id, query in split.queries.items():
        labels.setdefault(query.language or "unknown", []).append(query_id)
    return labels


def _by_length(split: Split, collection: Collection) -> Labels:
    """By the mean length of the relevant documents, title and text, in words as BM25 cuts them, stop words included."""
    labels: Labels = {label: [] for label in (*_LABELS, "unknown")}
    lengths: dict[str, int | None] = {}
    for query_id in split.queries:
        found = [_length(doc_id, collection, lengths) for doc_id, grade in split.qrels[query_id].items() if grade > 0]
        known = [length for length in found if length is not None]
        labels[_label(fmean(known)) if known else "unknown"].append(query_id)
    return {label: queries for label, queries in labels.items() if queries}


def _length(doc_id: str, collection: Collection, known: dict[str, int | None]) -> int | None:
    """In words; None for a document that the collection does not have."""
    if doc_id not in known:
        document = collection.get(doc_id)
        known[doc_id] = None if document is None else len(WORDS.terms(f"{document.title}\n{document.text}"))
    return known[doc_id]


_LABELS = [
    *(f"{low + 1}–{high} words" for low, high in zip((0, *LONGEST), LONGEST, strict=False)),
    f"more than {LONGEST[-1]} words",
]


def _label(length: float) -> str:
    return next((label for label, longest in zip(_LABELS, LONGEST, strict=False) if length <= longest), _LABELS[-1])


@dataclass(frozen=True, slots=True)
class Grouping:
    """`labels` gives the queries of each group; `title` says in words what the groups are."""

    name: str
    title: str
    labels: Callable[[Split, Collection], Labels]


GROUPINGS = {
    "language": Grouping("language", "the language of the query", _by_language),
    "length": Grouping("length", "the mean length of the relevant documents", _by_length),
}
