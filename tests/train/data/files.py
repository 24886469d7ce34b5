"""Data files for the tests of readers."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trilens.train.data.examples import Examples
from trilens.train.data.mixture import Mixture
from trilens.train.data.sources import parse_source, read_examples

CORPUS = '{"_id": "a", "title": "A", "text": "about a"}\n{"_id": "b", "text": "about b"}\n{"_id": 3, "text": "about c"}\n'


def jsonl(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def read(**options: Any) -> Mixture:
    return read_examples([parse_source(options)], seed=1)


def shown(examples: Examples, example: int) -> tuple[str, list[str], list[str]]:
    def texts(numbers: NDArray[np.int64]) -> list[str]:
        return [examples.passage(number) for number in numbers.tolist()]

    return examples.query(example), texts(examples.positives(example)), texts(examples.negatives(example))
