"""One interface to all explanations: a query, a document, and one lens or the fusion of several."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from trilens.encode.encoder import Encoded
from trilens.explain.alignment import explain_alignment
from trilens.explain.counting import explain_counts
from trilens.explain.explanation import Explanation, Part
from trilens.explain.meaning import explain_vector
from trilens.explain.subject import Subject, first_row, key_of, passage_at, subject_of
from trilens.explain.terms import explain_late_terms, explain_terms
from trilens.search.filling import fill_scores
from trilens.search.fusion import lens_weights
from trilens.search.searcher import (
    Answer,
    Plan,
    encode_and_expand,
    find,
    late_head,
    require_query,
    rerank_candidates,
    used_lenses,
)
from trilens.store.lenses import Lenses
from trilens.store.snapshot import Snapshot

FUSION = "fusion"
EXPLAINERS: dict[str, Callable[[Subject], Explanation]] = {
    "bm25": explain_counts,
    "dense": explain_vector,
    "sparse": explain_terms,
    "tokens": explain_terms,
    "lexical": explain_terms,
    "vectors": explain_terms,
    "multi": explain_alignment,
}


def explain(snapshot: Snapshot, lenses: Lenses, query: str, doc_id: str, plan: Plan) -> Explanation:
    """Why a search by this plan gives a document its score; of one lens alone that is the lens's own score.

    Where several lenses are fused, the parts are what each of them gives, and its children are the explanations of the lenses.
    Where one re-ranks what the others found, its score is explained.
    """
    require_query("the query", query)
    key = key_of(snapshot, doc_id)
    if plan.rerank:
        return _explain_reranked(snapshot, lenses, query, doc_id, key, plan)
    for name in plan.names:
        _ = lenses[name]
    encoded, told = encode_and_expand(snapshot, lenses, [query], plan, plan.names)
    children = []
    for name in plan.names:
        child = _explain_lens(snapshot, lenses, name, query, doc_id, encoded[name], plan)
        children.append(replace(child, expansion=told[name][0]) if name in told else child)
    if len(children) == 1:
        return children[0]
    (answer,) = find(snapshot, lenses, [query], encoded, plan, also=[key])
    return _explain_fusion(snapshot, answer, key, children, plan)


def _explain_reranked(snapshot: Snapshot, lenses: Lenses, query: str, doc_id: str, key: int, plan: Plan) -> Explanation:
    """Only the passages that the other lenses found are re-ranked, which need not be the ones that this lens likes best."""
    assert plan.rerank
    late = late_head(lenses, plan)
    encoded, told = encode_and_expand(snapshot, lenses, [query], plan, used_lenses(plan, late))
    seen = (fill_scores(snapshot, name, encoded[name], [[key]], plan.settings(name), plan.where)[0] for name in plan.names)
    found = [one[key] for one in seen if key in one]
    [ranked] = rerank_candidates(snapshot, lenses, [query], encoded, [found], plan, late)
    row, score = (ranked[0].row, ranked[0].score) if ranked else (first_row(snapshot, key), None)
    asked = encoded.get(plan.rerank, Encoded())
    about = (snapshot, lenses, plan.rerank, query, doc_id, asked, plan.rerank_settings)
    subject = Subject(*about, row, score, passage_at(snapshot, row))
    explained = explain_late_terms(subject) if late else EXPLAINERS[plan.rerank](subject)
    return replace(explained, expansion=told[plan.rerank][0]) if plan.rerank in told else explained


def _explain_lens(
    snapshot: Snapshot, lenses: Lenses, name: str, query: str, doc_id: str, encoded: Encoded, plan: Plan
) -> Explanation:
    subject = subject_of(snapshot, lenses, name, query, doc_id, encoded, plan.settings(name), plan.where)
    return EXPLAINERS[name](subject)


def _explain_fusion(snapshot: Snapshot, answer: Answer, key: int, children: list[Explanation], plan: Plan) -> Explanation:
    one, row = next((found, row) for found, row in zip(answer.order, answer.rows, strict=True) if found.key == key)
    weights = lens_weights(plan.fusion, plan.names)
    parts = []
    for name in plan.names:
        seen = one.by_lens.get(name)
        facts: Mapping[str, float | str | None] = {
            "score": seen.score if seen else None,
            "rank": seen.rank if seen else None,
            "weight": weights[name],
        }
        parts.append(Part(name, seen.contribution if seen else 0.0, "lens", facts=facts))
    passage = passage_at(snapshot, row) if row >= 0 and one.by_lens else children[0].passage
    # A document that no lens returns has no score in a search; as one more candidate it would have had this one.
    returned = any(seen.rank is not None for seen in one.by_lens.values())
    first = children[0]
    return Explanation(FUSION, first.query, first.doc_id, one.score, parts, not returned, passage, children=children)
