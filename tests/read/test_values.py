from collections.abc import Callable

import pytest

from trilens.errors import BadInput
from trilens.read.values import a_list, a_number, a_string, an_id, an_object, kind_of, scores, strings

RECORD = {"text": "t", "empty": "", "null": None, "number": 1, "list": ["a", "b"], "mixed": ["a", 1], "scores": [1, 0.5]}


def test_values_of_the_right_type_are_returned() -> None:
    assert an_object(RECORD) is RECORD
    assert a_string(RECORD, "missing", "text", "number") == "t"
    assert a_string(RECORD, "empty") == ""
    assert (a_list(RECORD, "mixed"), a_list(RECORD, "null"), a_list(RECORD, "missing")) == (["a", 1], [], [])
    assert (strings(RECORD, "list"), strings(RECORD, "missing")) == (["a", "b"], [])
    assert (scores(RECORD, "scores"), scores(RECORD, "null"), scores(RECORD, "missing")) == ([1.0, 0.5], None, None)
    assert (a_number(2, "n"), type(a_number(2, "n"))) == (2.0, float)
    assert (an_id("x", "id"), an_id(7, "id"), an_id(0, "id")) == ("x", "7", "0")


@pytest.mark.parametrize(
    ("access", "message"),
    [
        (lambda: an_object([1]), "the record is an array; expected an object"),
        (lambda: a_string(RECORD, "number"), "the field 'number' is the number 1; expected a string"),
        (lambda: a_string(RECORD, "null"), "the field 'null' is null; expected a string"),
        (lambda: a_string({"a": 1}, "x", "y"), "there is no field 'x' or 'y'; found 'a'"),
        (lambda: a_string({}, "x"), "there is no field 'x'; found no fields at all"),
        (lambda: a_list(RECORD, "text"), "the field 'text' is a string; expected an array"),
        (lambda: strings(RECORD, "mixed"), "the field 'mixed' holds the number 1; expected strings"),
        (lambda: scores(RECORD, "list"), "the field 'list' holds a string; expected numbers"),
        (lambda: a_number(True, "n"), "the field 'n' holds true or false; expected numbers"),
        (lambda: an_id("", "docid"), "docid is empty; expected a string or an integer"),
        (lambda: an_id(None, "docid"), "docid is null"),
        (lambda: an_id(True, "docid"), "docid is true or false"),
        (lambda: an_id(1.5, "docid"), "docid is the number 1.5"),
    ],
)
def test_values_of_another_type_are_errors(access: Callable[[], object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        access()


def test_long_numbers_are_shortened_in_messages() -> None:
    assert kind_of(10**50) == "the number 1" + "0" * 19
