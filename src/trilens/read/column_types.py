"""Typed columns of tables: a column becomes numbers or booleans if every one of its cells is one.

All else stays text: numbers with leading zeros or more digits than a float holds, and dates, which in ISO 8601 compare as text.
"""

import re
from collections.abc import Callable, Iterator
from typing import IO, Any

from trilens.errors import BadInput
from trilens.read.decode import Place
from trilens.read.records import Fields, Record
from trilens.read.tables import read_table

INTEGER = re.compile(r"0|-?[1-9][0-9]{0,14}")
DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]+(?:[eE][-+]?[0-9]{1,2})?)?")
BOOLEANS = {"true": True, "false": False}

Convert = Callable[[str], Any]
# From the narrowest type to the widest; a column has the first one that fits all its cells.
TYPES: tuple[tuple[Callable[[str], object], Convert], ...] = (
    (INTEGER.fullmatch, int),
    (DECIMAL.fullmatch, float),
    (lambda cell: cell.lower() in BOOLEANS, lambda cell: BOOLEANS[cell.lower()]),
)


def read_typed_table(stream: IO[bytes], where: str, delimiter: str, fields: Fields) -> Iterator[Record | BadInput]:
    """The records of a table with typed metadata. The stream is read twice: the types depend on all rows."""
    start = stream.tell()
    types = _survey(read_table(stream, where, delimiter, fields), where, fields)
    stream.seek(start)
    for item in read_table(stream, where, delimiter, fields):
        if not isinstance(item, BadInput) and isinstance(row := item[1], dict):
            row |= {name: convert(row[name].strip()) for name, convert in types.items() if name in row}
        yield item


def _survey(items: Iterator[Record | BadInput], where: str, fields: Fields) -> dict[str, Convert]:
    """The conversions of the columns that are not text; id, text and title are."""
    fitting: dict[str, list[int]] = {}
    for item in items:
        if isinstance(item, BadInput) or not isinstance(row := item[1], dict):
            continue
        for name, cell in row.items():
            if fitting.get(name) != []:
                known = fitting.get(name, range(len(TYPES)))
                fitting[name] = [number for number in known if TYPES[number][0](cell.strip())]
    used = fields.find(fitting, Place(where)) if fitting else ()
    return {name: TYPES[numbers[0]][1] for name, numbers in fitting.items() if numbers and name not in used}
