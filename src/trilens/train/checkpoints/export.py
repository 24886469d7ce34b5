"""Export of published checkpoints with heads: they are loaded as trainable models, and exported as trained ones."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from trilens.export.describe import ExportOptions
from trilens.export.folder import Exported, export, no_steps, require_free
from trilens.export.source import copy_licences
from trilens.export.tower import Steps
from trilens.train.backbone import quietly
from trilens.train.checkpoints.loading import load_checkpoint
from trilens.train.model import description_of


def export_published(
    source: str,
    path: Path,
    target: Path,
    options: ExportOptions,
    texts: Path | None = None,
    force: bool = False,
    check: bool = True,
    steps: Steps = no_steps,
    documents: str | None = None,
) -> Exported:
    """Write the model folder `target` with all heads of the checkpoint `source`, which is at `path` on this machine.

    `documents` is the passage encoder of a DPR, if it is published apart.
    """
    require_free(target, path, force)
    with unfinished(target) as folder:
        with quietly():
            model = load_checkpoint(source, documents, {"name": target.resolve().name})
            model.save_pretrained(str(folder), create_model_card=False)
        copy_licences(path, folder)
        named = replace(options, source=options.source or Path(description_of(model).source).name)
        return export(folder, target, named, texts, force, check, steps)


@contextmanager
def unfinished(target: Path) -> Iterator[Path]:
    """A temporary folder on the disk of `target`, for weights that may be large."""
    final = target.resolve()
    folder = final.with_name(f".{final.name}.weights-{os.getpid()}")
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
