import numpy as np
import pytest

from trilens.errors import BadInput
from trilens.text.document import Document
from trilens.train.data.raw_example import RawExample

from .make import make_examples

CORPUS = [Document("a", "one"), Document("b", "two", "T"), Document("c", "one"), Document("d", "three")]


def test_equal_texts_share_a_key() -> None:
    """Passages a and c have the same text, and two queries are equal: keys are 2 query texts, then passages."""
    examples = make_examples(CORPUS, [RawExample("q", ["a", "b"]), RawExample("r", ["c"]), RawExample("q", ["d"])])
    groups = examples.groups()
    assert [groups[index].tolist() for index in range(3)] == [[0, 2, 3], [1, 2], [0, 5]]
    assert examples.twins(1).tolist() == [0]
    assert examples.document(1) == CORPUS[1]
    assert examples.passage(1) == "T\ntwo"


def test_take() -> None:
    examples = make_examples(
        CORPUS,
        [RawExample("q", ["a"], ["b"], ["x", "y"], [1, 2], "id0"), RawExample("r", ["c"]), RawExample("s", ["d"], ["a", "b"])],
    )
    taken = examples.take(np.array([2, 0]))
    assert len(taken) == 2
    assert [taken.query(index) for index in range(2)] == ["s", "q"]
    assert taken.negatives(0).tolist() == [0, 1]
    assert (taken.answers(1), taken.query_id(1), taken.passage_count) == (["x", "y"], "id0", 4)
    assert taken.teacher(0) is None
    assert taken.teacher(1).tolist() == [1, 2]  # type: ignore[union-attr]
    assert examples.fingerprint() != taken.fingerprint()


def test_narrowed() -> None:
    """Passage a is dropped, so c is the first with its text."""
    examples = make_examples(CORPUS, [RawExample("q", ["d"], ["b"]), RawExample("r", ["c"]), RawExample("s", ["a"])])
    narrow = examples.take(np.array([0, 1])).narrowed()
    assert [narrow.passage_id(number) for number in range(narrow.passage_count)] == ["b", "c", "d"]
    assert [narrow.positives(0).tolist(), narrow.negatives(0).tolist(), narrow.positives(1).tolist()] == [[2], [0], [1]]
    assert narrow.twins(1).tolist() == [1]
    assert narrow.document(0) == CORPUS[1]
    assert [narrow.query(index) for index in range(2)] == ["q", "r"]


def questions(passages: int, each: int) -> list[RawExample]:
    return [RawExample(f"query {passage} {number}", [f"p{passage}"]) for passage in range(passages) for number in range(each)]


@pytest.mark.parametrize("apart", [True, False])
def test_held_out_examples_are_not_in_the_rest(apart: bool) -> None:
    corpus = [Document(f"p{number}", f"text {number}") for number in range(40)]
    examples = make_examples(corpus, [*questions(40, 5), RawExample("query 0 0", ["p1"])])
    rest, held = examples.hold_out(10, seed=3, apart=apart)
    queries = {held.query(index) for index in range(len(held))}
    passages = {int(number) for index in range(len(held)) for number in held.positives(index)}
    assert len(held) == len(queries) == 10
    assert queries.isdisjoint(rest.query(index) for index in range(len(rest)))
    in_rest = {int(number) for index in range(len(rest)) for number in rest.positives(index)}
    assert passages.isdisjoint(in_rest) == apart
    assert len(rest) <= 201 - 10 if apart else len(rest) in (190, 191)
    again = examples.hold_out(10, seed=3, apart=apart)[1]
    assert [again.query(index) for index in range(10)] == [held.query(index) for index in range(10)]
    other = examples.hold_out(10, seed=4, apart=apart)[1]
    assert [other.query(index) for index in range(10)] != [held.query(index) for index in range(10)]


def test_invalid_hold_out() -> None:
    examples = make_examples(CORPUS, [RawExample("q", ["a"]), RawExample("r", ["c"]), RawExample("s", ["a"])])
    for count in (0, 3):
        with pytest.raises(BadInput, match=f"{count} examples are to be held out of 3"):
            examples.hold_out(count, 0)
    with pytest.raises(BadInput, match="0 would remain for training"):
        examples.hold_out(1, 0)
    rest, held = examples.hold_out(1, 0, apart=False)
    assert (len(rest), len(held)) == (2, 1)
