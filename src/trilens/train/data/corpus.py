"""Texts by id that examples point to: JSONL and the like, or the tables without a header of MS MARCO and ColBERT."""

from collections.abc import Iterator
from pathlib import Path

from trilens.errors import BadInput
from trilens.text.decode import Place, TextLines, open_bytes
from trilens.text.document import Document
from trilens.text.files import format_of, shown
from trilens.text.records import AUTOMATIC, to_document
from trilens.train.data.rows import read_rows

HEADERS = {"id", "_id", "pid", "qid", "doc_id", "docid"}


def read_corpus(path: Path) -> Iterator[tuple[Place, Document]]:
    """Documents one after the other; a broken line ends it, since what points to it could not be resolved."""
    if format_of(path.name) == "tsv":
        yield from _table(path)
        return
    for record in read_rows(path):
        if isinstance(record, BadInput):
            raise record
        yield record[0], to_document(record, AUTOMATIC)


def read_queries(path: Path) -> dict[str, str]:
    """The texts of queries by id."""
    queries: dict[str, str] = {}
    for place, document in read_corpus(path):
        if document.doc_id in queries:
            raise BadInput(f"{place}: the query id {document.doc_id!r} was read before; expected every id once")
        queries[document.doc_id] = document.text
    return queries


def _table(path: Path) -> Iterator[tuple[Place, Document]]:
    """Lines of id, text and maybe title with tabs between them; nothing is quoted, and a first line of names is passed over."""
    with open_bytes(path) as stream:
        lines = TextLines(stream, shown(path))
        for line in lines:
            columns = line.rstrip("\r\n").split("\t")
            place = Place(shown(path), lines.number)
            if not line.strip() or (lines.number == 1 and columns[0].strip().lower() in HEADERS):
                continue
            if not 2 <= len(columns) <= 3:
                raise BadInput(
                    f"{place}: the line has {len(columns)} columns; expected id, text and maybe title with tabs between"
                )
            try:
                yield place, Document(columns[0].strip(), columns[1], columns[2] if len(columns) == 3 else "")
            except BadInput as error:
                raise BadInput(f"{place}: {error}") from error
