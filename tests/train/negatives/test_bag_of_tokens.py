"""Negatives from the token-bag index, by hand and with the bundled tokenizer."""

import numpy as np
import pytest

from trilens.encode.bag import BagEncoder
from trilens.encode.encoder import Encoded
from trilens.encode.models import bundled_models
from trilens.errors import BadInput
from trilens.represent import Sparse
from trilens.train.data.examples import Examples
from trilens.train.data.raw_example import RawExample
from trilens.train.negatives.bag_of_tokens import BagNegatives

from ..data.make import make_examples
from .words import CORPUS, WORDS, CountingEncoder


@pytest.fixture
def examples() -> Examples:
    return make_examples(CORPUS, [RawExample("cat mat", ["p0"], answers=["dog"]), RawExample("sea", ["p3"])])


def weights(*rows: dict[str, float]) -> Sparse:
    pairs = [sorted((WORDS.index(word), weight) for word, weight in row.items()) for row in rows]
    flat = [pair for row in pairs for pair in row]
    return Sparse(
        np.cumsum([0, *map(len, pairs)]).astype(np.int64),
        np.array([term for term, _ in flat], np.int32),
        np.array([weight for _, weight in flat], np.float32),
        len(WORDS),
    )


def test_search_excludes_positives(examples: Examples) -> None:
    """cat 2, mat 1, hat 0.5: p2 (cat dog mat) 3, p1 (cat hat) 2.5, p6 (dog hat) 0.5; p0 and its copy p5 are the positive."""
    negatives = BagNegatives.of(examples, CountingEncoder())
    top = negatives.search(weights({"cat": 2, "mat": 1, "hat": 0.5}, {"sea": 1}), [0, 1], 4)
    assert top.rows.tolist() == [[2, 1, 6, -1], [-1, -1, -1, -1]]
    assert top.scores[0].tolist() == [3, 2.5, 0.5, -np.inf]


def test_draw(examples: Examples) -> None:
    negatives = BagNegatives.of(examples, CountingEncoder())
    queries = weights({"cat": 2, "mat": 1, "hat": 0.5}, {"sea": 1})
    drawn = negatives.draw(queries, [0, 1], 3, seed=1, step=2)
    assert sorted(drawn[0].tolist()) == [1, 2, 6]
    assert len(set(drawn[1].tolist())) == 3
    assert 3 not in drawn[1]
    np.testing.assert_array_equal(drawn, negatives.draw(queries, [0, 1], 3, seed=1, step=2))
    assert set(negatives.draw(queries, [0, 1], 2, pool=2)[0].tolist()) == {1, 2}
    without = negatives.draw(queries, [0, 1], 1, answers="string", depth=3)
    assert without[0].tolist() == [1]  # the other two hold "dog"
    assert len({int(negatives.draw(queries, [0, 1], 1, step=step)[0, 0]) for step in range(12)}) > 1


def test_draws_repeat_if_there_are_too_few_passages() -> None:
    examples = make_examples(CORPUS[:2], [RawExample("cat", ["p0"]), RawExample("hat", ["p0", "p1"])])
    negatives = BagNegatives.of(examples, CountingEncoder())
    assert negatives.draw(weights({"cat": 1}), [0], 3).tolist() == [[1, 1, 1]]
    with pytest.raises(BadInput, match="example 1 has no negatives: all 2 passages are its positives"):
        negatives.draw(weights({"cat": 1}), [1], 3)


def test_with_a_real_tokenizer() -> None:
    encoder = BagEncoder(next(iter(bundled_models().values())))
    examples = make_examples(CORPUS, [RawExample("the cat on the mat", ["p0"])])
    bags = encoder.encode_queries([examples.query(0)]).bag
    assert bags is not None
    top = BagNegatives.of(examples, encoder).search(bags, [0], 2)
    assert top.rows.tolist() == [[2, 1]]


def test_invalid_input(examples: Examples) -> None:
    class NoBags(CountingEncoder):
        def encode_docs(self, *arguments: object, **options: object) -> Encoded:
            return Encoded()

    with pytest.raises(BadInput, match="makes no bags"):
        BagNegatives.of(examples, NoBags())
    with pytest.raises(BadInput, match="1 bags for 7 passages"):
        BagNegatives(examples, weights({"cat": 1}))
    with pytest.raises(BadInput, match="1 queries for 2 examples"):
        BagNegatives.of(examples, CountingEncoder()).search(weights({"cat": 1}), [0, 1], 2)
