"""`Hit`: a document that answers a query, with its best passage, its snippet and the score of every lens; and its JSON form."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NotRequired

from pydantic import PlainSerializer, TypeAdapter
from typing_extensions import TypedDict

from trilens.lenses.parts import Span
from trilens.text.document import Document


@dataclass(frozen=True, slots=True)
class LensScore:
    """The score and rank (1 is best) of a document through one lens.

    `rank` is None if the lens did not return the document, but another did. `contribution` is the part of the hit's score
    that comes from this lens: the contributions of all lenses add up to it.

    `standard`, in a fusion, is the number of standard deviations by which the score exceeds the mean of the lens's scores over
    all candidates. `strength` is the score on a scale on which passages that have nothing to do with the query are near 0 and
    a match below 1 is weak; None without `SearchOptions.details`, and if the lens has no such scale.
    """

    score: float
    rank: int | None
    contribution: float = 0.0
    standard: float | None = None
    strength: float | None = None


@dataclass(frozen=True, slots=True)
class Snippet:
    """The sentences of the best passage that match best: `text` is `start:end` of the document's text.

    `matches` are the spans of the words of `text` that made the scores, `title_matches` those of the document's title.
    """

    text: str
    start: int
    end: int
    matches: tuple[Span, ...] = ()
    title_matches: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Hit:
    """A document and its best passage, which is `start:end` of the document's text.

    `snippet` is None without `SearchOptions.details`.
    """

    doc_id: str
    rank: int
    score: float
    document: Document
    by_lens: Mapping[str, LensScore]
    start: int
    end: int
    snippet: Snippet | None = None

    @property
    def weak(self) -> bool | None:
        """Whether the document matches weakly by every lens that can tell; None if none can."""
        strengths = [seen.strength for seen in self.by_lens.values() if seen.strength is not None]
        return max(strengths) < 1 if strengths else None

    @property
    def passage(self) -> str:
        """The best passage; the whole text of a document that was not split."""
        return self.document.text[self.start : self.end]


class PassageSpan(TypedDict):
    """The best passage as characters of the document's text."""

    start: int
    end: int


class HitJson(TypedDict):
    """A hit as the command line and the HTTP service write it; `text` is the best passage, `document_text` the whole text."""

    doc_id: str
    rank: int
    score: float
    by_lens: Mapping[str, LensScore]
    title: str
    text: str
    passage: PassageSpan
    metadata: Mapping[str, Any]
    snippet: Snippet | None
    weak: bool | None
    document_text: NotRequired[str]


def _to_json(hit: Hit) -> HitJson:
    return {
        "doc_id": hit.doc_id,
        "rank": hit.rank,
        "score": hit.score,
        "by_lens": hit.by_lens,
        "title": hit.document.title,
        "text": hit.passage,
        "passage": {"start": hit.start, "end": hit.end},
        "metadata": hit.document.metadata,
        "snippet": hit.snippet,
        "weak": hit.weak,
    }


def _with_document_text(hit: Hit) -> HitJson:
    return {**_to_json(hit), "document_text": hit.document.text}


SerializedHit = Annotated[Hit, PlainSerializer(_to_json)]
HITS = TypeAdapter(list[SerializedHit])
"""Serialises hits."""
HITS_WITH_DOCUMENTS = TypeAdapter(list[Annotated[Hit, PlainSerializer(_with_document_text)]])
"""Serialises hits with the whole texts of their documents, so that `read_hit` can read them."""
SNIPPET: TypeAdapter[Snippet | None] = TypeAdapter(Snippet | None)


def read_hit(plain: Mapping[str, Any]) -> Hit:
    """A hit from its JSON form with the whole text of the document."""
    document = Document(plain["doc_id"], plain["document_text"], plain["title"], plain["metadata"])
    by_lens = {name: LensScore(**score) for name, score in plain["by_lens"].items()}
    snippet = SNIPPET.validate_python(plain["snippet"])
    return Hit(document.doc_id, plain["rank"], plain["score"], document, by_lens, **plain["passage"], snippet=snippet)
