"""Tolerances of the comparison with the original."""

import pytest

pytest.importorskip("torch", reason="the originals run in torch: pip install trilens[train]")
pytest.importorskip("onnx", reason="part of trilens[export]")

from trilens.errors import BadModel
from trilens.export.check import Agreement, require_agreement


def test_least_cosine_of_8_bits() -> None:
    config = type("Config", (), {"precision": "int8"})
    require_agreement([Agreement("dense", 0.985, 0.7, 0.3), Agreement("sparse", 0.5, 0.1, 3.0)], config)  # type: ignore[arg-type]
    for mean in (0.975, float("nan")):
        with pytest.raises(BadModel, match=r"have a mean cosine of .* expected at least 0\.98"):
            require_agreement([Agreement("dense", mean, 0.7, 0.3)], config)  # type: ignore[arg-type]
