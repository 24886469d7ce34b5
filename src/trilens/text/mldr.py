"""MLDR: long documents in 13 languages, each language with a corpus and queries of its own.

A folder with corpus.jsonl and a file of queries for each split, test.jsonl for one, plain or compressed; or the folder that
holds such folders, named after their languages: mldr-v1.0-de.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trilens.errors import BadInput
from trilens.text.dataset import Split, judged_split
from trilens.text.decode import open_bytes
from trilens.text.files import layout_file, shown
from trilens.text.jsonlines import read_jsonl
from trilens.text.judged_files import choose_language
from trilens.text.qrels import Qrels
from trilens.text.queries import Queries, Query
from trilens.text.values import a_list, a_string, an_id, an_object

SPLITS = ("train", "dev", "test")
CORPUS = "corpus.jsonl"
GRADES = {"positive_passages": 1, "negative_passages": 0}


@dataclass(frozen=True, slots=True)
class Mldr:
    """The folder of one language."""

    folder: Path
    language: str = ""

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.resolve().name

    @property
    def sources(self) -> list[Path]:
        """The file of documents."""
        return [layout_file(self.folder, CORPUS) or self.folder / CORPUS]

    def splits(self) -> list[str]:
        """Those that have a file, sorted."""
        return sorted(name for name in SPLITS if layout_file(self.folder, f"{name}.jsonl"))

    def split(self, name: str) -> Split:
        """Queries, with the documents that came with them as judgements."""
        path = layout_file(self.folder, f"{name}.jsonl") if name in self.splits() else None
        if path is None:
            known = ", ".join(map(repr, self.splits()))
            raise BadInput(f"{shown(self.folder)} has no split {name!r}; choose one of those it has: {known}")
        queries, qrels = _read(path, self.language)
        return judged_split(name, queries, qrels, shown(path))


def find_mldr(folder: Path, language: str | None) -> Mldr | None:
    """The corpus and queries in a folder, or in the one of its folders that is named after the language."""
    if _is_mldr(folder):
        return Mldr(folder, _language(folder))
    inner = {_language(path): path for path in sorted(folder.glob("*-*")) if path.is_dir() and _is_mldr(path)}
    if not inner:
        return None
    chosen = choose_language(folder, sorted(inner), language)
    return Mldr(inner[chosen], chosen)


def _is_mldr(folder: Path) -> bool:
    """The queries tell it from the other layouts with a corpus.jsonl: their first line brings its documents."""
    if layout_file(folder, CORPUS) is None:
        return False
    paths = (layout_file(folder, f"{name}.jsonl") for name in SPLITS)
    path = next((path for path in paths if path is not None), None)
    if path is None:
        return False
    with open_bytes(path) as stream:
        first = next(read_jsonl(stream, shown(path)), None)
    return isinstance(first, tuple) and isinstance(first[1], dict) and "positive_passages" in first[1]


def _language(folder: Path) -> str:
    """de of mldr-v1.0-de."""
    _, dash, language = folder.resolve().name.rpartition("-")
    return language if dash else ""


def _read(path: Path, language: str) -> tuple[Queries, Qrels]:
    queries: Queries = {}
    qrels: Qrels = {}
    with open_bytes(path) as stream:
        for record in read_jsonl(stream, shown(path)):
            if isinstance(record, BadInput):
                raise record
            try:
                value = an_object(record[1])
                query_id = an_id(value.get("query_id"), "query_id")
                if query_id in queries:
                    raise BadInput(f"the query id {query_id!r} was read before; expected every id once")
                queries[query_id], qrels[query_id] = Query(a_string(value, "query"), language), _judged(value)
            except BadInput as error:
                raise BadInput(f"{record[0]}: {error}") from error
    if not queries:
        raise BadInput(f"{shown(path)} holds no query; expected lines with query_id, query and positive_passages")
    return queries, qrels


def _judged(record: dict[str, Any]) -> dict[str, int]:
    """Relevant are the positive passages; a passage that is both is relevant."""
    found: dict[str, int] = {}
    for name, grade in GRADES.items():
        for passage in map(an_object, a_list(record, name)):
            found.setdefault(an_id(passage.get("docid"), "docid"), grade)
    return found
