"""Reader of record files in any supported format: JSONL, JSON, CSV and TSV, optionally compressed, and Parquet."""

from collections.abc import Iterator
from pathlib import Path

from trilens.errors import BadInput
from trilens.read.decode import Place, open_bytes
from trilens.read.formats import InputFile
from trilens.read.reader_table import reader_for, record_suffixes
from trilens.read.records import AUTOMATIC, Fields, Record
from trilens.text.files import shown

PARQUET = ".parquet"


def read_records(path: Path, fields: Fields = AUTOMATIC) -> Iterator[Record | BadInput]:
    """Yield every record with its position. `fields` checks that the header of a table has the required columns."""
    if path.suffix.lower() == PARQUET:
        yield from _parquet(path)
        return
    reader = reader_for(path.name)
    if reader is None or reader.records is None:
        raise BadInput(f"{shown(path)} has no suffix of a record format; expected {record_suffixes()}: rename or convert it")
    with open_bytes(path) as stream:
        yield from reader.records(InputFile(stream, shown(path), path.name, fields))


def _parquet(path: Path) -> Iterator[Record]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise BadInput(
            f"{shown(path)} is a Parquet file, which needs pyarrow, and pyarrow is not installed; "
            "install it with `pip install trilens[train]`, or convert the file to JSONL"
        ) from error
    if not path.is_file():
        raise BadInput(f"{shown(path)} does not exist; expected a file: check the path")
    row = 0
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=1024):
                for value in batch.to_pylist():
                    row += 1
                    # Parquet has no lines: positions are row numbers.
                    yield Place(shown(path), row), value
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise BadInput(f"{shown(path)} is damaged or not a Parquet file ({reason}); copy it again") from error
