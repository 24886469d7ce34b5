"""Text and tables as other programs write and compress them; `data/README.md` says which."""

from pathlib import Path

import pytest

from trilens.read.readers import read
from trilens.read.zstd import zstd

DATA = Path(__file__).parent / "data"
SENTENCE = "Valves control the flow of a liquid through a naïve pipe: open(valve)."


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("handbook.html", "Pump handbook"),
        ("handbook.md.xz", "Pump handbook"),
        ("handbook.txt.gz", ""),
        ("handbook.txt.bz2", ""),
        ("handbook-copy.rst.zst", "Pump handbook"),
    ],
)
def test_a_page_has_its_title_and_text(name: str, title: str) -> None:
    if name.endswith(".zst") and zstd is None:
        pytest.skip("needs Zstandard")
    (document,) = read([DATA / name])
    text = " ".join(document.text.split())
    assert (document.doc_id, document.title, SENTENCE in text, "bearing every month" in text) == (name, title, True, True)


@pytest.mark.parametrize("name", ["rows.csv", "rows.tsv"])
def test_tables_have_typed_columns(name: str) -> None:
    assert [(document.text, document.metadata) for document in read([DATA / name])] == [
        ("Größe 5, naïve", {"part": "bearing", "price": 12.5, "stock": True, "bought": "2024-01-31"}),
        ('says "tight"', {"part": "gasket", "price": 3, "stock": False, "bought": "2023-12-05"}),
    ]
