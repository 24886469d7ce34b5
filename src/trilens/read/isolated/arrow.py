"""Parquet, Arrow and Feather: one record per row."""

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite
from typing import Any

import pyarrow
from pyarrow import feather, ipc, parquet

from trilens.errors import BadInput
from trilens.read.described import moment
from trilens.read.isolated.local_file import LocalFile

BATCH_ROWS = 1024
PARQUET, ARROW, FEATHER_1 = b"PAR1", b"ARROW1", b"FEA1"


def parse(file: LocalFile) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number and the value of each row, without its nulls."""
    row = 0
    for batch in _batches(file):
        for start in range(0, batch.num_rows, BATCH_ROWS):
            for values in batch.slice(start, BATCH_ROWS).to_pylist():
                row += 1
                yield row, {name: _json(value) for name, value in values.items() if _json(value) is not None}


def _batches(file: LocalFile) -> Iterator[Any]:
    with file.path.open("rb") as stream:
        magic = stream.read(len(ARROW))
    if magic.startswith(PARQUET):
        with parquet.ParquetFile(file.path) as table:
            yield from table.iter_batches(BATCH_ROWS, use_threads=False)
    elif magic.startswith(FEATHER_1):
        yield from feather.read_table(file.path, use_threads=False).to_batches()
    elif magic == ARROW:
        with pyarrow.memory_map(str(file.path)) as source, ipc.open_file(source) as reader:
            for number in range(reader.num_record_batches):
                yield reader.get_batch(number)
    else:
        with pyarrow.memory_map(str(file.path)) as source, ipc.open_stream(source) as reader:
            yield from reader


def _json(value: Any) -> Any:
    """A value in the types of JSON; None for numbers that JSON does not have."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if isfinite(value) else None
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case datetime():
            return moment(value)
        case date() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case list():
            return [_json(item) for item in value]
        case dict():
            return {str(name): _json(item) for name, item in value.items()}
        case bytes():
            raise BadInput("has a column of bytes; expected text, numbers, dates or lists: leave the column out")
    return str(value)
