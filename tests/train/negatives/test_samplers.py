"""Samplers of negatives: one source, and several with a count each."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")

from trilens.train.data.examples import Examples
from trilens.train.data.raw_example import RawExample
from trilens.train.negatives.negative_table import NegativeTable, mined_table
from trilens.train.negatives.samplers import MixedSampler, NegativeSampler, RandomSampler, RefreshSampler, TableSampler

from ..data.make import make_examples
from .words import CORPUS


@pytest.fixture
def examples() -> Examples:
    return make_examples(
        CORPUS,
        [
            RawExample("cat mat", ["p0"], ["p1", "p3", "p4"]),
            RawExample("dog hat", ["p6"], ["p0", "p1", "p2"], answers=["cat"]),
        ],
    )


def mixed(examples: Examples, given: int = 1, mined: int = 1, random: int = 2) -> MixedSampler:
    mined_by_bm25 = mined_table(examples, "bm25", None, 5, first=1, least=0, answers=None, seed=1)
    tables = NegativeTable.of_given(examples, 1), mined_by_bm25
    samplers: list[NegativeSampler] = [*map(TableSampler, tables), RandomSampler(examples, 1)]
    return MixedSampler(examples, list(zip(samplers, (given, mined, random), strict=True)), 1)


def test_each_source_gives_its_count(examples: Examples) -> None:
    """The passages with a word of "cat mat", without p0 and its copy p5, are p1 and p2; p3, p4 and p6 have none."""
    sampler = mixed(examples)
    assert sampler.count == 4
    seen = []
    for epoch in range(50):
        given, mined, *random = sampler.draw(epoch, [0])[0].tolist()
        assert given in (1, 3, 4)
        assert mined in (1, 2) if given != 1 else mined == 2
        assert len({given, mined, *random}) == 4
        assert not {0, 5} & set(random)
        seen.append((given, mined))
    assert set(seen) == {(1, 2), (3, 1), (3, 2), (4, 1), (4, 2)}


def test_a_draw_depends_on_epoch_and_example_alone(examples: Examples) -> None:
    sampler, again = mixed(examples), mixed(examples)
    rows = {(epoch, row): sampler.draw(epoch, [row])[0].tolist() for epoch in range(9) for row in (0, 1)}
    assert len({tuple(row) for row in rows.values()}) > 9
    for epoch in reversed(range(9)):
        assert [row.tolist() for row in again.draw(epoch, [1, 0])] == [rows[epoch, 1], rows[epoch, 0]]


def test_sources_that_lack_candidates_are_filled_up(examples: Examples) -> None:
    """Of five passages that are no positive, given and mined have four; the sixth negative is a repetition."""
    drawn = mixed(examples, given=3, mined=2, random=1).draw(0, [0])[0].tolist()
    assert set(drawn[:3]) == {1, 3, 4}
    assert set(drawn[:5]) == {1, 2, 3, 4, 6}
    assert drawn[5] in drawn[:5]


def test_no_negatives(examples: Examples) -> None:
    assert [len(row) for row in mixed(examples, 0, 0, 0).draw(0, [0, 1])] == [0, 0]


def test_mined_negatives_have_no_answers(examples: Examples) -> None:
    """The ranking of "dog hat" is p6, its positive, then p1 and the longer p2; both have the answer "cat"."""

    def found(depth: int, **options: Any) -> list[int]:
        table = mined_table(examples, "bm25", None, depth, **{"first": 1, "least": 0, "answers": None, "seed": 1} | options)
        return table.candidates[1].tolist()

    assert found(9) == [1, 2]
    assert found(9, answers="string") == []
    assert found(9, first=3) == [2]
    assert found(2, first=2) == [1]


def test_only_refreshed_tables_are_saved(examples: Examples, tmp_path: Path) -> None:
    table = NegativeTable.of_given(examples, 1)
    samplers: list[tuple[NegativeSampler, int]] = [(TableSampler(table), 1), (RefreshSampler(examples, 1, least=0), 2)]
    sampler = MixedSampler(examples, samplers, 1)
    sampler.save(tmp_path / "state")
    assert [file.name for file in (tmp_path / "state").iterdir()] == ["1"]
    before = sampler.draw(3, [0, 1])
    sampler.load(tmp_path / "state")
    assert all(np.array_equal(*pair) for pair in zip(before, sampler.draw(3, [0, 1]), strict=True))
