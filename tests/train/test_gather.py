"""Two processes have the gradient of one process with the gathered batch, for every loss."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")

from tests.train.plain import Floats
from tests.train.processes import LOSSES, PARTS, part_of, run, whole_batch
from trilens.errors import BadInput
from trilens.train.gather import _require_alike, alone, joined

ROOT = Path(__file__).parents[2]
Found = dict[str, Floats]


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory: pytest.TempPathFactory) -> list[Found]:
    """The results of two gloo processes, for all losses."""
    folder = tmp_path_factory.mktemp("processes")
    outputs = [folder / f"{rank}.npz" for rank in range(2)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]), "OMP_NUM_THREADS": "1"}
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.train.processes", str(rank), "2", str(folder / "meeting"), str(output)],
            cwd=ROOT,
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank, output in enumerate(outputs)
    ]
    for process in running:
        errors = process.communicate(timeout=300)[1]
        assert process.returncode == 0, errors
    return [dict(np.load(output)) for output in outputs]


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_equal_those_of_one_process(name: str, two_processes: list[Found]) -> None:
    expected = run(name, whole_batch(), alone)
    assert any(np.abs(expected[key]).max() > 1e-3 for key in expected if key != "value")
    for actual in two_processes:
        for key, value in expected.items():
            np.testing.assert_allclose(actual[f"{name}/{key}"], value, atol=1e-10, err_msg=key)


def test_shapes_differ_between_processes() -> None:
    first, second = (part_of(whole_batch(), rows) for rows in PARTS)
    assert len(first.queries.ids) != len(second.queries.ids)
    assert first.queries.ids.shape[-1] != second.queries.ids.shape[-1]
    assert first.docs.ids.shape[-1] != second.docs.ids.shape[-1]


def test_single_process_is_unchanged() -> None:
    tensor = torch.randn(2, 3)
    assert joined(tensor) is tensor and alone(tensor, ragged=1) is tensor


def test_only_the_token_axis_may_differ() -> None:
    _require_alike([[3, 5, 4], [2, 7, 4]], ragged=1)
    with pytest.raises(BadInput, match="expected the same beyond the first axis"):
        _require_alike([[3, 5, 4], [2, 7, 4]], ragged=None)
    with pytest.raises(BadInput, match="expected the same beyond the first axis"):
        _require_alike([[3, 2, 5, 4], [2, 3, 7, 4]], ragged=2)
