"""What an evaluation needs of a dataset, whatever its layout: documents, and for each split queries with what answers them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from trilens.errors import BadInput
from trilens.text.qrels import Qrels
from trilens.text.queries import Queries, Query


@dataclass(frozen=True, slots=True)
class Split:
    """Queries that can be measured: each has judgements in `qrels`, or answers if there are no `qrels`.

    `unjudged` are the ids of queries that have neither; they are not among `queries`.
    """

    name: str
    queries: Queries
    qrels: Qrels
    unjudged: Sequence[str] = ()

    @property
    def answered(self) -> bool:
        """Whether there are answers to look for in what is found."""
        return any(query.answers for query in self.queries.values())

    def texts(self) -> dict[str, str]:
        """What is asked, by query id."""
        return {query_id: query.text for query_id, query in self.queries.items()}

    def languages(self) -> list[str]:
        """Of the queries, sorted; none where they are not known."""
        return sorted({query.language for query in self.queries.values() if query.language})


class Dataset(Protocol):
    """A corpus and its splits. Documents say their language in their metadata, if they do."""

    @property
    def name(self) -> str:
        """For titles and folders."""

    @property
    def sources(self) -> list[Path]:
        """The files or folders of the corpus, as `text.readers.read` takes them."""

    def splits(self) -> list[str]:
        """Names, sorted."""

    def split(self, name: str) -> Split:
        """One of them."""


def judged_queries(dataset: Dataset, split: str) -> tuple[dict[str, str], Qrels]:
    """The texts of a split's queries and their judgements; refused where all there is are answers."""
    found = with_judgements(dataset, split)
    return found.texts(), found.qrels


def with_judgements(dataset: Dataset, split: str) -> Split:
    """A split, refused where all there is are answers."""
    found = dataset.split(split)
    if not found.qrels:
        raise BadInput(f"split {split!r} of {dataset.name} has answers but no judgements; expected a split with judgements")
    return found


def judged_split(name: str, queries: Queries, qrels: Qrels, where: str) -> Split:
    """The queries that have judgements; `where` those are is told if they judge queries that nobody knows."""
    missing = [query_id for query_id in qrels if query_id not in queries]
    if missing:
        raise BadInput(
            f"{where} judges {len(missing)} queries that are not among the queries, such as {missing[0]!r}; "
            "expected both of the same dataset"
        )
    chosen = {query_id: query for query_id, query in queries.items() if query_id in qrels}
    return Split(name, chosen, qrels, [query_id for query_id in queries if query_id not in qrels])


def answered_split(name: str, queries: Queries, where: str) -> Split:
    """The queries that have answers."""
    chosen = {query_id: query for query_id, query in queries.items() if query.answers}
    if not chosen:
        raise BadInput(f"no query of {where} has an answer; expected answers, or judgements: give them with --qrels FILE")
    return Split(name, chosen, {}, [query_id for query_id in queries if query_id not in chosen])


def in_languages(split: Split, languages: Sequence[str]) -> Split:
    """Only the queries in these languages."""
    known = split.languages()
    if unknown := [language for language in languages if language not in known]:
        raise BadInput(
            f"split {split.name!r} has no query in language {unknown[0]!r}; "
            f"expected one of {', '.join(known) or 'none: the data does not tell the languages of its queries'}"
        )
    queries = {query_id: query for query_id, query in split.queries.items() if query.language in languages}
    return replace(split, queries=queries, qrels={query_id: split.qrels[query_id] for query_id in queries if split.qrels})


def with_language(queries: Queries, language: str) -> Queries:
    """The same queries, said to be in this language."""
    return {query_id: Query(query.text, language, query.answers) for query_id, query in queries.items()}
