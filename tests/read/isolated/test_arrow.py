from pathlib import Path

import pytest

from trilens.errors import BadInput
from trilens.text.document import Document

from .conftest import Documents

pyarrow = pytest.importorskip("pyarrow")


@pytest.mark.parametrize("name", ["rows.parquet", "rows.arrow", "rows.feather"])
def test_rows_are_records_without_nulls(documents: Documents, name: str) -> None:
    metadata = {
        "year": 2020,
        "seen": "2024-01-02T03:04:05Z",
        "day": "2024-01-02",
        "tags": ["pump", "water"],
        "price": 1.5,
    }
    assert documents(name) == [
        Document("1", "Pumps move water.", "", metadata),
        Document("2", "Valves control flow.", "", {"weight": 1.5}),
    ]


def test_columns_of_bytes_are_an_error(documents: Documents, tmp_path: Path) -> None:
    from pyarrow import feather

    feather.write_feather(pyarrow.table({"id": [1], "text": ["t"], "image": [b"\0"]}), str(tmp_path / "a.feather"))
    with pytest.raises(BadInput, match=r"^a.feather has a column of bytes"):
        documents(tmp_path / "a.feather")
