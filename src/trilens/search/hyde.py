"""Query expansion by a language model, which writes a hypothetical passage that answers the query.

The dense lens searches the mean of the query's and the passage's vector (HyDE, Gao et al. 2022). Other lenses search the query
with the passage appended (query2doc, Wang et al. 2023); as the passage is longer, `bm25` repeats the query.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import field_validator

from trilens.cancellation import require_wanted
from trilens.encode.encoder import Encoded
from trilens.errors import ServiceFailed
from trilens.language.answers import ask_once
from trilens.language.model import LanguageModel
from trilens.lenses.registry import lens_type, lens_types, lenses_with
from trilens.store.lens_set import LensSet

MAX_TOKENS = 256
PROMPT = "Write a short passage, of about a hundred words, that answers this search query. Answer with the passage alone.\n\n"


class Hyde(LanguageModel):
    """The language model that writes the passages, its `prompt`, and the `lenses` that use them (None: all that can)."""

    prompt: str = PROMPT
    lenses: tuple[str, ...] | None = None

    @field_validator("lenses")
    @classmethod
    def _known_lenses(cls, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if unknown := [name for name in names or () if name not in lens_types()]:
            raise ValueError(f"lenses has {unknown[0]!r}, which is no lens; expected some of {', '.join(lens_types())}")
        return names

    def applies_to(self, names: Iterable[str]) -> list[str]:
        """Those of the lenses that search with generated passages."""
        able = lenses_with("generated")
        return [name for name in names if name in able and (self.lenses is None or name in self.lenses)]


@dataclass(frozen=True, slots=True)
class Expanded:
    """Queries with generated passages: as each lens searches them, their texts if a lens has other ones, and what was added."""

    encoded: dict[str, Encoded]
    texts: dict[str, list[str]]
    infos: dict[str, list[dict[str, Any]]]


@lru_cache(maxsize=256)
def imagine(hyde: Hyde, query: str) -> str:
    """A passage, written by the language model, that answers the query.

    It is cached, so that an explanation is about the passage that was searched for.
    """
    passage = ask_once(hyde, hyde.prompt + query, MAX_TOKENS)
    if not passage:
        raise ServiceFailed(f"{hyde.address} wrote no passage; try another model, or leave HyDE out")
    return passage


def expand_with_passages(
    lenses: LensSet, encoded: Mapping[str, Encoded], queries: Sequence[str], hyde: Hyde, params: Mapping[str, Any]
) -> Expanded:
    """The queries with one generated passage each, for every lens that supports it."""
    passages = []
    for query in queries:
        require_wanted()
        passages.append(imagine(hyde, query))
    expanded = Expanded(dict(encoded), {}, {})
    for name in hyde.applies_to(encoded):
        known = lens_type(name)
        if known.hyde:
            expanded.encoded[name] = lenses[name].mix_passages(encoded[name], lenses[name].encoder.encode_docs(passages))
        else:
            copied = [" ".join([query] * known.query_copies) for query in queries]
            expanded.texts[name] = [f"{query} {passage}" for query, passage in zip(copied, passages, strict=True)]
            expanded.encoded.update(lenses.encode_queries([name], expanded.texts[name], params))
        method = "hyde" if known.hyde else "query2doc"
        expanded.infos[name] = [{"method": method, "model": hyde.model, "passage": passage} for passage in passages]
    return expanded
