"""The inverted index of one segment: statistics, length normalisation and merges."""

from pathlib import Path

import numpy as np
import pytest

from trilens.encode.bm25 import Bm25Encoder
from trilens.index.bm25_part import Bm25Part, LengthNorm, average_length
from trilens.represent.counts import Counts
from trilens.text.analysis import AnalysisConfig

NORM = LengthNorm(k1=2, b=0.5)
TEXTS = ["cat dog", "cat cat cat bird", "", "fish fish fish fish fish fish"]


def counts(texts: list[str]) -> Counts:
    counted = Bm25Encoder(AnalysisConfig(language="none")).encode_docs(texts).counts
    assert counted is not None
    return counted


def words(part: Bm25Part) -> list[str]:
    return [part.vocabulary.word(term) for term in range(len(part.vocabulary))]


def test_length_normalisation_by_hand() -> None:
    # k1 · (1 − b + b · length / average) with average 4
    assert NORM.of(np.array([2, 4, 6], np.int32), 4.0).tolist() == [1.5, 2, 2.5]
    assert (average_length(12, 3), average_length(0, 3), average_length(0, 0)) == (4, 1, 1)


def test_statistics_of_a_part(tmp_path: Path) -> None:
    Bm25Part.build(counts(TEXTS), NORM, tmp_path)
    part = Bm25Part.open(tmp_path)
    assert (len(part), part.lengths.tolist(), part.average_length) == (4, [2, 4, 0, 6], 3)
    assert dict(zip(words(part), part.frequencies.tolist(), strict=True)) == {"bird": 1, "cat": 2, "dog": 1, "fish": 1}


@pytest.mark.parametrize("keep", [[True, False, True, True], [False, True, False, False], [False] * 4])
def test_a_merge_drops_rows_and_terms_without_rows(tmp_path: Path, keep: list[bool]) -> None:
    for name, texts in (("a", TEXTS[:1]), ("b", TEXTS[1:])):
        Bm25Part.build(counts(texts), NORM, tmp_path / name)
    parts = [Bm25Part.open(tmp_path / name) for name in "ab"]
    Bm25Part.merge(parts, [np.array(keep[:1]), np.array(keep[1:])], NORM, tmp_path / "merged")
    Bm25Part.build(counts([text for text, kept in zip(TEXTS, keep, strict=True) if kept]), NORM, tmp_path / "fresh")
    merged, fresh = Bm25Part.open(tmp_path / "merged"), Bm25Part.open(tmp_path / "fresh")
    assert words(merged) == words(fresh)
    for name in ("lengths", "frequencies", "cell_ptr", "cells", "bests", "postings", "counts"):
        assert getattr(merged, name).tolist() == getattr(fresh, name).tolist()
