from pathlib import Path

import pytest

from trilens.read.restructured_text import read_restructured_text

DATA = Path(__file__).parent / "data"


def test_a_file_of_pandoc_has_its_title_author_and_text() -> None:
    title, text, metadata = read_restructured_text((DATA / "handbook.rst").read_text(encoding="utf-8"))
    assert (title, metadata) == ("Pump handbook", {"author": "Ada Lovelace"})
    assert text.endswith(
        "part    interval\nbearing every month\ngasket  every year\n\nValves\n\n"
        "Valves control the flow of a liquid through a naïve pipe:\nopen(valve).\n\n   Mention the noise.\n\n"
        "   Use lithium grease."
    )
    assert "casing limits their\nspeed." in text


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a **bold** and *slanted* ``x = *y*`` word", "a bold and slanted x = *y* word"),
        ("see :py:meth:`~list.sort` and :ref:`the start <top>`", "see list.sort and the start"),
        ("a `link <https://a.org>`_, a name_ and an `other name`__.", "a link, a name and an other name."),
        ("2 * 3 * 4 and snake_case and __init__", "2 * 3 * 4 and snake_case and __init__"),
        ("code::\n\n   x = 1", "code:\n\n   x = 1"),
        (".. note:: Mind\n   the gap.\n\nNext", "Mind\n   the gap.\n\nNext"),
        (".. code-block:: python\n   :linenos:\n\n   x = 1", "   x = 1"),
        (".. toctree::\n   :maxdepth: 2\n\n   a\n   b\n\nNext", "Next"),
        (".. _target:\n\n.. a comment\n   of two lines\n\nText", "Text"),
        ("+---+-----+\n| a | b c |\n+===+=====+\n| d | e   |\n+---+-----+", "a  b c\nd  e"),
        ("Known [1]_.\n\n.. [1] A book.", "Known.\n\nA book."),
        ("====\nHead\n====\n\nText", "Head\n\nText"),
    ],
)
def test_markup_is_removed(source: str, expected: str) -> None:
    assert read_restructured_text(source)[1] == expected


def test_the_title_is_the_first_section_with_or_without_overline() -> None:
    assert read_restructured_text("*****\nA *b*\n*****\n")[0] == "A b"
    assert read_restructured_text("Intro.\n\nHead\n~~~~\n\nText")[0] == "Head"
    assert read_restructured_text("no title")[0] == ""
