"""Parts of a score that are measured by leaving words out."""

import numpy as np

from trilens.kernels.array_types import Float64s
from trilens.lenses.occlusion import parts_by_leaving_out, stretches


def letters(texts: list[str]) -> Float64s:
    """The number of letters of each text."""
    return np.array([sum(map(str.isalpha, text)) for text in texts], np.float64)


def test_stretches_of_words() -> None:
    text = "one two, three - four five"
    assert [text[start:end] for start, end in stretches(text, 5)] == ["one", "two", "three", "four", "five"]
    assert [text[start:end] for start, end in stretches(text, 2)] == ["one two, three", "four five"]
    assert [text[start:end] for start, end in stretches(text, 1)] == [text]
    assert stretches(" - ", 3) == [] and len(stretches("word " * 1000, 64)) == 63


def test_parts_are_drops() -> None:
    text = "one three"
    of_text = parts_by_leaving_out(text, stretches(text, 9), letters)
    assert [(part.label, part.score, part.kind, part.doc_spans) for part in of_text] == [
        ("one", 3.0, "token", ((0, 3),)),
        ("three", 5.0, "token", ((4, 9),)),
    ]
    of_query = parts_by_leaving_out(text, stretches(text, 9), letters, query=True)
    assert [(part.score, part.kind, part.query_span, part.doc_spans) for part in of_query] == [
        (3.0, "asked", (0, 3), ()),
        (5.0, "asked", (4, 9), ()),
    ]
    assert parts_by_leaving_out("", [], letters) == []
