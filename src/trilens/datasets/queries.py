"""Read queries from published formats: JSON, tables, DPR questions with answers, and TREC topics."""

import ast
import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trilens.errors import BadInput
from trilens.read.decode import Place, TextLines, open_bytes, read_text
from trilens.read.jsonlines import read_json, read_jsonl
from trilens.read.reader_table import CSV, JSON, JSONL, TSV, reader_for
from trilens.read.records import ID_FIELDS
from trilens.read.tables import LONGEST_FIELD
from trilens.read.values import a_string, an_id, an_object, strings
from trilens.text.document import require_utf8
from trilens.text.files import shown

TEXT_FIELDS = ("text", "question", "query")
QUERY_ID_FIELDS = (*ID_FIELDS, "query_id", "query-id", "qid")
LANGUAGE_FIELDS = ("lang", "language")
ANSWERS = "answers"
TOPIC = re.compile(r"<top>(.*?)(</top>|(?=<top>)|\Z)", re.DOTALL | re.IGNORECASE)
NUMBER = re.compile(r"<num>\s*(number:)?\s*([^<\n]*)", re.IGNORECASE)
TITLE = re.compile(r"<title>\s*(?:topic:)?([^<]*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Query:
    """The text of a query. `language` and `answers` are empty if the data does not have them."""

    text: str
    language: str = ""
    answers: tuple[str, ...] = ()


Queries = dict[str, Query]
"""Queries by id, in file order."""

PlacedQuery = tuple[Place, str, Query]
"""The place of a query in its file, its id, and the query."""


def read_queries(path: Path) -> Queries:
    """Read all queries of a file. A repeated id or an empty query is an error.

    JSON Lines, JSON  objects with an id and `text`, `question` or `query`, and optional answers and language. Queries without
                      an id, as in DPR's training sets, are numbered from 1.
    TSV, CSV          id and text; or DPR's question and list of answers, numbered from 1; or id, question and answers
    other suffixes    TREC topics: <top> <num> … <title> … </top>
    """
    queries: Queries = {}
    for place, query_id, query in _placed_queries(path):
        if not query_id.strip() or not query.text.strip():
            raise BadInput(f"{place}: the query {query_id!r} is {query.text!r}; expected a non-empty id and text")
        require_utf8(f"{place}: the query {query_id!r}", query.text)
        if query_id in queries:
            raise BadInput(f"{place}: the query id {query_id!r} was read before; expected unique ids")
        queries[query_id] = query
    if not queries:
        raise BadInput(f"{shown(path)} holds no query; expected JSON, a table, or TREC topics")
    return queries


def _placed_queries(path: Path) -> Iterator[PlacedQuery]:
    reader = reader_for(path.name)
    if reader in (JSONL, JSON):
        return _from_json(path, lines=reader is JSONL)
    if reader in (TSV, CSV):
        return _from_table(path, quoted=reader is CSV)
    return _from_topics(path)


def _from_json(path: Path, lines: bool) -> Iterator[PlacedQuery]:
    with open_bytes(path) as stream:
        records = read_jsonl(stream, shown(path)) if lines else read_json(stream, shown(path))
        for number, record in enumerate(records, start=1):
            if isinstance(record, BadInput):
                raise record
            try:
                yield record[0], *from_record(an_object(record[1]), str(number))
            except BadInput as error:
                raise BadInput(f"{record[0]}: {error}") from error


def from_record(record: dict[str, Any], default_id: str) -> tuple[str, Query]:
    """The id of a query, or `default_id` if the record has none, and the query.

    BEIR keeps language and answers in `metadata`, beside arbitrary other values.
    """
    id_value = next((record[name] for name in QUERY_ID_FIELDS if record.get(name) is not None), None)
    query_id = default_id if id_value is None else an_id(id_value, "the id of a query")
    member = record.get("metadata")
    metadata = member if isinstance(member, dict) else {}
    languages = (source.get(name) for source in (record, metadata) for name in LANGUAGE_FIELDS)
    language = next((value for value in languages if isinstance(value, str)), "")
    answers = strings(record, ANSWERS) or _strings_only(metadata.get(ANSWERS))
    return query_id, Query(a_string(record, *TEXT_FIELDS), language, _without_blank(answers))


def _without_blank(answers: list[str]) -> tuple[str, ...]:
    return tuple(answer for answer in answers if answer.strip())


def _strings_only(value: object) -> list[str]:
    return value if isinstance(value, list) and all(isinstance(member, str) for member in value) else []


def _from_table(path: Path, quoted: bool) -> Iterator[PlacedQuery]:
    number = 0
    for place, row in _rows(path, quoted):
        if not any(row):
            continue
        is_header = number == 0 and row[0].strip().lower() in (*QUERY_ID_FIELDS, *TEXT_FIELDS)
        if is_header and not row[-1].lstrip().startswith("["):  # a row that ends in a list of answers is a question
            continue
        number += 1
        yield place, *_from_row(row, str(number), place)


def _rows(path: Path, quoted: bool) -> Iterator[tuple[Place, list[str]]]:
    """The rows of a table. DPR's CSV files have tabs between quoted columns; in TSV files quotes are literal."""
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_FIELD))
    with open_bytes(path) as stream:
        lines = TextLines(stream, shown(path))
        first = next(lines, "")
        rows: Iterator[list[str]]
        if quoted:
            rows = csv.reader(_chain(first, lines), delimiter="\t" if "\t" in first else ",")
        else:
            rows = (line.rstrip("\r\n").split("\t") for line in _chain(first, lines))
        while True:
            try:
                row = next(rows, None)
            except csv.Error as error:
                raise BadInput(f"{shown(path)}:{lines.number}: broken row ({error}); repair its quotes") from error
            if row is None:
                return
            yield Place(shown(path), lines.number), row


def _chain(first: str, rest: TextLines) -> Iterator[str]:
    yield first
    yield from rest


def _from_row(row: list[str], number: str, place: Place) -> tuple[str, Query]:
    cells = [cell.strip() for cell in row]
    if len(cells) in (2, 3) and cells[-1].startswith("["):
        return (cells[0] if len(cells) == 3 else number), Query(cells[-2], answers=_answers(cells[-1], place))
    if len(cells) == 2:
        return cells[0], Query(cells[1])
    raise BadInput(
        f"{place}: the row has {len(cells)} columns; expected id and text, or question and list of answers, separated by a tab"
    )


def _answers(text: str, place: Place) -> tuple[str, ...]:
    """Parse a list in Python syntax, as in DPR's files."""
    try:
        answers = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        raise BadInput(
            f"{place}: the answers are {text[:80]!r}; expected a list such as ['Paris', 'the city of Paris']"
        ) from error
    if not isinstance(answers, list) or not all(isinstance(answer, str) for answer in answers):
        raise BadInput(f"{place}: the answers are {text[:80]!r}; expected a list of strings")
    return _without_blank(answers)


def _from_topics(path: Path) -> Iterator[PlacedQuery]:
    text = read_text(path)
    for topic in TOPIC.finditer(text):
        place = Place(shown(path), text.count("\n", 0, topic.start()) + 1)
        if not topic[2]:
            raise BadInput(f"{place}: the topic that starts here is not closed; expected </top>")
        number, title = NUMBER.search(topic[1]), TITLE.search(topic[1])
        if number is None or title is None:
            raise BadInput(f"{place}: the topic has no {'<num>' if number is None else '<title>'}; expected both")
        # "Number: 051" in the topics is 51 in the judgements.
        query_id = number[2].strip().lstrip("0") if number[1] else number[2].strip()
        yield place, query_id, Query(" ".join(title[1].split()))
