"""Weighted terms as text."""

import pytest

from trilens.errors import BadInput
from trilens.text.vectors import check_vector, read_vector, write_vector


def test_terms_and_weights_come_back() -> None:
    assert read_vector('{"cat": 1.5, "Katze": 2, "ü": 0.25}') == {"cat": 1.5, "Katze": 2.0, "ü": 0.25}
    assert read_vector("{}") == {}


def test_a_term_of_weight_zero_is_left_out() -> None:
    assert check_vector({"cat": 0, "dog": 0.0, "cow": 1}) == {"cow": 1.0}


def test_equal_vectors_give_equal_texts() -> None:
    assert write_vector({"b": 1.0, "a": 2.0}) == write_vector({"a": 2.0, "b": 1.0}) == '{"a":2.0,"b":1.0}'


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("cat", "is not JSON"),
        ("[1, 2]", "expected an object of terms and weights"),
        ('"cat"', "expected an object of terms and weights"),
        ('{"": 1}', "non-empty string"),
        ('{"cat": -1}', "weight of term 'cat' is -1"),
        ('{"cat": NaN}', "weight of term 'cat' is nan"),
        ('{"cat": Infinity}', "weight of term 'cat' is inf"),
        ('{"cat": "1"}', "weight of term 'cat' is '1'"),
        ('{"cat": true}', "weight of term 'cat' is True"),
        ('{"cat": null}', "weight of term 'cat' is None"),
        ('{"\\ud800": 1}', "lone surrogate"),
    ],
)
def test_what_is_no_vector(text: str, complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        read_vector(text)
