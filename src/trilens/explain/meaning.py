"""Why the dense lens gave a document its score: what each word of the passage gives.

The vector of a mean-pooled model is the sum of its token states s over its length, so the score falls apart without
remainder: q · d = Σ_t ⟨q, s_t⟩ / ‖Σ s‖. Of any other model it is measured how much the score falls without each word; that
is no decomposition, so such parts are marked as approximate.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trilens.encode.tokens import Place
from trilens.explain.explanation import Explanation, Part, with_rest
from trilens.explain.subject import Subject
from trilens.text.passages import WORD

# More than this between the sum of the parts and the score is no rounding: then the vector is not the mean of the states.
ROUNDING = 1e-3
MOST_OCCLUDED = 512


def explain_vector(subject: Subject) -> Explanation:
    """One part for each word of the passage, in the order of the text, and what belongs to no word."""
    assert subject.encoded.dense is not None and subject.score is not None
    query = subject.encoded.dense.vectors[0].astype(np.float64)
    parts = _by_states(subject, query, subject.score)
    approximate = parts is None
    if parts is None:
        parts = _by_occlusion(subject, query, subject.score)
    return Explanation(
        subject.lens, subject.query, subject.doc_id, subject.score, parts, approximate=approximate, passage=subject.passage
    )


def _by_states(subject: Subject, query: NDArray[np.float64], score: float) -> list[Part] | None:
    model, text = subject.lenses.model.encoder, subject.passage.text
    states = model.doc_states(text)
    if states is None or states.shape[1] != len(query):
        return None
    states = states.astype(np.float64)
    shares = states @ query / max(float(np.linalg.norm(states.sum(axis=0))), 1e-12)
    if abs(shares.sum() - score) > ROUNDING:
        return None
    places = model.read_tokens(text, "doc").places[: len(shares)]
    parts, special = _words(text, places, shares)
    parts.append(Part("special tokens", special, "rest"))
    return with_rest(parts, score)


def _words(text: str, places: Sequence[Place | None], shares: NDArray[np.float64]) -> tuple[list[Part], float]:
    """The tokens joined to words, and what is left for those that are no part of the text."""
    sums: dict[int, list[float]] = {}
    spans: dict[int, tuple[int, int]] = {}
    special = 0.0
    for number, (place, share) in enumerate(zip(places, shares.tolist(), strict=True)):
        if place is None:
            special += share
            continue
        word = place.word if place.word >= 0 else -2 - number
        first, last = spans.get(word, (place.start, place.end))
        spans[word] = (min(first, place.start), max(last, place.end))
        sums.setdefault(word, []).append(share)
    parts = [Part(text[slice(*spans[word])], sum(found), "token", doc_spans=(spans[word],)) for word, found in sums.items()]
    return parts, special


def _by_occlusion(subject: Subject, query: NDArray[np.float64], score: float) -> list[Part]:
    """How much lower the score is without each word."""
    text = subject.passage.text
    spans = [found.span() for found in WORD.finditer(text)][:MOST_OCCLUDED]
    without = [text[:start] + text[end:] for start, end in spans]
    vectors = subject.lenses.model.encode_docs([text, *without], heads=["dense"]).dense
    assert vectors is not None
    scores = vectors.vectors.astype(np.float64) @ query
    drops = (scores[0] - scores[1:]).tolist()
    parts = [Part(text[slice(*span)], drop, "token", doc_spans=(span,)) for span, drop in zip(spans, drops, strict=True)]
    return with_rest(parts, score, "all words together")
