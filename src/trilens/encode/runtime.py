"""onnxruntime, imported late and without telemetry."""

import os
from typing import Any

TELEMETRY_OFF = "ORT_DISABLE_TELEMETRY"


def onnx_runtime() -> Any:
    """The package onnxruntime: importing it is slow, and BM25 does not need it.

    Its builds send events to their vendor and keep an identifier in the user's home, unless this variable is set before it is
    imported. A value that the user has set is kept.
    """
    os.environ.setdefault(TELEMETRY_OFF, "1")
    import onnxruntime

    return onnxruntime
