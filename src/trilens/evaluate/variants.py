"""A variant: one named way to search that can be measured, written in a word: a lens, a lens with settings, or a fusion.

`multi`  `multi:method=xtr,probes=64`  `sparse:query=bag`  `dense:method=exact`  `rrf`  `zscore:bm25=1,dense=2`  `all`
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trilens.collection import Collection
from trilens.errors import BadInput
from trilens.explain.explanation import Explanation
from trilens.index import multi_params, sparse_params
from trilens.search.fusion import Fusion
from trilens.search.hits import Hit
from trilens.search.recipes import choose_lenses, fit_recipe, parse_fusion

PARSERS = {
    "multi": multi_params.parse_params,
    "sparse": sparse_params.parse_params,
    "tokens": sparse_params.parse_params,
    "lexical": sparse_params.parse_params,
    "vectors": sparse_params.parse_params,
}
EXACT = "method=exact"


@dataclass(frozen=True)
class Variant:
    """`name` is the text it was read from; the rest are arguments of a search."""

    name: str
    lenses: Sequence[str]
    params: Mapping[str, Any] = field(default_factory=dict)
    fusion: Fusion | None = None
    exact: bool = False

    @property
    def used(self) -> list[str]:
        """The lenses that take part, also the one that re-ranks."""
        more = [self.fusion.rerank] if self.fusion and self.fusion.rerank else []
        return list(dict.fromkeys([*self.lenses, *more]))

    def search(self, collection: Collection, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """The best k documents of each query."""
        return collection.search(queries, k, lenses=self.lenses, params=self.params, fusion=self.fusion, exact=self.exact)

    def explain(self, collection: Collection, query: str, doc_id: str) -> Explanation:
        """Why a document gets its score."""
        return collection.explain(query, doc_id, self.lenses, params=self.params, fusion=self.fusion)


def parse_variant(text: str, present: Sequence[str]) -> Variant:
    """What a text means for a collection with these lenses."""
    name, colon, settings = (part.strip() for part in text.partition(":"))
    if name in present:
        if not colon:
            return Variant(name, [name])
        if name in PARSERS:
            return Variant(text, [name], {name: PARSERS[name](json.dumps(_settings(text, settings)))})
        if settings == EXACT:
            return Variant(text, [name], exact=True)
        raise BadInput(f"variant {text!r}: the lens {name} has no setting but {EXACT}; expected {name} or {name}:{EXACT}")
    try:
        fusion = fit_recipe(parse_fusion(text), present)
    except BadInput as error:
        raise BadInput(
            f"variant {text!r} does not begin with a lens of the collection ({', '.join(present)}) and is no fusion: {error}"
        ) from error
    lenses = choose_lenses(fusion, None, present)
    return Variant(text, lenses, fusion=fusion)


def _settings(text: str, settings: str) -> dict[str, Any]:
    """`a=1,b=x` as the JSON that `search` takes."""
    found: dict[str, Any] = {}
    for piece in settings.split(","):
        name, equals, value = (part.strip() for part in piece.partition("="))
        if not name or not equals or not value or name in found:
            raise BadInput(f"variant {text!r} has {piece.strip()!r}; expected LENS:NAME=VALUE,NAME=VALUE, each name once")
        try:
            found[name] = json.loads(value)
        except json.JSONDecodeError:
            found[name] = value
    return found
