"""MKQA: questions in 26 languages, with answers to be found in an English corpus.

The folder holds mkqa.jsonl as published, and a corpus. Only the English answers and their aliases are used. Unanswerable
questions and those with a binary or long answer are left out, as in the evaluation of BGE-M3.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trilens.datasets.dataset import Split, answered_split
from trilens.datasets.judged_files import CORPUS_FILES, find_corpus
from trilens.datasets.queries import Queries, Query
from trilens.errors import BadInput
from trilens.read.decode import open_bytes
from trilens.read.jsonlines import read_jsonl
from trilens.read.values import a_list, a_string, an_id, an_object, strings
from trilens.text.files import layout_file, shown

FILE = "mkqa.jsonl"
SPLIT = "test"
EXCLUDED_TYPES = ("unanswerable", "binary", "long_answer")


@dataclass(frozen=True, slots=True)
class Mkqa:
    """An MKQA folder. Query ids consist of language and example id: de:563260143484355911."""

    folder: Path

    def __post_init__(self) -> None:
        if not find_corpus(self.folder):
            raise BadInput(f"{shown(self.folder)} has {FILE} but no corpus; expected {', '.join(CORPUS_FILES)} beside it")

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.resolve().name

    @property
    def sources(self) -> list[Path]:
        """The English corpus."""
        return find_corpus(self.folder)

    def splits(self) -> list[str]:
        """The only split."""
        return [SPLIT]

    def split(self, name: str) -> Split:
        """All questions in all languages."""
        path = layout_file(self.folder, FILE)
        if name != SPLIT or path is None:
            raise BadInput(f"{shown(self.folder)} has no split {name!r}; expected {SPLIT!r}")
        return answered_split(name, _queries(path), shown(path))


def _queries(path: Path) -> Queries:
    queries: Queries = {}
    with open_bytes(path) as stream:
        for record in read_jsonl(stream, shown(path)):
            if isinstance(record, BadInput):
                raise record
            try:
                for query_id, query in _example_queries(an_object(record[1])):
                    if query_id in queries:
                        raise BadInput(f"the query id {query_id!r} was read before; expected unique ids")
                    queries[query_id] = query
            except BadInput as error:
                raise BadInput(f"{record[0]}: {error}") from error
    return queries


def _example_queries(example: dict[str, Any]) -> Iterator[tuple[str, Query]]:
    example_id = an_id(example.get("example_id"), "example_id")
    answers = tuple(_answers(an_object(example.get("answers"))))
    queries = an_object(example.get("queries"))
    for language in queries:
        yield f"{language}:{example_id}", Query(a_string(queries, language), language, answers)


def _answers(by_language: dict[str, Any]) -> list[str]:
    """The texts and aliases of the English answers."""
    texts = []
    for answer in map(an_object, a_list(by_language, "en")):
        if answer.get("type") not in EXCLUDED_TYPES:
            texts += [a_string(answer, "text")] if answer.get("text") is not None else []
            texts += strings(answer, "aliases")
    return list(dict.fromkeys(texts))
