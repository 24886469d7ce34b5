"""Typed columns of tables: a column becomes numbers, booleans or dates if every one of its cells is one.

All else stays text: numbers with leading zeros or more digits than a float holds, and dates whose day and month cannot be told
apart. Dates are strings in ISO 8601, which compare by time.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import IO, Any

from trilens.errors import BadInput
from trilens.read.dates import iso_date
from trilens.read.decode import Place
from trilens.read.records import Fields, Record, TypedRow
from trilens.read.tables import read_table

INTEGER = re.compile(r"0|-?[1-9][0-9]{0,14}")
DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]+(?:[eE][-+]?[0-9]{1,2})?)?")
BOOLEANS = {"true": True, "false": False}

Convert = Callable[[str], Any]
_day_first, _month_first = partial(iso_date, month_first=False), partial(iso_date, month_first=True)

# From the narrowest type to the widest; a column has the first one that fits all its cells.
TYPES: tuple[tuple[Callable[[str], object], Convert], ...] = (
    (INTEGER.fullmatch, int),
    (DECIMAL.fullmatch, float),
    (lambda cell: cell.lower() in BOOLEANS, lambda cell: BOOLEANS[cell.lower()]),
    (lambda cell: _day_first(cell) and _day_first(cell) == _month_first(cell), _day_first),
    (_day_first, _day_first),
    (_month_first, _month_first),
)
UNDECIDED = [4, 5]  # dates that may begin with the day or with the month


def read_typed_table(stream: IO[bytes], where: str, delimiter: str, fields: Fields) -> Iterator[Record | BadInput]:
    """The records of a table with typed metadata. The stream is read twice: the types depend on all rows."""
    start = stream.tell()
    types = _survey(read_table(stream, where, delimiter, fields), where, fields)
    stream.seek(start)
    for item in read_table(stream, where, delimiter, fields):
        if isinstance(item, BadInput) or not isinstance(row := item[1], dict):
            yield item
        else:
            typed = {name: convert(row[name].strip()) for name, convert in types.items() if name in row}
            yield item[0], TypedRow(row, typed)


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
    return {name: TYPES[numbers[0]][1] for name, numbers in fitting.items() if _is_decided(numbers) and name not in used}


def _is_decided(numbers: list[int]) -> bool:
    return bool(numbers) and numbers != UNDECIDED
