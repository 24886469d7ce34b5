"""Queries from the files that others publish: JSON, tables, DPR's questions with their answers, TREC's topics."""

import ast
import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trilens.errors import BadInput
from trilens.text.decode import Place, TextLines, open_bytes, read_text
from trilens.text.document import require_utf8
from trilens.text.files import format_of, shown
from trilens.text.jsonlines import read_json, read_jsonl
from trilens.text.records import ID_FIELDS
from trilens.text.tables import LONGEST_FIELD
from trilens.text.values import a_string, an_id, an_object, strings

TEXT_FIELDS = ("text", "question", "query")
QUERY_ID_FIELDS = (*ID_FIELDS, "query_id", "query-id", "qid")
LANGUAGE_FIELDS = ("lang", "language")
ANSWERS = "answers"
TOPIC = re.compile(r"<top>(.*?)(</top>|(?=<top>)|\Z)", re.DOTALL | re.IGNORECASE)
NUMBER = re.compile(r"<num>\s*(number:)?\s*([^<\n]*)", re.IGNORECASE)
TITLE = re.compile(r"<title>\s*(?:topic:)?([^<]*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Query:
    """A text to search for; `language` is empty and `answers` are none where the data does not tell them."""

    text: str
    language: str = ""
    answers: tuple[str, ...] = ()


Queries = dict[str, Query]
"""By query id, in the order of the file."""

Item = tuple[Place, str, Query]
"""Where a query stands, its id, and it."""


def read_queries(path: Path) -> Queries:
    """All queries of a file, whatever its form; an id that comes twice is an error, and so is a query without a word.

    .jsonl, .json   objects with an id and text, question or query; answers and a language if they have them. Without an id,
                    as in DPR's training sets, queries are numbered from 1.
    .tsv, .csv      id and text; or DPR's question and list of answers, numbered from 1; or id, question and answers
    anything else   TREC's topics: <top> <num> … <title> … </top>
    """
    found: Queries = {}
    for place, query_id, query in _items(path):
        if not query_id.strip() or not query.text.strip():
            raise BadInput(f"{place}: the query {query_id!r} is {query.text!r}; expected an id and a text that are not empty")
        require_utf8(f"{place}: the query {query_id!r}", query.text)
        if query_id in found:
            raise BadInput(f"{place}: the query id {query_id!r} was read before; expected every id once")
        found[query_id] = query
    if not found:
        raise BadInput(f"{shown(path)} holds no query; expected JSON, a table, or topics as TREC has them")
    return found


def _items(path: Path) -> Iterator[Item]:
    match format_of(path.name):
        case "jsonl" | "json" as kind:
            return _from_json(path, kind)
        case "tsv" | "csv" as kind:
            return _from_table(path, kind)
    return _from_topics(path)


def _from_json(path: Path, kind: str) -> Iterator[Item]:
    with open_bytes(path) as stream:
        records = read_jsonl(stream, shown(path)) if kind == "jsonl" else read_json(stream, shown(path))
        for number, record in enumerate(records, start=1):
            if isinstance(record, BadInput):
                raise record
            try:
                yield record[0], *from_record(an_object(record[1]), str(number))
            except BadInput as error:
                raise BadInput(f"{record[0]}: {error}") from error


def from_record(record: dict[str, Any], otherwise: str) -> tuple[str, Query]:
    """The id of a query, or the one to take otherwise, and the query.

    BEIR has language and answers in `metadata`, where anything else may stand too.
    """
    named = next((record[name] for name in QUERY_ID_FIELDS if record.get(name) is not None), None)
    query_id = otherwise if named is None else an_id(named, "the id of a query")
    inner = record.get("metadata")
    more = inner if isinstance(inner, dict) else {}
    languages = (source.get(name) for source in (record, more) for name in LANGUAGE_FIELDS)
    answers = strings(record, ANSWERS) or _strings_only(more.get(ANSWERS))
    language = next((said for said in languages if isinstance(said, str)), "")
    return query_id, Query(a_string(record, *TEXT_FIELDS), language, _told(answers))


def _told(answers: list[str]) -> tuple[str, ...]:
    """Without blank ones, which answer nothing."""
    return tuple(answer for answer in answers if answer.strip())


def _strings_only(value: object) -> list[str]:
    return value if isinstance(value, list) and all(isinstance(one, str) for one in value) else []


def _from_table(path: Path, kind: str) -> Iterator[Item]:
    number = 0
    for place, row in _rows(path, kind):
        if not any(row):
            continue
        names = number == 0 and row[0].strip().lower() in (*QUERY_ID_FIELDS, *TEXT_FIELDS)
        if names and not row[-1].lstrip().startswith("["):  # a list of answers is no name of a column
            continue
        number += 1
        yield place, *_from_row(row, str(number), place)


def _rows(path: Path, kind: str) -> Iterator[tuple[Place, list[str]]]:
    """The rows of a table. DPR's .csv files have tabs, and quotes as CSV has them; in .tsv files a quote is a quote."""
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_FIELD))
    with open_bytes(path) as stream:
        lines = TextLines(stream, shown(path))
        first = next(lines, "")
        if kind == "tsv":
            rows: Iterator[list[str]] = (line.rstrip("\r\n").split("\t") for line in _chain(first, lines))
        else:
            rows = csv.reader(_chain(first, lines), delimiter="\t" if "\t" in first else ",")
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
        f"{place}: the row has {len(cells)} columns; expected id and text, or a question and a list of its answers, with a tab "
        "between them"
    )


def _answers(text: str, place: Place) -> tuple[str, ...]:
    """DPR writes lists as Python does."""
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        raise BadInput(
            f"{place}: the answers are {text[:80]!r}; expected a list such as ['Paris', 'the city of Paris']"
        ) from error
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise BadInput(f"{place}: the answers are {text[:80]!r}; expected a list of strings")
    return _told(found)


def _from_topics(path: Path) -> Iterator[Item]:
    text = read_text(path)
    for topic in TOPIC.finditer(text):
        place = Place(shown(path), text.count("\n", 0, topic.start()) + 1)
        if not topic[2]:
            raise BadInput(f"{place}: the topic that begins here has no end; expected </top>")
        number, title = NUMBER.search(topic[1]), TITLE.search(topic[1])
        if number is None or title is None:
            raise BadInput(f"{place}: the topic has no {'<num>' if number is None else '<title>'}; expected both")
        # "Number: 051" of the topics is 51 in the judgements.
        query_id = number[2].strip().lstrip("0") if number[1] else number[2].strip()
        yield place, query_id, Query(" ".join(title[1].split()))
