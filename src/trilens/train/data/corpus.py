"""Reader of corpora and query files, which map ids to texts: JSONL etc., or the headerless TSV of MS MARCO and ColBERT."""

from collections.abc import Iterator
from pathlib import Path

from trilens.errors import BadInput
from trilens.read.decode import Place, TextLines, open_bytes
from trilens.read.reader_table import TSV, reader_for
from trilens.read.records import AUTOMATIC, to_document
from trilens.text.document import Document
from trilens.text.files import shown
from trilens.train.data.record_files import read_records

HEADERS = {"id", "_id", "pid", "qid", "doc_id", "docid"}


def read_corpus(path: Path) -> Iterator[tuple[Place, Document]]:
    """Yield the documents of a corpus; a malformed line is an error, because examples may refer to it."""
    if reader_for(path.name) is TSV:
        yield from _table(path)
        return
    for record in read_records(path):
        if isinstance(record, BadInput):
            raise record
        yield record[0], to_document(record, AUTOMATIC)


def read_queries(path: Path) -> dict[str, str]:
    """The query texts by id."""
    queries: dict[str, str] = {}
    for place, document in read_corpus(path):
        if document.doc_id in queries:
            raise BadInput(f"{place}: the query id {document.doc_id!r} occurs twice; expected unique ids")
        queries[document.doc_id] = document.text
    return queries


def _table(path: Path) -> Iterator[tuple[Place, Document]]:
    """Parse lines of id, text and optional title, separated by tabs and unquoted; a header line is skipped."""
    with open_bytes(path) as stream:
        lines = TextLines(stream, shown(path))
        for line in lines:
            columns = line.rstrip("\r\n").split("\t")
            place = Place(shown(path), lines.number)
            if not line.strip() or (lines.number == 1 and columns[0].strip().lower() in HEADERS):
                continue
            if not 2 <= len(columns) <= 3:
                raise BadInput(
                    f"{place}: the line has {len(columns)} columns; expected id, text and optionally title, separated by tabs"
                )
            try:
                yield place, Document(columns[0].strip(), columns[1], columns[2] if len(columns) == 3 else "")
            except BadInput as error:
                raise BadInput(f"{place}: {error}") from error
