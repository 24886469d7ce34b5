"""The bundled model, with another description of its token vectors."""

import json
from pathlib import Path

from trilens.encode.models import bundled_models
from trilens.store.config import DEFAULT_MODEL


def with_multi(target: Path, **changes: object) -> Path:
    """A folder with the same graphs; `changes` go into the description of the multi head."""
    bundled = bundled_models()[DEFAULT_MODEL]
    target.mkdir()
    for file in ("tokenizer.json", "model.int8.onnx", "sparse.onnx"):
        (target / file).symlink_to(bundled / file)
    config = json.loads((bundled / "trilens.json").read_text())
    (target / "trilens.json").write_text(json.dumps(config | {"multi": config["multi"] | changes}))
    return target
