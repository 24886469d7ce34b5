"""The frame of HTML pages."""

import pytest

from trilens.explain.sheet import brief, coloured_passage, ground, lens_colour, safe, sheet
from trilens.lenses.registry import lens_types

from .test_page import EVIL, explanation


def test_a_sheet_escapes_its_title_and_forbids_scripts() -> None:
    page = sheet(EVIL, "<p>body</p>", "p{margin:0}")
    assert EVIL not in page and safe(EVIL) in page
    assert "default-src 'none'" in page and "<p>body</p>" in page and "p{margin:0}" in page


def test_every_lens_has_its_colours_on_a_sheet() -> None:
    page = sheet("title", "")
    for name, known in lens_types().items():
        assert page.count(f"--lens-{name}:") == 2
        assert f"--lens-{name}:{known.colour.light}" in page and f"--lens-{name}:{known.colour.dark}" in page


def test_colours_of_lenses_and_others() -> None:
    assert lens_colour("bm25", 3) == "var(--lens-bm25)"
    assert lens_colour("multi:method=xtr", 3) == "var(--lens-multi)"
    assert lens_colour("another engine", 7) == "var(--other-2)"


@pytest.mark.parametrize(
    ("share", "colour"), [(1, "plus)/0.600"), (0.5, "plus)/0.300"), (-0.5, "minus)/0.300"), (9, "plus)/0.600")]
)
def test_backgrounds(share: float, colour: str) -> None:
    assert ground(share) == f"rgb(var(--{colour})"


def test_a_coloured_passage_is_the_whole_text() -> None:
    [child] = explanation().children or ()
    marked = coloured_passage(child)
    assert marked.count("<mark ") == 1 and "<script" not in marked
    assert marked.endswith(safe('alert("x")</script> & more'))


def test_brief_texts() -> None:
    assert brief(" a  b\nc ", 5) == "a b c"
    assert brief("a b c d", 5) == "a b …"
