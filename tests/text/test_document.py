import math
from typing import Any

import pytest

from trilens.errors import BadInput
from trilens.text.document import MAX_ID_BYTES, Document, require_utf8


def test_equal_metadata_has_equal_json() -> None:
    first = Document("1", "t", metadata={"b": [1, {"d": "é", "c": None}], "a": 2.5})
    second = Document("1", "t", metadata={"a": 2.5, "b": [1, {"c": None, "d": "é"}]})
    assert first.metadata_json() == second.metadata_json() == '{"a":2.5,"b":[1,{"c":null,"d":"é"}]}'


def test_the_longest_id_is_counted_in_bytes() -> None:
    assert Document("é" * (MAX_ID_BYTES // 2), "t").text == "t"
    with pytest.raises(BadInput, match=f"is longer than {MAX_ID_BYTES} bytes; use a shorter id"):
        Document("é" * (MAX_ID_BYTES // 2) + "x", "t")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("", "t"), "doc_id is ''; expected a non-empty string"),
        ((1, "t"), "doc_id is 1; expected a non-empty string"),
        (("a\ud800", "t"), r"doc_id holds the lone surrogate U\+D800 at character 1"),
        (("a", None), "text of document 'a' is NoneType; expected a string"),
        (("a", "t", 5), "title of document 'a' is int; expected a string"),
        (("a", "t\udfff"), r"text of document 'a' holds the lone surrogate U\+DFFF"),
        (("a", "t", "", [1]), "metadata of document 'a' is list; expected an object"),
        (("a", "t", "", {"x": math.inf}), "metadata of document 'a' cannot be written as JSON"),
        (("a", "t", "", {"x": {1, 2}}), "metadata of document 'a' cannot be written as JSON"),
        (("a", "t", "", {"x": "\ud800"}), "metadata of document 'a' holds the lone surrogate"),
    ],
)
def test_invalid_documents_are_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        Document(*arguments)


def test_characters_outside_the_basic_plane_are_utf8() -> None:
    require_utf8("text", "a😀\U0010ffff")
