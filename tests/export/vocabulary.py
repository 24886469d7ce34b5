"""A backbone with a large vocabulary, and texts of random tokens."""

import numpy as np
import pytest
from numpy.typing import NDArray

torch = pytest.importorskip("torch", reason="the originals run in torch: pip install trilens[train]")
pytest.importorskip("onnx", reason="part of trilens[export]")

from trilens.encode.folder import SparseHead
from trilens.export.calibration_texts import TokenisedText

Floats = NDArray[np.float32]


WORDS, SHIFT, UNUSED = 5000, 9, 3  # the last embeddings belong to no token


def given(count: int = 30) -> list[TokenisedText]:
    rng = np.random.default_rng(4)
    rows = [rng.integers(0, WORDS, length).tolist() for length in rng.integers(3, 20, count)]
    return [TokenisedText(row, len(row)) for row in rows]


def description(normalised: bool = False) -> SparseHead:
    return SparseHead(dim=WORDS - UNUSED - SHIFT, shift=SHIFT, normalised=normalised)
