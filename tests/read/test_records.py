import math
from typing import Any

import pytest

from trilens.errors import BadInput
from trilens.read.decode import Place
from trilens.read.records import AUTOMATIC, Fields, to_document
from trilens.text.document import Document


def make(value: object, fields: Fields = AUTOMATIC) -> Document:
    return to_document((Place("f.jsonl", 7), value), fields)


@pytest.mark.parametrize("id_field", ["_id", "id", "doc_id", "docid"])
@pytest.mark.parametrize("text_field", ["text", "contents", "body", "content"])
def test_the_usual_names_are_found(id_field: str, text_field: str) -> None:
    assert make({id_field: "a", text_field: "b", "title": "c"}) == Document("a", "b", "c")


def test_the_first_usual_name_wins_and_the_rest_is_metadata() -> None:
    document = make({"text": "t", "body": "b", "id": "2", "_id": "1", "year": 1999, "title": None})
    assert document == Document("1", "t", "", {"body": "b", "id": "2", "year": 1999})


def test_chosen_names_win_over_the_usual_ones() -> None:
    record = {"id": "1", "key": "k", "text": "t", "abstract": "a", "title": "t", "name": "n"}
    document = make(record, Fields(id="key", text="abstract", title="name"))
    assert document == Document("k", "a", "n", {"id": "1", "text": "t", "title": "t"})


@pytest.mark.parametrize(("number", "doc_id"), [(7, "7"), (-1, "-1"), (2.5, "2.5"), (10**30, "1" + "0" * 30)])
def test_numbers_become_ids(number: float, doc_id: str) -> None:
    assert make({"id": number, "text": "t"}).doc_id == doc_id


def test_members_of_metadata_join_the_other_fields() -> None:
    record = {"id": "1", "text": "t", "url": "u", "metadata": {"lang": "en", "url": "u", "deep": {"a": [1]}}}
    assert make(record).metadata == {"url": "u", "lang": "en", "deep": {"a": [1]}}
    assert make({"id": "1", "text": "t", "metadata": "free text"}).metadata == {"metadata": "free text"}
    assert make({"id": "1", "text": "t", "metadata": None}).metadata == {}


def test_two_values_for_one_metadata_name_are_an_error() -> None:
    with pytest.raises(BadInput, match=r"f.jsonl:7: 'url' is both a field and a member"):
        make({"id": "1", "text": "t", "url": "u", "metadata": {"url": "v"}})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1], "f.jsonl:7: the record is an array; expected an object"),
        (3, "f.jsonl:7: the record is the number 3; expected an object"),
        ({"id": "1", "abstract": "t"}, r"no text field; .*'body'.*found 'id', 'abstract': .* --text-field"),
        ({}, "no text field; .* found no fields at all"),
        ({"id": True, "text": "t"}, "the id field 'id' is true or false; expected a string or a number"),
        ({"id": None, "text": "t"}, "the id field 'id' is null"),
        ({"id": math.nan, "text": "t"}, "the id field 'id' is the number nan"),
        ({"id": "", "text": "t"}, "f.jsonl:7: doc_id is ''"),
        ({"id": "1", "text": None}, "the field 'text' is null; expected a string"),
        ({"id": "1", "text": ["a"]}, "the field 'text' is an array"),
        ({"id": "1", "text": "t", "title": 5}, "the field 'title' is the number 5"),
        ({"id": "1", "text": "a\ud800"}, r"f.jsonl:7: text of document '1' holds the lone surrogate U\+D800"),
        ({"id": "1", "text": "t", "score": math.nan}, "f.jsonl:7: metadata of document '1' cannot be written as JSON"),
    ],
)
def test_what_cannot_be_a_document_names_the_place_and_the_reason(value: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message) as caught:
        make(value)
    assert "\n" not in str(caught.value)


def test_a_record_with_many_fields_gives_a_short_message() -> None:
    with pytest.raises(BadInput, match="and 988 more") as caught:
        make({f"field {number} {'x' * 100}": 1 for number in range(1000)})
    assert len(str(caught.value)) < 1000


def test_a_chosen_field_that_is_missing_is_named() -> None:
    with pytest.raises(BadInput, match="no id field; expected 'key', found 'id', 'text'"):
        make({"id": "1", "text": "t"}, Fields(id="key"))
