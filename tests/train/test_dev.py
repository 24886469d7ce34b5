"""Dev metrics of vectors that are given."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")

from trilens.encode.encoder import Encoded
from trilens.errors import BadInput
from trilens.represent import Dense
from trilens.train.dev import DevSet, by_name, dev_metrics

# One dimension: the passages are ranked by their numbers, in the same order for every query.
PASSAGES = ["9", "8", "7", "6", "5"]


class Numbers:
    """Encodes a text as the number that it is."""

    def encode_docs(self, texts: Sequence[str], report: Any = None, heads: Any = None) -> Encoded:
        return Encoded(dense=Dense(np.array([[float(text)] for text in texts], np.float32)))

    def encode_queries(self, texts: Sequence[str], heads: Any = None) -> Encoded:
        return self.encode_docs(texts)


def test_hits_at_any_cutoff() -> None:
    """The relevant passages have ranks 1 and 3."""
    dev = DevSet(["1", "2"], PASSAGES, [frozenset({0}), frozenset({2})])
    encoder: Any = Numbers()
    values = dev_metrics(encoder, dev, ["dense"], names=["Hit@1", "Hit@2", "Success@3", "RR@10"])
    assert values == {"dense:Hit@1": 0.5, "dense:Hit@2": 0.5, "dense:Hit@3": 1.0, "dense:RR@10": pytest.approx((1 + 1 / 3) / 2)}


def test_names_of_measures() -> None:
    assert [*by_name(["Success@20", "Hit@20", "nDCG@5"])] == ["Hit@20", "nDCG@5"]
    with pytest.raises(BadInput, match="measure is 'beauty'; expected one such as"):
        by_name(["beauty"])
