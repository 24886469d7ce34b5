"""Datasets for evaluation, independent of their layout: a corpus, and splits of queries with judgements or answers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from trilens.datasets.qrels import Qrels
from trilens.datasets.queries import Queries, Query
from trilens.errors import BadInput


@dataclass(frozen=True, slots=True)
class Split:
    """Queries to evaluate: each has judgements in `qrels`, or answers if `qrels` is empty.

    `unjudged` has the ids of queries with neither, which are not among `queries`.
    """

    name: str
    queries: Queries
    qrels: Qrels
    unjudged: Sequence[str] = ()

    @property
    def answered(self) -> bool:
        """Whether any query has answers."""
        return any(query.answers for query in self.queries.values())

    def texts(self) -> dict[str, str]:
        """Query texts by id."""
        return {query_id: query.text for query_id, query in self.queries.items()}

    def languages(self) -> list[str]:
        """The languages of the queries, sorted; empty if unknown."""
        return sorted({query.language for query in self.queries.values() if query.language})


class Dataset(Protocol):
    """A corpus and its splits."""

    @property
    def name(self) -> str:
        """The name, for titles and result folders."""

    @property
    def sources(self) -> list[Path]:
        """The files or folders of the corpus, for `text.readers.read`."""

    def splits(self) -> list[str]:
        """The names of the splits, sorted."""

    def split(self, name: str) -> Split:
        """Read a split."""


def judged_queries(dataset: Dataset, split: str) -> tuple[dict[str, str], Qrels]:
    """The query texts and the judgements of a split; an error if it only has answers."""
    judged = with_judgements(dataset, split)
    return judged.texts(), judged.qrels


def with_judgements(dataset: Dataset, split: str) -> Split:
    """Read a split; an error if it only has answers."""
    judged = dataset.split(split)
    if not judged.qrels:
        raise BadInput(f"split {split!r} of {dataset.name} has answers but no judgements; expected a split with judgements")
    return judged


def judged_split(name: str, queries: Queries, qrels: Qrels, where: str) -> Split:
    """A split of the queries with judgements. `where` names the file of judgements in errors."""
    missing = [query_id for query_id in qrels if query_id not in queries]
    if missing:
        raise BadInput(
            f"{where} judges {len(missing)} unknown queries, such as {missing[0]!r}; "
            "expected queries and judgements of the same dataset"
        )
    judged = {query_id: query for query_id, query in queries.items() if query_id in qrels}
    return Split(name, judged, qrels, [query_id for query_id in queries if query_id not in qrels])


def answered_split(name: str, queries: Queries, where: str) -> Split:
    """A split of the queries with answers. `where` names the file of queries in errors."""
    answered = {query_id: query for query_id, query in queries.items() if query.answers}
    if not answered:
        raise BadInput(f"no query of {where} has an answer; expected answers or judgements: give judgements with --qrels FILE")
    return Split(name, answered, {}, [query_id for query_id in queries if query_id not in answered])


def in_languages(split: Split, languages: Sequence[str]) -> Split:
    """Restrict a split to the queries in these languages."""
    known = split.languages()
    if unknown := [language for language in languages if language not in known]:
        raise BadInput(
            f"split {split.name!r} has no query in language {unknown[0]!r}; "
            f"expected one of {', '.join(known) or 'none: the queries have no language'}"
        )
    queries = {query_id: query for query_id, query in split.queries.items() if query.language in languages}
    return replace(split, queries=queries, qrels={query_id: split.qrels[query_id] for query_id in queries if split.qrels})


def with_language(queries: Queries, language: str) -> Queries:
    """Set the language of all queries."""
    return {query_id: Query(query.text, language, query.answers) for query_id, query in queries.items()}
