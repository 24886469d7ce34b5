"""Reader of id triples (query, positive, negatives): tab-separated lines, or ColBERT's JSON arrays, optionally with scores."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from trilens.errors import BadInput
from trilens.read.decode import Place, TextLines, open_bytes
from trilens.read.reader_table import TEXT, TSV, reader_for
from trilens.read.records import Record
from trilens.read.values import a_number, an_id, kind_of
from trilens.text.files import shown
from trilens.train.data.raw_example import Item, Items, RawExample
from trilens.train.data.record_files import read_records


def read_triples(path: Path, queries: Mapping[str, str]) -> Items:
    """Read one example per line: the first passage is the positive, the others are negatives.

    `[query, [passage, score], …]` gives each passage a teacher score.
    """
    rows = _lines(path) if reader_for(path.name) in (TSV, TEXT, None) else read_records(path)
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


def _example(value: object, queries: Mapping[str, str]) -> RawExample:
    if not isinstance(value, list) or len(value) < 2:
        description = f"{len(value)} columns" if isinstance(value, list) else kind_of(value)
        raise BadInput(
            f"the line is {description}; expected the ids of a query, a positive and optionally negatives, separated by tabs"
        )
    query_id = an_id(value[0], "the id of the query")
    if query_id not in queries:
        raise BadInput(f"the query {query_id!r} is not in the query file; expected the query file of the same data")
    has_score = [isinstance(member, list) for member in value[1:]]
    if any(has_score) and not all(has_score):
        raise BadInput("some passages have scores and some do not; expected scores for all or for none")
    pairs = [_scored(member) for member in value[1:]] if all(has_score) else []
    ids = [passage_id for passage_id, _ in pairs] if pairs else [an_id(member, "the id of a passage") for member in value[1:]]
    teacher = [score for _, score in pairs] if pairs else None
    return RawExample(queries[query_id], ids[:1], ids[1:], teacher=teacher, query_id=query_id)


def _scored(member: Sequence[object]) -> tuple[str, float]:
    if len(member) != 2:
        raise BadInput(f"a passage is an array of {len(member)} values; expected its id and its score")
    return an_id(member[0], "the id of a passage"), a_number(member[1], "score")
