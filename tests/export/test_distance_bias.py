"""Distance buckets against T5's."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="the originals run in torch: pip install trilens[train]")
pytest.importorskip("onnx", reason="part of trilens[export]")

from trilens.export.distance_bias import bucket_of

from .tiny import torch, transformers


def test_buckets_equal_those_of_t5() -> None:
    distances = np.arange(-700, 701)
    bucket = transformers.models.t5.modeling_t5.T5Attention._relative_position_bucket
    for buckets, farthest in ((32, 128), (32, 256), (16, 64)):
        expected = bucket(torch.from_numpy(distances), True, buckets, farthest).numpy()
        np.testing.assert_array_equal(bucket_of(distances, buckets, farthest), expected)
