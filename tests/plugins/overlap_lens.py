"""A plug-in lens with its own representation, index and search: the share of a query's letters that a passage has."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from trilens.encode.encoder import Encoded, Progress
from trilens.index.topk import TopK
from trilens.kernels.array_types import Float32s, Int64s, Mask
from trilens.lenses.lens import Colour, ExplainTarget, Lens, LensConfig, LensParams, LensSetup, LensType, Searcher
from trilens.lenses.parts import Part, ScoreParts


class OverlapConfig(LensConfig):
    ignore: str = " .,"


class OverlapParams(LensParams):
    power: float = Field(default=1.0, gt=0)


class LetterSets(list[frozenset[str]]):
    def take(self, rows: Any) -> "LetterSets":
        return LetterSets(self[int(row)] for row in rows)


class OverlapLens(Lens):
    name = "overlap"

    def __init__(self, setup: LensSetup) -> None:
        self.encoder, self.ignore, self.fingerprint = self, setup.config.ignore, f"overlap {setup.config.ignore}"

    def encode_docs(self, texts: Sequence[str], progress: Progress | None = None) -> Encoded:
        return Encoded(other=LetterSets(frozenset(text.lower()) - set(self.ignore) for text in texts))

    encode_queries = encode_docs

    def build(self, encoded: Encoded, folder: Path, shared: Sequence[Any] = ()) -> None:
        folder.mkdir(exist_ok=True)
        (folder / "letters.json").write_text(json.dumps([sorted(letters) for letters in [*encoded.other]]))  # type: ignore[misc]

    def merge(self, parts: Sequence[Any], keep: Sequence[Mask], folder: Path, shared: Sequence[Any] = ()) -> None:
        kept = [row for part, mask in zip(parts, keep, strict=True) for row, wanted in zip(part, mask, strict=True) if wanted]
        self.build(Encoded(other=LetterSets(map(frozenset, kept))), folder)

    def open(self, folder: Path) -> Any:
        return [frozenset(letters) for letters in json.loads((folder / "letters.json").read_text())]

    def searcher(self, parts: Sequence[Any], live: Sequence[Mask | None], shared: Sequence[Any] = ()) -> Searcher:
        return OverlapSearcher(parts, live)


class OverlapSearcher(Searcher):
    def score(self, queries: Encoded, rows: Int64s, params: Any = None, allowed: Mask | None = None) -> Float32s:
        letters, power = [row for part in self._parts for row in part], (params or OverlapParams()).power
        scores = np.full(rows.shape, -np.inf, np.float32)
        for (query, place), row in np.ndenumerate(rows):
            wanted = queries.other[query]  # type: ignore[index]
            scores[query, place] = (len(wanted & letters[row]) / len(wanted)) ** power if row >= 0 else -np.inf
        return scores

    def search(self, queries: Encoded, k: int, allowed: Mask | None = None, exact: bool = False, params: Any = None) -> TopK:
        masks = [(self._mask(i, allowed), len(part)) for i, part in enumerate(self._parts)]
        live = np.concatenate([np.ones(size, bool) if mask is None else mask for mask, size in masks])
        rows = np.tile(np.flatnonzero(live), (len(queries.other), 1))  # type: ignore[arg-type]
        order = np.argsort(-(scores := self.score(queries, rows, params)), axis=1, kind="stable")[:, :k]
        return TopK(np.take_along_axis(rows, order, 1), np.take_along_axis(scores, order, 1))

    def explain(self, target: ExplainTarget) -> ScoreParts:
        shared = sorted(target.encoded.other[0] & set(target.passage.lower()))  # type: ignore[index]
        return ScoreParts([Part(letter, (target.score or 0.0) / len(shared), "own") for letter in shared])


BLUE = Colour("#123456", "#abcdef")
OVERLAP = LensType("overlap", "letters in common", BLUE, OverlapLens, config=OverlapConfig, params=OverlapParams)
