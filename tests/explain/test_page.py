"""Explanations as pages that escape everything from queries and documents."""

from html.parser import HTMLParser

import numpy as np

from trilens.explain.explanation import ExplainedPassage, Explanation
from trilens.explain.page import to_html
from trilens.lenses.parts import Matrix, Part

EVIL = '<script>alert("x")</script>'
PASSAGE = ExplainedPassage(f"{EVIL} & more", 0, 0, len(EVIL) + 7)
MATRIX = Matrix([EVIL], ["a", "b"], np.array([[0.5, -0.2]], np.float32), [None], [(0, 1), None])


def explanation() -> Explanation:
    pair = Part(EVIL, 0.5, "pair", target=EVIL, doc_spans=((0, 8),), facts={"te<rm": EVIL})
    child = Explanation("multi", EVIL, EVIL, 0.3, [pair, Part("rest", -0.2, "rest")], True, PASSAGE, matrix=MATRIX)
    parts = [Part("multi", 0.3, "lens", facts={"rank": None, "score": 0.3})]
    return Explanation("fusion", EVIL, EVIL, 0.3, parts, False, PASSAGE, children=[child], expansion={"terms": [EVIL]})


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        assert not any(name.startswith("on") or name in ("src", "href") for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_page_holds_everything_and_runs_nothing() -> None:
    page = to_html(explanation())
    read = Tags()
    read.feed(page)
    assert "script" not in read.names
    assert "<script" not in page
    assert EVIL in read.text
    assert "approximate" in read.text and "0.5000" in read.text
    assert {"mark", "table"} <= read.names
