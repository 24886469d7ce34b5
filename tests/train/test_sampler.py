import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("sentence_transformers")

from torch.utils.data import DataLoader

from trilens.errors import BadInput
from trilens.train.batches import plan
from trilens.train.lists import Lists
from trilens.train.sampler import PlannedBatchSampler, planned_sampler

LENGTHS = np.random.default_rng(0).integers(1, 100, 50)


def test_it_gives_the_plan_of_the_epoch() -> None:
    groups = Lists.of([[at // 2] for at in range(50)])
    sampler = PlannedBatchSampler(list(range(50)), 8, seed=3, lengths=LENGTHS, groups=groups, world=2)
    for epoch in (0, 1, 0):
        sampler.set_epoch(epoch)
        expected = plan(LENGTHS, size=8, seed=3, epoch=epoch, world=2, groups=groups)
        assert list(sampler) == [batch.tolist() for batch in expected]
        assert len(sampler) == len(expected)


def test_the_trainer_can_make_it_and_a_loader_can_use_it() -> None:
    make = planned_sampler(lengths=LENGTHS, sizes={50: 10, 100: 5}, order=lambda epoch: np.arange(10) + epoch)
    sampler = make(
        list(range(50)), batch_size=4, drop_last=False, valid_label_columns=["label"], generator=None, seed=1
    )  # as get_batch_sampler of the trainer calls it
    sampler.set_epoch(7)
    loader = DataLoader(list(range(50)), batch_sampler=sampler)
    assert sorted(number for batch in loader for number in batch.tolist()) == list(range(7, 17))


def test_as_many_lengths_as_examples() -> None:
    with pytest.raises(BadInput, match="3 examples, and there are 50 lengths"):
        PlannedBatchSampler([1, 2, 3], 2, lengths=LENGTHS)
