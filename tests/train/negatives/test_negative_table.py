"""Tables of negatives, and refreshing them with a model."""

from pathlib import Path

import numpy as np
import pytest

from trilens.errors import BadInput
from trilens.train.data.examples import Examples
from trilens.train.data.raw_example import RawExample
from trilens.train.negatives.negative_table import NegativeTable, refresh
from trilens.train.negatives.score_rules import ScoreRules

from ..data.make import make_examples
from .words import CORPUS, CountingEncoder


@pytest.fixture
def examples() -> Examples:
    return make_examples(
        CORPUS,
        [
            RawExample("cat mat", ["p0"], ["p3", "p4"], teacher=[5, 2, 1]),
            RawExample("dog hat cat", ["p2", "p6"], answers=["ship"]),
            RawExample("ship sea", ["p3"], ["p0"]),
        ],
    )


@pytest.mark.parametrize("lens", ["dense", "sparse", "lexical", "tokens", "multi"])
def test_refresh_takes_top_hits_without_positives(examples: Examples, lens: str) -> None:
    """For "cat mat" p2 scores 2, p1 1, all others 0; p0 is the positive and p5 its copy."""
    counted: list[int] = []
    table = refresh(examples, CountingEncoder(), lens, 4, least=0, progress=counted.append)
    assert table.candidates[0].tolist()[:2] == [2, 1]
    rounding = 0.1 if lens == "multi" else 0.01  # token vectors are kept in 4 bits a dimension, weights in 8
    assert table.scores[0].tolist()[:2] == pytest.approx([2, 1], abs=rounding)
    assert table.candidates[1].tolist()[0] == 1  # "cat hat" scores 2
    assert not {0, 5} & set(table.candidates[0].tolist())
    assert not {2, 6} & set(table.candidates[1].tolist())
    assert (sum(counted), table.made_by, len(table)) == (7 + 3, "counting", 3)


def test_ranks_answers_and_rules(examples: Examples) -> None:
    """The ranking of "cat mat" is p0, p2, p5 with 2, p1 with 1, then zeros by number."""
    encoder = CountingEncoder()
    assert refresh(examples, encoder, "dense", 4, first=4, least=0).candidates[0].tolist() == [1]
    ruled = refresh(examples, encoder, "dense", 5, rules=ScoreRules(relative_margin=0.4), least=0)
    assert ruled.candidates[0].tolist() == [1, 3]  # below 1.2
    assert 3 in refresh(examples, encoder, "dense", 7, least=0).candidates[1].tolist()
    assert 3 not in refresh(examples, encoder, "dense", 7, answers="string", least=0).candidates[1].tolist()


def test_too_few_candidates_are_filled_up(examples: Examples) -> None:
    table = refresh(examples, CountingEncoder(), "sparse", 7, least=4)
    for example in range(3):
        numbers = table.candidates[example].tolist()
        assert len(numbers) == len(set(numbers)) >= 4
        assert not set(numbers) & set(examples.positives(example).tolist())
    assert not {0, 5} & set(table.candidates[0].tolist())
    assert np.isneginf(table.scores[2]).sum() == 4  # nothing shares a word with "ship sea"


def test_draws_depend_on_seed_epoch_and_example(examples: Examples) -> None:
    table = refresh(examples, CountingEncoder(), "dense", 7)
    draws = [table.draw(epoch, 0, 3).tolist() for epoch in range(8)]
    assert draws == [table.draw(epoch, 0, 3).tolist() for epoch in range(8)]
    assert len({tuple(draw) for draw in draws}) > 1
    assert all(len(set(draw)) == 3 for draw in draws)
    assert set(table.draw(0, 0, 20).tolist()) == set(table.candidates[0].tolist())
    assert len(table.draw(0, 0, 20)) == 20


def test_negatives_of_the_data(examples: Examples) -> None:
    table = NegativeTable.of_given(examples)
    assert [table.candidates[index].tolist() for index in range(3)] == [[3, 4], [], [0]]
    assert table.scores[0].tolist() == [2, 1]
    assert np.isnan(table.scores[2]).all()
    assert table.draw(0, 1, 5).tolist() == []
    filled = NegativeTable.of_given(examples, least=3)
    assert filled.candidates[0].tolist()[:2] == [3, 4]
    assert len(filled.candidates[1]) == 3


def test_save_and_load_table(examples: Examples, tmp_path: Path) -> None:
    first, second = NegativeTable.of_given(examples), refresh(examples, CountingEncoder(), "dense", 5, seed=9)
    for table in (first, second):
        table.save(tmp_path / "table")
        loaded = NegativeTable.load(tmp_path / "table")
        assert [loaded.draw(1, index, 4).tolist() for index in range(3)] == [
            table.draw(1, index, 4).tolist() for index in range(3)
        ]
        np.testing.assert_array_equal(loaded.scores.values, table.scores.values)
        assert (loaded.seed, loaded.made_by) == (table.seed, table.made_by)
    assert [path.name for path in tmp_path.iterdir()] == ["table"]
    (tmp_path / "table").rename(tmp_path / "table.old")  # killed between two names
    assert NegativeTable.load(tmp_path / "table").seed == 9


def test_damaged_tables(examples: Examples, tmp_path: Path) -> None:
    NegativeTable.of_given(examples).save(tmp_path / "table")
    path = tmp_path / "table" / "candidates.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"\7")
    with pytest.raises(BadInput, match=r"candidates.npy is damaged"):
        NegativeTable.load(tmp_path / "table")
    path.unlink()
    with pytest.raises(BadInput, match="holds no table of negatives"):
        NegativeTable.load(tmp_path / "table")


def test_invalid_options(examples: Examples) -> None:
    with pytest.raises(BadInput, match="expected one of dense, sparse"):
        refresh(examples, CountingEncoder(), "bm25")
    with pytest.raises(BadInput, match="ranks are 9 to 8"):
        refresh(examples, CountingEncoder(), "dense", 8, first=9)
