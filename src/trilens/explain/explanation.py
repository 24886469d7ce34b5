"""`Explanation`: why a document got its score through a lens, or a fusion of lenses: parts that add up to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

NOTHING = 1e-6
Span = tuple[int, int]
"""First character, and the one after the last."""

Kind = Literal["own", "expanded", "pair", "imputed", "token", "rest", "lens"]
"""own       a term that query and document both hold
expanded  a term that a model or a query expansion added to one of them
pair      a token of the query with the token of the document that it was matched with
imputed   a token of the query that retrieved no token of the document, with the value that stands in
token     a word of the document
rest      what belongs to no word: special tokens, rounding
lens      what a lens gives to a fusion"""


@dataclass(frozen=True, slots=True)
class Part:
    """One summand of a score. `target` is what `label` was matched with; `facts` are the numbers that it was made of.

    `query_span` lies in the query, `doc_spans` in the text of the passage.
    """

    label: str
    score: float
    kind: Kind
    target: str | None = None
    query_span: Span | None = None
    doc_spans: tuple[Span, ...] = ()
    facts: Mapping[str, float | str | None] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "label": self.label,
            "score": self.score,
            "kind": self.kind,
            "target": self.target,
            "query_span": list(self.query_span) if self.query_span else None,
            "doc_spans": [list(span) for span in self.doc_spans],
            "facts": dict(self.facts),
        }


@dataclass(frozen=True, slots=True)
class Passage:
    """What a lens saw of a document: `text` is the title, if there is one, a line break and the passage.

    The passage itself begins at `offset` of `text`, and is `start:end` of the document's text.
    """

    text: str
    offset: int
    start: int
    end: int


@dataclass(frozen=True, eq=False, slots=True)
class Matrix:
    """Similarities (query tokens, document tokens) of two texts; spans are None where a token is no part of its text."""

    query_tokens: list[str]
    doc_tokens: list[str]
    values: NDArray[np.float32]
    query_spans: list[Span | None]
    doc_spans: list[Span | None]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "query_tokens": self.query_tokens,
            "doc_tokens": self.doc_tokens,
            "values": self.values.round(4).tolist(),
            "query_spans": [list(span) if span else None for span in self.query_spans],
            "doc_spans": [list(span) if span else None for span in self.doc_spans],
        }


@dataclass(frozen=True, eq=False)
class Explanation:
    """The parts, the largest first where their order means nothing, add up to the score.

    `approximate` marks parts that were not taken from the sum that the score is, but measured from outside; what they do not
    account for is in a part of kind `rest`. `lens` is "fusion" where several made the score: then `children` explain the score
    that each lens gave. `expansion` tells what was added to the query.
    """

    lens: str
    query: str
    doc_id: str
    score: float
    parts: Sequence[Part]
    approximate: bool
    passage: Passage
    matrix: Matrix | None = None
    children: Sequence["Explanation"] | None = None
    expansion: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values, as the command line and the HTTP service give them."""
        return {
            "lens": self.lens,
            "query": self.query,
            "doc_id": self.doc_id,
            "score": self.score,
            "approximate": self.approximate,
            "parts": [part.to_json() for part in self.parts],
            "passage": {
                "text": self.passage.text,
                "offset": self.passage.offset,
                "start": self.passage.start,
                "end": self.passage.end,
            },
            "matrix": self.matrix.to_json() if self.matrix else None,
            "children": None if self.children is None else [child.to_json() for child in self.children],
            "expansion": None if self.expansion is None else dict(self.expansion),
        }


def with_rest(parts: Sequence[Part], score: float, label: str = "rounding") -> list[Part]:
    """The parts, and one more for what they leave of the score, if that is not nothing: scores have 32 bits."""
    rest = score - sum(part.score for part in parts)
    return [*parts, Part(label, rest, "rest")] if abs(rest) > NOTHING else list(parts)


def heat(explanation: Explanation) -> list[tuple[int, int, float]]:
    """Stretches of the passage's text with what they gave to the score, in order and without overlap.

    A part with several places is shared out evenly among them; where parts overlap, they add up.
    """
    size = len(explanation.passage.text)
    values = np.zeros(size + 1)
    for part in explanation.parts:
        for start, end in part.doc_spans:
            values[start:end] += part.score / len(part.doc_spans)
    values[size] = np.nan
    edges = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
    pairs = zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    return [(start, end, float(values[start])) for start, end in pairs if values[start]]
