"""The details of hits: snippets with their matches, and the strengths of scores."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from trilens.cancellation import require_wanted
from trilens.encode.encoder import Encoded
from trilens.lenses.lens import ScoreScale
from trilens.lenses.parts import Match
from trilens.search.hits import Hit, LensScore, Snippet
from trilens.search.snippets import make_snippet
from trilens.store.snapshot import Snapshot
from trilens.text.analysis import Analyzer
from trilens.text.passages import passage_text


class Details:
    """Adds details to the hits of a batch of queries, as the lenses of the search encode them."""

    def __init__(
        self,
        snapshot: Snapshot,
        queries: Sequence[str],
        encoded: Mapping[str, Encoded],
        params: Mapping[str, Any],
        scales: Mapping[str, ScoreScale],
    ) -> None:
        """`scales` are those of the lenses that can tell weak matches from others."""
        self._snapshot = snapshot
        self._queries = queries
        self._encoded = encoded
        self._params = params
        self._scales = scales

    def add(self, query: int, hits: Sequence[Hit], rows: Sequence[int]) -> list[Hit]:
        """The hits of one query with details; `rows` are their best passages, -1 where unknown."""
        require_wanted()
        known = [number for number, row in enumerate(rows) if row >= 0]
        snippets = dict(zip(known, self._snippets(query, [(hits[number], rows[number]) for number in known]), strict=True))
        return [
            replace(hit, snippet=snippets.get(number), by_lens=self.strengths(query, hit.by_lens))
            for number, hit in enumerate(hits)
        ]

    def strengths(self, query: int, by_lens: Mapping[str, LensScore]) -> dict[str, LensScore]:
        """The scores of one document with their strengths."""
        return {name: replace(seen, strength=self.strength(query, name, seen.score)) for name, seen in by_lens.items()}

    def strength(self, query: int, lens: str, score: float) -> float | None:
        """The strength of a score; None if the lens cannot tell."""
        return self._scales[lens].strength(query, score) if lens in self._scales else None

    def _snippets(self, query: int, hits: Sequence[tuple[Hit, int]]) -> list[Snippet]:
        texts = [passage_text(hit.document, hit.start, hit.end) for hit, _ in hits]
        rows, place = [row for _, row in hits], np.array([query])
        by_lens = [
            self._snapshot.searcher(name).matches(queries.take(place), rows, texts, self._params.get(name))
            for name, queries in self._encoded.items()
        ]
        found = [[matches[number] for matches in by_lens] for number in range(len(hits))]
        if not any(map(any, found)):  # such as vectors, which have no places
            found = [[shared] for shared in _shared_words(self._queries[query], texts)]
        return [make_snippet(hit, matches) for (hit, _), matches in zip(hits, found, strict=True)]


def _shared_words(query: str, texts: Sequence[str]) -> list[list[Match]]:
    """The words of the texts that the query has too."""
    analyzer = Analyzer()
    numbers = {word: number for number, word in enumerate(analyzer.terms(query))}
    return [
        [Match(numbers[word], start, end, 1.0) for word, start, end in analyzer.places(text) if word in numbers]
        for text in texts
    ]
