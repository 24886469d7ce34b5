"""Triples of ids: query, positive, negatives; as lines with tabs, or as ColBERT's JSON arrays, which may hold scores."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from trilens.errors import BadInput
from trilens.text.decode import Place, TextLines, open_bytes
from trilens.text.files import format_of, shown
from trilens.text.records import Record
from trilens.text.values import a_number, an_id, kind_of
from trilens.train.data.example import Example, Item, Items
from trilens.train.data.rows import read_rows


def read_triples(path: Path, queries: Mapping[str, str]) -> Items:
    """One example per line: the first passage is the positive, all others are negatives.

    `[query, [passage, score], …]` gives every passage the score of a teacher.
    """
    rows = _lines(path) if format_of(path.name) in ("tsv", "txt", None) else read_rows(path)
    return (_item(row, queries) for row in rows)


def _lines(path: Path) -> Iterator[Record | BadInput]:
    with open_bytes(path) as stream:
        lines = TextLines(stream, shown(path))
        for line in lines:
            if line.strip():
                yield Place(shown(path), lines.number), [column.strip() for column in line.rstrip("\r\n").split("\t")]


def _item(record: Record | BadInput, queries: Mapping[str, str]) -> Item:
    if isinstance(record, BadInput):
        return record
    place, value = record
    try:
        return place, _example(value, queries)
    except BadInput as error:
        return BadInput(f"{place}: {error}")


def _example(value: object, queries: Mapping[str, str]) -> Example:
    if not isinstance(value, list) or len(value) < 2:
        shown_value = f"{len(value)} columns" if isinstance(value, list) else kind_of(value)
        raise BadInput(
            f"the line is {shown_value}; expected the ids of a query, a positive and maybe negatives, with tabs between"
        )
    query_id = an_id(value[0], "the id of the query")
    if query_id not in queries:
        raise BadInput(f"the query {query_id!r} is not in the file of queries; expected both of the same data")
    scored = [isinstance(member, list) for member in value[1:]]
    if any(scored) and not all(scored):
        raise BadInput("some passages have scores and some have none; expected scores for all or for none")
    pairs = [_scored(member) for member in value[1:]] if all(scored) else []
    ids = [name for name, _ in pairs] if pairs else [an_id(member, "the id of a passage") for member in value[1:]]
    teacher = [score for _, score in pairs] if pairs else None
    return Example(queries[query_id], ids[:1], ids[1:], teacher=teacher, query_id=query_id)


def _scored(member: Sequence[object]) -> tuple[str, float]:
    if len(member) != 2:
        raise BadInput(f"a passage is an array of {len(member)}; expected its id and its score")
    return an_id(member[0], "the id of a passage"), a_number(member[1], "score")
