"""Alignments by hand."""

import numpy as np
import pytest

from trilens.lenses.alignment import Alignment

ALL = np.ones((2, 3), np.bool_)
NO_FLOOR = np.full(2, -np.inf, np.float32)
ALIKE = np.ones(2, np.float32)
SIMILARITIES = np.array([[0.1, 0.9, 0.3], [0.5, 0.2, 0.4]], np.float32)


def test_contributions_by_hand() -> None:
    found = Alignment(["a", "b"], ["x", "y", "z"], SIMILARITIES, ALL, NO_FLOOR, ALIKE)
    assert found.winners.tolist() == [1, 0]
    assert found.contributions.tolist() == pytest.approx([0.9, 0.5])
    assert found.score == pytest.approx(1.4)
    assert not found.imputed.any()


def test_imputed_contributions_by_hand() -> None:
    """The first token retrieved only z (0.3), below its floor; the second retrieved nothing at all."""
    retrieved = np.array([[False, False, True], [False, False, False]])
    found = Alignment(["a", "b"], ["x", "y", "z"], SIMILARITIES, retrieved, np.array([0.35, 0.25], np.float32), ALIKE)
    assert found.winners.tolist() == [-1, -1]
    assert found.imputed.all()
    assert found.contributions.tolist() == pytest.approx([0.35, 0.25])


def test_parts_and_matrix_by_hand() -> None:
    retrieved = np.array([[True, True, True], [False, False, False]])
    weights, floors = np.array([2, 1], np.float32), np.array([-np.inf, 0.25], np.float32)
    spans = ([(0, 1), None], [None, (4, 5), (6, 7)])
    found = Alignment(["a", "b"], ["x", "y", "z"], SIMILARITIES, retrieved, floors, weights, *spans)
    pair, imputed = found.parts()
    assert (pair.label, pair.target, pair.kind, pair.query_span, pair.doc_spans) == ("a", "y", "pair", (0, 1), ((4, 5),))
    assert pair.facts == pytest.approx({"query_weight": 2.0, "similarity": 0.45})
    assert (imputed.label, imputed.target, imputed.kind, imputed.doc_spans) == ("b", None, "imputed", ())
    assert found.matrix().values is SIMILARITIES
    assert (found.matrix().query_spans, found.matrix().doc_spans) == spans
