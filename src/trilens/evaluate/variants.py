"""A variant: one named way to search that is measured. It is written as text:

`multi`                         a lens
`multi:method=xtr,probes=64`    a lens with search parameters
`dense:exact=true`              a lens without approximation
`rrf`  `zscore:bm25=1,dense=2`  a fusion
`rm3={"lenses": ["bm25"], "expand": "on"}`   any search options as JSON, with or without a name
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from trilens.collection import Collection
from trilens.encode.cross_folder import CrossFolder
from trilens.encode.models import resolve_model
from trilens.errors import BadInput
from trilens.explain.explanation import Explanation
from trilens.search.hits import Hit
from trilens.search.options import SearchOptions, parse_settings

NAMED_JSON = re.compile(r"(?:(?P<name>[^={]+)=)?(?P<options>\{.*\})", re.DOTALL)


@dataclass(frozen=True)
class Variant:
    """A name and the options of a search."""

    name: str
    options: SearchOptions

    @property
    def lenses(self) -> list[str]:
        """The lenses that are searched."""
        return list(self.options.lenses or ())

    @property
    def used(self) -> list[str]:
        """The lenses that take part, with the re-ranking one."""
        return self.options.used_lenses

    def search(self, collection: Collection, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """The best k documents of each query."""
        return collection.search(queries, k, options=self.options)

    def explain(self, collection: Collection, query: str, doc_id: str) -> Explanation:
        """Why a document gets its score."""
        return collection.explain(query, doc_id, options=self.options)


def parse_variant(text: str, present: Sequence[str], fusions: Mapping[str, str] = MappingProxyType({})) -> Variant:
    """The variant that a text describes, for a collection with these lenses whose model has these default fusions."""
    if matched := NAMED_JSON.fullmatch(text.strip()):
        name = (matched["name"] or text).strip()
        return Variant(name, _resolved(text, _from_json(text, matched["options"]), present, fusions))
    lens, colon, settings = (part.strip() for part in text.partition(":"))
    if lens in present:
        params = parse_settings(text, settings) if colon else {}
        exact = params.pop("exact", False)
        options: dict[str, Any] = {"lenses": [lens], "params": {lens: params} if params else {}}
        return Variant(text, _resolved(text, options | ({"exact": exact} if exact is not False else {}), present, fusions))
    try:
        return Variant(text, SearchOptions(fusion=text).resolve(present, {}))
    except BadInput as error:
        raise BadInput(
            f"variant {text!r} does not begin with a lens of the collection ({', '.join(present)}) and is no fusion: {error}"
        ) from error


def _from_json(text: str, options: str) -> dict[str, Any]:
    try:
        given: dict[str, Any] = json.loads(options)
    except json.JSONDecodeError as error:
        raise BadInput(f"variant {text!r} is not JSON ({error}); expected an object of search options") from error
    if depth := {"k", "offset"} & given.keys():
        raise BadInput(f"variant {text!r} sets {min(depth)}; the depth of an evaluation comes from its measures: leave it out")
    return given


def _resolved(text: str, options: dict[str, Any], present: Sequence[str], fusions: Mapping[str, str]) -> SearchOptions:
    """The options for a collection with these lenses: mistakes are found before anything is encoded.

    Tuned fusions do not count here, so that a variant means the same in every collection of a model.
    """
    try:
        resolved = SearchOptions(**options).resolve(present, {}, lambda: fusions)
        if resolved.rerank and resolved.rerank.is_cross:
            CrossFolder.open(resolve_model(resolved.rerank.require_model()))
        return resolved
    except BadInput as error:
        raise BadInput(f"variant {text!r}: {error}") from error
