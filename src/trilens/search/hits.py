"""`Hit`: a document that answers a query, with the passage that does so best and the score of every lens."""

from collections.abc import Mapping
from dataclasses import dataclass

from trilens.text.document import Document


@dataclass(frozen=True, slots=True)
class LensScore:
    """What one lens says of a document: its score, and its rank among all documents (1 is best).

    `rank` is None where the lens did not return the document, but another did. `contribution` is what the lens gave to the
    score of the hit: the contributions of all lenses add up to it.
    """

    score: float
    rank: int | None
    contribution: float = 0.0


@dataclass(frozen=True, slots=True)
class Hit:
    """`start` and `end` cut the best passage out of the document's text."""

    doc_id: str
    rank: int
    score: float
    document: Document
    by_lens: Mapping[str, LensScore]
    start: int
    end: int

    @property
    def passage(self) -> str:
        """The best passage; the whole text of a document that was not split."""
        return self.document.text[self.start : self.end]
