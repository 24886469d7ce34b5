import math
from typing import Any

import pytest

from trilens.errors import BadInput
from trilens.text.document import MAX_ID_BYTES, MAX_METADATA_LEVELS, Document, require_utf8


def test_equal_metadata_has_equal_json() -> None:
    first = Document("1", "t", metadata={"b": [1, {"d": "é", "c": None}], "a": 2.5})
    second = Document("1", "t", metadata={"a": 2.5, "b": [1, {"c": None, "d": "é"}]})
    assert first.metadata_json() == second.metadata_json() == '{"a":2.5,"b":[1,{"c":null,"d":"é"}]}'


def nested(levels: int, kind: Any = list) -> Any:
    """A list or object in so many levels."""
    value: Any = 1
    for _ in range(levels):
        value = {"a": value} if kind is dict else [value]
    return value


def test_metadata_has_a_greatest_depth() -> None:
    assert Document("a", "t", metadata={"n": nested(MAX_METADATA_LEVELS - 1)}).doc_id == "a"
    assert Document("a", "t", metadata=nested(MAX_METADATA_LEVELS, dict)).doc_id == "a"
    endless: dict[str, Any] = {}
    endless["self"] = endless
    for metadata in (nested(MAX_METADATA_LEVELS + 1, dict), {"n": (nested(900),)}, {"n": nested(5000, dict)}, endless):
        with pytest.raises(BadInput, match="metadata of document 'a' is nested more than 32 levels deep") as caught:
            Document("a", "t", metadata=metadata)
        assert "\n" not in str(caught.value)


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
