"""Pseudo-relevance feedback: settings, and the interpolation of query and feedback terms."""

import pytest

from trilens.errors import BadInput
from trilens.lenses.feedback import Expansion, mix, parse_expansion, to_sparse


def test_both_sides_are_scaled_to_the_weight_of_the_query() -> None:
    # The query weighs 4 and the feedback 2, so feedback terms count twice; each side has half of the weight.
    mixture, added = mix({"a": 3.0, "b": 1.0}, {"b": 0.5, "c": 1.5}, 0.5)
    assert mixture == pytest.approx({"a": 1.5, "b": 0.5 + 0.5, "c": 1.5})
    assert added == pytest.approx({"b": 0.5, "c": 1.5})
    assert sum(mixture.values()) == pytest.approx(4)


@pytest.mark.parametrize(("weight", "mixture"), [(1.0, {"a": 2.0}), (0.0, {"b": 2.0})])
def test_terms_without_weight_are_left_out(weight: float, mixture: dict[str, float]) -> None:
    assert mix({"a": 2.0}, {"b": 5.0}, weight)[0] == mixture


@pytest.mark.parametrize(("original", "feedback"), [({}, {"a": 1.0}), ({"a": 1.0}, {}), ({"a": 1.0}, {"b": 0.0})])
def test_a_query_without_feedback_terms_is_unchanged(original: dict[str, float], feedback: dict[str, float]) -> None:
    assert mix(original, feedback, 0.5) == (original, {})


def test_weighted_terms_become_sparse_rows() -> None:
    rows = to_sparse([{7: 0.5, 2: 1.0}, {}, {3: 2.0}], 9)
    assert (rows.indptr.tolist(), rows.terms.tolist(), rows.weights.tolist()) == ([0, 2, 2, 3], [2, 7, 3], [1, 0.5, 2])
    assert rows.dim == 9


@pytest.mark.parametrize(
    ("text", "expansion"),
    [
        ("on", Expansion()),
        ("docs=3", Expansion(docs=3)),
        (" terms = 20, weight=0.6 ", Expansion(terms=20, weight=0.6)),
        ("common=1", Expansion(common=1.0)),
    ],
)
def test_settings_from_text(text: str, expansion: Expansion) -> None:
    assert Expansion.model_validate(parse_expansion(text)) == expansion
    assert Expansion.model_validate(parse_expansion(str(expansion))) == expansion


@pytest.mark.parametrize(
    "text", ["", "off", "docs", "docs=", "docs=x", "docs=1,docs=2", "nose=1", "docs=0", "weight=2", "docs=1.5"]
)
def test_settings_that_cannot_be_used(text: str) -> None:
    with pytest.raises(BadInput) as caught:
        Expansion.model_validate(parse_expansion(text))
    assert "\n" not in str(caught.value)
