"""Rows of a file, whatever its format: JSONL, JSON, CSV, TSV, each also compressed, and Parquet."""

from collections.abc import Iterator
from pathlib import Path

from trilens.errors import BadInput
from trilens.text.decode import Place, open_bytes
from trilens.text.files import format_of, shown
from trilens.text.jsonlines import read_json, read_jsonl
from trilens.text.records import AUTOMATIC, Fields, Record
from trilens.text.tables import read_table

PARQUET = ".parquet"


def read_rows(path: Path, fields: Fields = AUTOMATIC) -> Iterator[Record | BadInput]:
    """Every row with its place. `fields` finds the columns without which the header of a table is an error."""
    if path.suffix.lower() == PARQUET:
        yield from _parquet(path)
        return
    kind = format_of(path.name)
    if kind not in ("jsonl", "json", "csv", "tsv"):
        raise BadInput(
            f"{shown(path)} has no suffix that tells its format; expected .jsonl, .json, .csv, .tsv (also .gz, .xz, .bz2) "
            "or .parquet: rename or convert it"
        )
    with open_bytes(path) as stream:
        if kind == "jsonl":
            yield from read_jsonl(stream, shown(path))
        elif kind == "json":
            yield from read_json(stream, shown(path))
        else:
            yield from read_table(stream, shown(path), "\t" if kind == "tsv" else ",", fields)


def _parquet(path: Path) -> Iterator[Record]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise BadInput(
            f"{shown(path)} is a Parquet file, and pyarrow, which reads them, is not installed; "
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
                    # A Parquet file has no lines; its rows are counted instead.
                    yield Place(shown(path), row), value
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise BadInput(f"{shown(path)} is damaged or not a Parquet file ({reason}); copy it again") from error
