"""`Explanation`: the score of a document through a lens or a fusion, as parts that add up to it; and its JSON form."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from trilens.lenses.parts import Matrix, Part, heat


@dataclass(frozen=True, slots=True)
class ExplainedPassage:
    """The text of a row as it was encoded: the title, if there is one, a line break and the passage.

    The passage begins at `offset` of `text`, and is `start:end` of the document's text.
    """

    text: str
    offset: int
    start: int
    end: int


@dataclass(frozen=True, eq=False)
class Explanation:
    """The parts, largest first unless their order has a meaning, add up to the score.

    `approximate` marks parts that were measured from outside instead of being the terms of the sum; the remainder is a part
    of kind `rest`. `lens` is "fusion" where several lenses made the score: then `children` explain the score of each lens.
    `expansion` says what was added to the query. `strength` is that of `LensScore`, of a fusion the highest of its lenses.
    """

    lens: str
    query: str
    doc_id: str
    score: float
    parts: Sequence[Part]
    approximate: bool
    passage: ExplainedPassage
    matrix: Matrix | None = None
    children: Sequence["Explanation"] | None = None
    expansion: Mapping[str, Any] | None = None
    strength: float | None = None

    @property
    def note(self) -> str:
        """What a reader of the score should know, in brackets; empty if nothing."""
        notes = ["weak match"] if self.strength is not None and self.strength < 1 else []
        notes += ["approximate: measured by leaving words out"] if self.approximate else []
        return f" ({', '.join(notes)})" if notes else ""

    def to_json(self) -> dict[str, Any]:
        """Plain values, as the command line and the HTTP service write them."""
        plain: dict[str, Any] = _adapter().dump_python(self, mode="json")
        return plain

    @staticmethod
    def from_json(plain: Mapping[str, Any]) -> "Explanation":
        """The explanation from what `to_json` returned."""
        return _adapter().validate_python(plain)

    def heat(self) -> list[tuple[int, int, float]]:
        """Stretches of the passage's text with their contribution to the score."""
        return heat(self.parts, len(self.passage.text))


@cache
def _adapter() -> TypeAdapter[Explanation]:
    return TypeAdapter(Explanation)
