import pytest

from trilens.text.document import Document

from .conftest import Documents

pytest.importorskip("pptx")


def test_each_slide_is_a_document_with_its_table_and_notes(documents: Documents) -> None:
    facts = {"slides": 4, "author": "Ada Lovelace", "date": "2026-11-18T23:43:16Z", "path": "handbook.pptx"}
    _, pumps, valves, _ = documents("handbook.pptx")
    assert pumps == Document(
        "handbook.pptx#slide=2",
        "Centrifugal pumps\nCentrifugal pumps move water. Heat transfer in the casing limits their speed.1\n"
        "part  interval\nbearing  every month\ngasket  every year",
        "Pump handbook: Centrifugal pumps",
        {"slide": 2, **facts},
    )
    assert isinstance(valves, Document)
    assert valves.text.endswith("naïve pipe: open(valve).\n\nMention the noise.")
