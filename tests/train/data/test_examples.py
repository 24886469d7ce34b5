import numpy as np
import pytest

from trilens.errors import BadInput
from trilens.text.document import Document
from trilens.train.data.example import Example
from trilens.train.data.mixture import Mixture

from .make import make_examples

CORPUS = [Document("a", "one"), Document("b", "two", "T"), Document("c", "one"), Document("d", "three")]


def test_equal_texts_share_a_key() -> None:
    """Passages a and c have the same text, and two queries are the same: keys are 2 query texts, then passages."""
    examples = make_examples(CORPUS, [Example("q", ["a", "b"]), Example("r", ["c"]), Example("q", ["d"])])
    groups = examples.groups()
    assert [groups[at].tolist() for at in range(3)] == [[0, 2, 3], [1, 2], [0, 5]]
    assert examples.twins(1).tolist() == [0]
    assert examples.document(1) == CORPUS[1]
    assert examples.passage(1) == "T\ntwo"


def test_examples_can_be_taken() -> None:
    examples = make_examples(
        CORPUS, [Example("q", ["a"], ["b"], ["x", "y"], [1, 2], "id0"), Example("r", ["c"]), Example("s", ["d"], ["a", "b"])]
    )
    taken = examples.take(np.array([2, 0]))
    assert len(taken) == 2
    assert [taken.query(at) for at in range(2)] == ["s", "q"]
    assert taken.negatives(0).tolist() == [0, 1]
    assert (taken.answers(1), taken.query_id(1), taken.passage_count) == (["x", "y"], "id0", 4)
    assert taken.teacher(0) is None
    assert taken.teacher(1).tolist() == [1, 2]  # type: ignore[union-attr]
    assert examples.fingerprint() != taken.fingerprint()


def test_examples_can_do_with_the_passages_that_they_name() -> None:
    """Passage a is gone, so c, which has the same text, is the first of its kind."""
    examples = make_examples(CORPUS, [Example("q", ["d"], ["b"]), Example("r", ["c"]), Example("s", ["a"])])
    narrow = examples.take(np.array([0, 1])).narrowed()
    assert [narrow.passage_id(number) for number in range(narrow.passage_count)] == ["b", "c", "d"]
    assert [narrow.positives(0).tolist(), narrow.negatives(0).tolist(), narrow.positives(1).tolist()] == [[2], [0], [1]]
    assert narrow.twins(1).tolist() == [1]
    assert narrow.document(0) == CORPUS[1]
    assert [narrow.query(at) for at in range(2)] == ["q", "r"]


def questions(passages: int, each: int) -> list[Example]:
    return [Example(f"query {passage} {number}", [f"p{passage}"]) for passage in range(passages) for number in range(each)]


@pytest.mark.parametrize("apart", [True, False])
def test_what_is_held_out_is_not_in_the_rest(apart: bool) -> None:
    corpus = [Document(f"p{number}", f"text {number}") for number in range(40)]
    examples = make_examples(corpus, [*questions(40, 5), Example("query 0 0", ["p1"])])
    rest, held = examples.hold_out(10, seed=3, apart=apart)
    queries = {held.query(at) for at in range(len(held))}
    passages = {int(number) for at in range(len(held)) for number in held.positives(at)}
    assert len(held) == len(queries) == 10
    assert queries.isdisjoint(rest.query(at) for at in range(len(rest)))
    in_rest = {int(number) for at in range(len(rest)) for number in rest.positives(at)}
    assert passages.isdisjoint(in_rest) == apart
    assert len(rest) <= 201 - 10 if apart else len(rest) in (190, 191)
    again = examples.hold_out(10, seed=3, apart=apart)[1]
    assert [again.query(at) for at in range(10)] == [held.query(at) for at in range(10)]
    other = examples.hold_out(10, seed=4, apart=apart)[1]
    assert [other.query(at) for at in range(10)] != [held.query(at) for at in range(10)]


def test_too_much_to_hold_out() -> None:
    examples = make_examples(CORPUS, [Example("q", ["a"]), Example("r", ["c"]), Example("s", ["a"])])
    for count in (0, 3):
        with pytest.raises(BadInput, match=f"{count} examples are to be held out of 3"):
            examples.hold_out(count, 0)
    with pytest.raises(BadInput, match="0 remain for training"):
        examples.hold_out(1, 0)
    rest, held = examples.hold_out(1, 0, apart=False)
    assert (len(rest), len(held)) == (2, 1)


def mixture(weights: list[float]) -> Mixture:
    examples = make_examples([Document("p", "text")], [Example(f"q{at}", ["p"]) for at in range(30)])
    examples.columns.sources[20:] = 1
    return Mixture(examples, weights, seed=5)


def test_weights_say_how_often_examples_come() -> None:
    mixed = mixture([0.25, 2])
    counts = np.zeros((4, 30), int)
    for epoch in range(4):
        order = mixed.order(epoch)
        np.testing.assert_array_equal(order, mixture([0.25, 2]).order(epoch))
        np.add.at(counts[epoch], order, 1)
    assert counts[:, :20].sum(axis=1).tolist() == [5, 5, 5, 5]
    assert (counts[:, :20].sum(axis=0) == 1).all()  # four quarters make each example come once
    assert (counts[:, 20:] == 2).all()
    assert not np.array_equal(mixed.order(0), mixed.order(1))


def test_the_order_is_shuffled() -> None:
    order = mixture([1, 1]).order(0)
    assert sorted(order.tolist()) == list(range(30))
    assert (order[:20] >= 20).any()


def test_a_mixture_can_be_held_out_from() -> None:
    mixed = mixture([1, 3])
    rest, held = mixed.hold_out(4, apart=False)
    assert len(held) == 4
    assert len(rest.examples) == 26
    assert len(rest.order(0)) == (rest.examples.columns.sources == 0).sum() + 3 * (rest.examples.columns.sources == 1).sum()


def test_bad_mixtures() -> None:
    with pytest.raises(BadInput, match="expected numbers above 0"):
        mixture([1, 0])
    with pytest.raises(BadInput, match="expected 0 or more"):
        mixture([1, 1]).order(-1)
