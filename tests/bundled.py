"""The bundled model, with another description."""

import json
from pathlib import Path
from typing import Any

from trilens.encode.models import bundled_models
from trilens.store.config import DEFAULT_MODEL


def with_multi(target: Path, **changes: object) -> Path:
    """A folder with the same graphs; `changes` go into the description of the multi head."""
    return described(target, multi=_description()["multi"] | changes)


def described(target: Path, **changes: object) -> Path:
    """A folder with the same graphs; `changes` go into the description of the model."""
    bundled = bundled_models()[DEFAULT_MODEL]
    target.mkdir()
    for file in ("tokenizer.json", "model.int8.onnx", "sparse.onnx"):
        (target / file).symlink_to(bundled / file)
    (target / "trilens.json").write_text(json.dumps(_description() | changes))
    return target


def _description() -> dict[str, Any]:
    description: dict[str, Any] = json.loads((bundled_models()[DEFAULT_MODEL] / "trilens.json").read_text())
    return description
