"""Explanations as plain values."""

import json

import numpy as np
import pytest

from trilens import Collection
from trilens.explain.explanation import ExplainedPassage, Explanation
from trilens.lenses.parts import Matrix, Part

from ..lenses.explained import LENSES

PASSAGE = ExplainedPassage("abcdef", 0, 0, 6)


def test_plain_values(collection: Collection) -> None:
    found = json.loads(json.dumps(collection.explain("old engine", "car").to_json()))
    assert set(found) == {
        *("lens", "query", "doc_id", "score", "approximate", "parts", "passage", "matrix", "children", "expansion", "strength")
    }
    assert [child["lens"] for child in found["children"]] == LENSES
    assert set(found["parts"][0]) == {"label", "score", "kind", "target", "query_span", "doc_spans", "facts"}
    assert found["passage"]["text"].startswith("On car\n")


def test_a_matrix_is_rounded() -> None:
    matrix = Matrix(["q"], ["a", "b"], np.array([[0.123456, -1]], np.float32), [(0, 1)], [(0, 1), None])
    plain = Explanation("multi", "q", "d", 0.1, [], False, PASSAGE, matrix=matrix).to_json()
    assert plain["matrix"]["values"][0] == pytest.approx([0.1235, -1], abs=1e-7)
    assert (plain["matrix"]["query_spans"], plain["matrix"]["doc_spans"]) == ([[0, 1]], [[0, 1], None])


def test_heat_by_hand() -> None:
    parts = [Part("a", 2.0, "own", doc_spans=((0, 2), (4, 5))), Part("b", -0.5, "own", doc_spans=((1, 3),))]
    found = Explanation("bm25", "q", "d", 1.5, parts, False, PASSAGE)
    assert found.heat() == [(0, 1, 1.0), (1, 2, 0.5), (2, 3, -0.5), (4, 5, 1.0)]
