"""The parts of a score: the remainder, and the contribution of each stretch of a text."""

from trilens.lenses.parts import Part, heat, with_rest


def test_heat_by_hand() -> None:
    parts = [Part("a", 2.0, "own", doc_spans=((0, 2), (4, 5))), Part("b", -0.5, "own", doc_spans=((1, 3),))]
    assert heat(parts, 6) == [(0, 1, 1.0), (1, 2, 0.5), (2, 3, -0.5), (4, 5, 1.0)]


def test_heat_of_nothing() -> None:
    assert heat([], 6) == heat([], 0) == heat([Part("special tokens", 1.0, "rest")], 3) == []


def test_the_remainder_is_a_part_if_it_exceeds_rounding() -> None:
    parts = [Part("a", 1.0, "own"), Part("b", 0.5, "own")]
    assert with_rest(parts, 1.5) == with_rest(parts, 1.5 + 5e-7) == parts
    assert with_rest(parts, 1.75) == [*parts, Part("rounding", 0.25, "rest")]
    assert with_rest([], -2.0, "all words together") == [Part("all words together", -2.0, "rest")]
