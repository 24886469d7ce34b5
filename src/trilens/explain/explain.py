"""Explain the score of one document for one query: by one lens, by what re-ranks the candidates, or by a fusion."""

from dataclasses import replace

import numpy as np

from trilens.cancellation import require_wanted
from trilens.encode.encoder import Encoded
from trilens.errors import BadInput, CollectionDamaged
from trilens.explain.explanation import ExplainedPassage, Explanation
from trilens.lenses.lens import ExplainTarget
from trilens.lenses.parts import Part, ScoreParts
from trilens.search.candidates import Candidates
from trilens.search.fusion import FUSION, RankedDoc
from trilens.search.options import SearchOptions
from trilens.search.rerank import Rerank
from trilens.search.rerankers import IndexedReranker
from trilens.search.search import Search, require_query
from trilens.store.lens_set import LensSet
from trilens.store.snapshot import Snapshot
from trilens.text.passages import passage_text


def explain(snapshot: Snapshot, lenses: LensSet, query: str, doc_id: str, options: SearchOptions) -> Explanation:
    """Why a search with these options gives a document its score.

    The parts of a fusion are the contributions of its lenses, and its children the explanations of the lenses' scores. If the
    candidates are re-ranked, the new score is explained; if the first stage counts as well, the contributions of both.
    """
    require_query("the query", query)
    return explain_search(snapshot, Search(snapshot, lenses, [query], options), doc_id)


def explain_search(snapshot: Snapshot, search: Search, doc_id: str, candidates: Candidates | None = None) -> Explanation:
    """Why a search with one query gives a document its score.

    `candidates`, with the document, replace those of the search where it has only a part of the collection.
    """
    return _Explainer(snapshot, search, doc_id, candidates).explain()


class _Explainer:
    """The explanation of one document in one search."""

    def __init__(self, snapshot: Snapshot, search: Search, doc_id: str, candidates: Candidates | None) -> None:
        key = snapshot.key(doc_id)
        if key is None:
            raise BadInput(f"there is no document {doc_id!r} in the collection; expected the id of a document")
        self._snapshot = snapshot
        self._search = search
        self._candidates = candidates
        self._doc_id = doc_id
        self._key = key

    def explain(self) -> Explanation:
        search = self._search
        if rerank := search.options.rerank:
            return self._blended(rerank) if rerank.first_weight else self._reranked(rerank.by)
        children = [self._by_lens(name) for name in search.names]
        return children[0] if len(children) == 1 else self._fused(children)

    def _by_lens(self, name: str) -> Explanation:
        """The score of the document's best passage by a lens; of its first passage if the lens scores none."""
        [row], [score] = self._search.best_passages(name, np.array([self._key]), np.zeros(1, np.int64))
        known = row >= 0
        return self._lens_explanation(name, int(row) if known else self._first_row(), float(score) if known else None)

    def _reranked(self, name: str) -> Explanation:
        """Only passages that the other lenses return are re-ranked; they need not be the best ones by the new score."""
        [found] = self._search.found(also=[self._key])
        [single] = self._search.reranked([found.take(np.flatnonzero(found.keys == self._key))])
        known = single.ranks[name][0] > 0
        row, score = (int(single.rows[name][0]), float(single.scores[name][0])) if known else (self._first_row(), None)
        return self._lens_explanation(name, row, score)

    def _blended(self, rerank: Rerank) -> Explanation:
        """The standard scores of the first stage and of the reranker; the explanations of all their scores are the children."""
        search, first = self._search, self._search.first_stage
        candidates = self._candidates or search.candidates(also=[self._key])[0]
        doc = next((ranked for ranked in search.ranked(candidates) if ranked.key == self._key), None)
        if doc is None:
            return self._lens_explanation(rerank.by, self._first_row(), None)
        weights = {first: rerank.first_weight, rerank.by: 1.0}
        parts = [self._part(doc, name, weight) for name, weight in weights.items()]
        children = [self._by_lens(name) for name in search.names if name != rerank.by]
        children.append(self._lens_explanation(rerank.by, doc.row, doc.by_lens[rerank.by].score))
        # A search re-ranks only the best candidates, or all that a lens returned.
        position = int(np.searchsorted(candidates.keys, self._key))
        most = len(candidates.keys) if rerank.most is None else max(rerank.most, search.options.last_rank)
        returned = any(candidates.ranks[name][position] > 0 for name in search.names)
        return self._sum(doc, parts, children, approximate=not returned or int(candidates.ranks[first][position]) > most)

    def _lens_explanation(self, name: str, row: int, score: float | None) -> Explanation:
        require_wanted()
        search, passage = self._search, self._passage(row)
        [query] = search.queries
        reranker = search.reranker if search.options.rerank and name == search.options.rerank.by else None
        indexed = reranker is None or isinstance(reranker, IndexedReranker)
        params = reranker.params if isinstance(reranker, IndexedReranker) else search.options.params.get(name)
        text, encoded = (search.text(0, name), search.encoded[name]) if indexed else (query, Encoded())
        target = ExplainTarget(text, encoded, row, passage.text, score, params)
        parts: ScoreParts = (reranker or self._snapshot.searcher(name)).explain(target)
        expansion = search.expansions[name][0] if indexed and name in search.expansions else None
        return Explanation(
            name,
            query,
            self._doc_id,
            score or 0.0,
            parts.parts,
            parts.approximate,
            passage,
            parts.matrix,
            expansion=expansion,
            strength=None if score is None else search.details.strength(0, name, score),
        )

    def _fused(self, children: list[Explanation]) -> Explanation:
        search = self._search
        candidates = self._candidates or search.candidates(also=[self._key])[0]
        doc = next(ranked for ranked in search.ranked(candidates) if ranked.key == self._key)
        weights = {name: search.fusion.weight_for(candidates, name) for name in search.names}
        parts = [self._part(doc, name, weight, strongest=self._strongest(name, candidates)) for name, weight in weights.items()]
        # A document that no lens returns has no score in a search; as an additional candidate it would have had this one.
        returned = any(seen.rank is not None for seen in doc.by_lens.values())
        return self._sum(doc, parts, children, approximate=not returned)

    def _part(self, doc: RankedDoc, name: str, weight: float, **more: float | None) -> Part:
        """The contribution of a lens or a stage."""
        seen = doc.by_lens.get(name)
        facts: dict[str, float | str | None] = {
            "score": seen.score if seen else None,
            "rank": seen.rank if seen else None,
            "weight": weight,
            "standard": seen.standard if seen else None,
            "strength": self._search.details.strength(0, name, seen.score) if seen else None,
            **more,
        }
        return Part(name, seen.contribution if seen else 0.0, "lens", facts=facts)

    def _sum(self, doc: RankedDoc, parts: list[Part], children: list[Explanation], approximate: bool) -> Explanation:
        """The explanation of a score that lenses or stages add up to."""
        return replace(
            children[0],
            lens=FUSION,
            score=doc.score,
            parts=parts,
            approximate=approximate,
            passage=self._passage(doc.row) if doc.row >= 0 and doc.by_lens else children[0].passage,
            matrix=None,
            children=children,
            expansion=None,
            strength=max((child.strength for child in children if child.strength is not None), default=None),
        )

    def _strongest(self, name: str, candidates: Candidates) -> float | None:
        """The strength of the best candidate of a lens: how much the lens can tell about this query."""
        highest = candidates.highest(name)
        return None if highest is None else self._search.details.strength(0, name, highest)

    def _first_row(self) -> int:
        rows = self._snapshot.rows_of(np.array([self._key]))[0]
        if not len(rows):
            raise CollectionDamaged(f"no segment holds document {self._doc_id!r}; run `trilens check`")
        return int(rows.min())

    def _passage(self, row: int) -> ExplainedPassage:
        places = self._snapshot.places(np.array([row]))
        key, start, end = (int(column[0]) for column in (places.keys, places.starts, places.ends))
        text = passage_text(self._snapshot.documents([key])[key], start, end)
        return ExplainedPassage(text, len(text) - (end - start), start, end)
