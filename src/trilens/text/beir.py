"""The BEIR layout as a value: a corpus, its queries, and for each split the judgements."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trilens.errors import BadInput
from trilens.text.decode import Place, TextLines, open_bytes
from trilens.text.files import layout_file, shown
from trilens.text.jsonlines import read_jsonl
from trilens.text.records import AUTOMATIC, to_document

Qrels = dict[str, dict[str, int]]
"""query id → doc id → how relevant; 0 and less mean that it was judged and is not."""


@dataclass(frozen=True, slots=True)
class Beir:
    """A folder with corpus.jsonl, queries.jsonl and qrels/<split>.tsv; files are read when asked for."""

    folder: Path

    def __post_init__(self) -> None:
        if layout_file(self.folder, "corpus.jsonl") is None:
            raise BadInput(f"{shown(self.folder)} has no corpus.jsonl; expected a folder in the BEIR layout")

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.resolve().name

    @property
    def corpus_path(self) -> Path:
        """The file of documents."""
        return layout_file(self.folder, "corpus.jsonl") or self.folder / "corpus.jsonl"

    def splits(self) -> list[str]:
        """The names of the judgement files, sorted."""
        return sorted(path.stem for path in (self.folder / "qrels").glob("*.tsv") if path.is_file())

    def qrels(self, split: str) -> Qrels:
        """The judgements of a split, in file order."""
        return read_qrels(self._qrels_path(split))

    def queries(self, split: str) -> dict[str, str]:
        """The queries that have judgements in this split, in the order of queries.jsonl."""
        judged = self.qrels(split)
        queries = {query_id: text for query_id, text in self.all_queries().items() if query_id in judged}
        missing = [query_id for query_id in judged if query_id not in queries]
        if missing:
            raise BadInput(
                f"{shown(self._qrels_path(split))} judges {len(missing)} queries that are not in queries.jsonl, "
                f"such as {missing[0]!r}; expected both files of the same dataset"
            )
        return queries

    def _qrels_path(self, split: str) -> Path:
        splits = self.splits()
        if split not in splits:
            known = ", ".join(map(repr, splits)) or "none: there is no qrels/<split>.tsv"
            raise BadInput(f"{shown(self.folder)} has no split {split!r}; choose one of those it has: {known}")
        return self.folder / "qrels" / f"{split}.tsv"

    def all_queries(self) -> dict[str, str]:
        """The queries by id, judged or not."""
        path = layout_file(self.folder, "queries.jsonl")
        if path is None:
            raise BadInput(f"{shown(self.folder)} has no queries.jsonl; expected a folder in the BEIR layout")
        queries: dict[str, str] = {}
        with open_bytes(path) as stream:
            for record in read_jsonl(stream, shown(path)):
                if isinstance(record, BadInput):
                    raise record
                query = to_document(record, AUTOMATIC)
                if query.doc_id in queries:
                    raise BadInput(f"{record[0]}: the query id {query.doc_id!r} was read before; expected every id once")
                queries[query.doc_id] = query.text
        return queries


def read_qrels(path: Path) -> Qrels:
    """Judgements in file order: the three columns of BEIR or the four of TREC."""
    found: Qrels = {}
    for place, query_id, doc_id, grade in _judgements(path):
        of_query = found.setdefault(query_id, {})
        if of_query.setdefault(doc_id, grade) != grade:
            raise BadInput(
                f"{place}: {query_id!r} and {doc_id!r} were judged {of_query[doc_id]} before and {grade} here; "
                "expected one judgement: remove one"
            )
    if not found:
        raise BadInput(f"{shown(path)} holds no judgement; expected lines of query-id, corpus-id, score")
    return found


def _judgements(path: Path) -> Iterator[tuple[Place, str, str, int]]:
    with open_bytes(path) as stream:
        lines = TextLines(stream, shown(path))
        for line in lines:
            if not line.strip():
                continue
            place = Place(shown(path), lines.number)
            columns = _columns(line)
            grade = _grade(columns[-1])
            if len(columns) not in (3, 4) or (grade is None and lines.number > 1):
                raise BadInput(
                    f"{place}: the line is {line.strip()[:80]!r}; expected query-id, corpus-id and a whole number "
                    "with tabs between them, or the four TREC columns: repair the line"
                )
            if grade is not None:
                yield place, columns[0], columns[-2], grade


def _columns(line: str) -> list[str]:
    """Ids may hold spaces where tabs part the columns; TREC files part them with spaces."""
    return [column.strip() for column in line.split("\t")] if "\t" in line else line.split()


def _grade(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None
