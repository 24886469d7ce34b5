"""Shingle overlap against hand-counted trigrams."""

from trilens.train.negatives.near_duplicates import overlap


def test_overlap_by_hand() -> None:
    assert overlap("a b c d", "A b, c d") == 0  # a,b,c — b,c,d against a,b,comma — b,comma,c — comma,c,d
    assert overlap("a b c d", "x a b c d y") == 1  # within it
    assert overlap("a b c d", "a b c x y") == 1 / 2
    assert overlap("", "") == 1
    assert overlap("one", "two") == 0
