"""Occlusion: the parts of a score that no sum of known terms makes, measured by leaving words out."""

from collections.abc import Callable, Sequence

from trilens.kernels.array_types import Float64s
from trilens.lenses.parts import Part, Span
from trilens.text.passages import WORD


def stretches(text: str, most: int) -> list[Span]:
    """The words of a text or, if it has more than `most`, stretches of equally many words."""
    words = [match.span() for match in WORD.finditer(text)]
    size = max(1, -(-len(words) // most))
    return [(words[start][0], words[min(start + size, len(words)) - 1][1]) for start in range(0, len(words), size)]


def parts_by_leaving_out(
    text: str, spans: Sequence[Span], score: Callable[[list[str]], Float64s], query: bool = False
) -> list[Part]:
    """The drop in score when each span is left out of the text, a passage or, with `query`, a query.

    `score` scores the whole text and the shortened ones. The drops need not add up to the score of the whole.
    """
    if not spans:
        return []
    scores = score([text, *(text[:start] + text[end:] for start, end in spans)])
    drops = (scores[0] - scores[1:]).tolist()
    return [
        Part(text[slice(*span)], drop, "asked", query_span=span)
        if query
        else Part(text[slice(*span)], drop, "token", doc_spans=(span,))
        for span, drop in zip(spans, drops, strict=True)
    ]
