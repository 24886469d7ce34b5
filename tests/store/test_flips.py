"""Whatever byte of a collection is damaged: no reader dies, and no wrong answer passes `check`."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from .flips import FAULTS, REFUSED

HEADER = 128  # bytes of a .npy file before its numbers


class Driver:
    """The process that forks readers, seen from the test."""

    def __init__(self, folder: Path) -> None:
        path = os.pathsep.join(entry for entry in sys.path if entry)
        # A pool of OpenMP threads does not survive a fork: the child would wait for it forever.
        environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.flips", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            env=environment,
        )
        self.files: dict[str, dict[str, int]] = self._answer()

    def run(self, collection: str, file: str, damage: list[Any]) -> tuple[str, str]:
        assert self.process.stdin
        self.process.stdin.write(json.dumps([collection, file, damage]) + "\n")
        result, detail = self._answer()
        return result, detail

    def _answer(self) -> Any:
        assert self.process.stdout
        return json.loads(self.process.stdout.readline())


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    started = Driver(tmp_path_factory.mktemp("flips"))
    yield started
    assert started.process.stdin
    started.process.stdin.close()
    assert started.process.wait(60) == 0


def any_damage(random: Random, size: int) -> list[Any]:
    """A random damage of a file of this size."""
    kind = random.choices(["flip", "number", "zeros", "truncate"], [6, 3, 1, 1])[0]
    if kind == "flip":
        return ["flip", random.randrange(8 * size)]
    if kind == "truncate":
        return ["truncate", random.randrange(size)]
    if kind == "zeros":
        return ["write", random.randrange(size), "00" * random.choice([16, 64, 512])]
    start = random.randrange(HEADER, size, 4) if size > HEADER + 8 else random.randrange(size)
    numbers = [
        random.randbytes(8),
        b"\xff" * 8,
        b"\xff\xff\xff\x7f" * 2,
        random.randrange(-9, 10**6).to_bytes(8, "little", signed=True),
    ]
    return ["write", start, random.choice(numbers).hex()]


def fare(driver: Driver, seed: int, count: int) -> Counter[str]:
    """The outcomes of random damages, spread over all files."""
    random = Random(seed)
    places = [(name, file, size) for name, sizes in driver.files.items() for file, size in sizes.items()]
    random.shuffle(places)
    outcomes: Counter[str] = Counter()
    faults = []
    for number in range(count):
        name, file, size = places[number % len(places)]
        damage = any_damage(random, size)
        result, detail = driver.run(name, file, damage)
        outcomes[result] += 1
        if result in FAULTS:
            faults.append(f"{name} {file} {damage}: {result}: {detail}")
    assert not faults, "\n".join(faults)
    return outcomes


def test_damage_is_refused_or_found(driver: Driver) -> None:
    assert fare(driver, 1, 90)[REFUSED] > 10


@pytest.mark.long
def test_two_thousand_damages_are_refused_or_found(driver: Driver) -> None:
    print(fare(driver, 2, 2000))  # noqa: T201


@pytest.mark.parametrize("byte", ["ff", *(pytest.param(byte, marks=pytest.mark.long) for byte in ("7f", "00"))])
def test_no_number_in_a_file_is_trusted(driver: Driver, byte: str) -> None:
    """All numbers of the largest file of each name are replaced."""
    largest: dict[tuple[str, ...], tuple[int, str]] = {}
    for name, sizes in driver.files.items():
        for file, size in sizes.items():
            kind = (name, *Path(file).parts[2:])
            if file.endswith(".npy") and size > HEADER:
                largest[kind] = max(largest.get(kind, (0, "")), (size, file))
    assert len(largest) > 60
    for (name, *_), (size, file) in largest.items():
        result, detail = driver.run(name, file, ["write", HEADER, byte * (size - HEADER)])
        assert result not in FAULTS, f"{file}: {result}: {detail}"


def test_an_offset_beyond_its_array_is_refused(driver: Driver) -> None:
    named = ("ptr.npy", "offsets.npy")
    files = [(name, file, size) for name, sizes in driver.files.items() for file, size in sizes.items()]
    pointers = [(name, file) for name, file, size in files if file.endswith(named) and size >= HEADER + 32]
    assert len(pointers) > 10
    for name, file in pointers:
        result, detail = driver.run(name, file, ["flip", 8 * 157 + 1])
        assert (result, Path(file).name in detail) == (REFUSED, True), file
