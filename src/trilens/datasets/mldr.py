"""MLDR: retrieval of long documents in 13 languages, each with its own corpus and queries.

The folder of a language holds corpus.jsonl and one file of queries per split, such as test.jsonl, plain or compressed. Its
name ends in the language: mldr-v1.0-de. The parent folder of several languages is accepted too.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trilens.datasets.dataset import Split, judged_split
from trilens.datasets.judged_files import choose_language
from trilens.datasets.qrels import Qrels
from trilens.datasets.queries import Queries, Query
from trilens.errors import BadInput
from trilens.read.decode import open_bytes
from trilens.read.jsonlines import read_jsonl
from trilens.read.values import a_list, a_string, an_id, an_object
from trilens.text.files import layout_file, shown

SPLITS = ("train", "dev", "test")
CORPUS = "corpus.jsonl"
GRADES = {"positive_passages": 1, "negative_passages": 0}


@dataclass(frozen=True, slots=True)
class Mldr:
    """The MLDR folder of one language."""

    folder: Path
    language: str = ""

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.resolve().name

    @property
    def sources(self) -> list[Path]:
        """The corpus file."""
        return [layout_file(self.folder, CORPUS) or self.folder / CORPUS]

    def splits(self) -> list[str]:
        """The splits with a file, sorted."""
        return sorted(name for name in SPLITS if layout_file(self.folder, f"{name}.jsonl"))

    def split(self, name: str) -> Split:
        """Read a split. The positive and negative passages of the queries are the judgements."""
        path = layout_file(self.folder, f"{name}.jsonl") if name in self.splits() else None
        if path is None:
            known = ", ".join(map(repr, self.splits()))
            raise BadInput(f"{shown(self.folder)} has no split {name!r}; expected one of {known}")
        queries, qrels = _read(path, self.language)
        return judged_split(name, queries, qrels, shown(path))


def find_mldr(folder: Path, language: str | None) -> Mldr | None:
    """The dataset in a folder, or in its subfolder of the language; None if the layout is another."""
    if _is_mldr(folder):
        return Mldr(folder, _language(folder))
    subfolders = {_language(path): path for path in sorted(folder.glob("*-*")) if path.is_dir() and _is_mldr(path)}
    if not subfolders:
        return None
    language = choose_language(folder, sorted(subfolders), language)
    return Mldr(subfolders[language], language)


def _is_mldr(folder: Path) -> bool:
    """Unlike in other layouts with a corpus.jsonl, the first query has its relevant passages beside it."""
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
    """The language in the folder name: de for mldr-v1.0-de."""
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
                    raise BadInput(f"the query id {query_id!r} was read before; expected unique ids")
                queries[query_id], qrels[query_id] = Query(a_string(value, "query"), language), _judgements(value)
            except BadInput as error:
                raise BadInput(f"{record[0]}: {error}") from error
    if not queries:
        raise BadInput(f"{shown(path)} holds no query; expected lines with query_id, query and positive_passages")
    return queries, qrels


def _judgements(record: dict[str, Any]) -> dict[str, int]:
    """Grades by passage id. A passage that is both positive and negative is relevant."""
    grades: dict[str, int] = {}
    for name, grade in GRADES.items():
        for passage in map(an_object, a_list(record, name)):
            grades.setdefault(an_id(passage.get("docid"), "docid"), grade)
    return grades
