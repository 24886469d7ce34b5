"""Read records from CSV and TSV files with a header line; every row has one value per column of the header."""

import csv
from collections.abc import Iterator
from typing import IO

from trilens.errors import BadInput, Unreadable
from trilens.read.decode import Place, TextLines
from trilens.read.limits import LIMITS
from trilens.read.records import Fields, Record

LONGEST_FIELD = LIMITS.text_bytes


def read_table(stream: IO[bytes], where: str, delimiter: str, fields: Fields) -> Iterator[Record | BadInput]:
    """Yield one record of strings per row. Empty cells and columns without a name are left out."""
    # The limit is global to the process. It is only raised, because lowering it would break other running readers.
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_FIELD))
    lines = TextLines(stream, where, detects=True)
    # Unlike a generator, map can continue after an error.
    rows = csv.reader(map(str, lines), delimiter=delimiter, strict=True)
    names: list[str] | None = None
    required: tuple[str | None, str] = ("", "")
    while True:
        place = Place(where, lines.number + 1)
        try:
            row = next(rows)
            if not row:
                continue
            if names is None:
                required, names = _header(row, fields, place)
            else:
                yield place, _record(names, row, required, place)
        except StopIteration:
            return
        except BadInput as error:
            if names is None:
                raise
            yield error
        except csv.Error as error:
            broken = BadInput(f"{place}: broken row ({error}); expected quotes inside a quoted field to be doubled")
            if names is None:
                raise broken from error
            yield broken


def _header(row: list[str], fields: Fields, place: Place) -> tuple[tuple[str | None, str], list[str]]:
    """The id and text columns, and the names of all columns."""
    names = [name.strip() for name in row]
    named = [name for name in names if name]
    for name in named:
        if named.count(name) > 1:
            raise BadInput(f"{place}: the header names the column {name!r} twice; expected each once: rename one")
    try:
        doc_id, text, title = fields.find(named, place)
    except Unreadable as error:
        message = f"{error} (the first line must be a header with column names)"
        raise Unreadable(message, error.reason) from error
    if title is not None and title not in named:
        raise BadInput(f"{place}: the header has no column {title!r}; choose the title with --title-field NAME")
    return (doc_id, text), names


def _record(names: list[str], row: list[str], required: tuple[str | None, str], place: Place) -> dict[str, str]:
    if len(row) != len(names):
        raise BadInput(
            f"{place}: the row has {len(row)} columns; expected {len(names)} as in the header: "
            "repair the row, or quote fields that contain the separator"
        )
    cells = zip(names, row, strict=True)
    return {name: value for name, value in cells if name and (value or name in required)}
