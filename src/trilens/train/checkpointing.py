"""Checkpoints that are either complete or ignored: an interrupted run resumes from the last complete one."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from trilens.errors import BadInput
from trilens.store.folders import checksum

COMPLETE = "complete.json"
PREFIX = "checkpoint-"


def seal(folder: Path) -> None:
    """Mark a checkpoint as complete by writing the checksums of all its files."""
    digests = {str(file.relative_to(folder)): checksum(file) for file in _files(folder)}
    unfinished = folder / f"{COMPLETE}.part"
    unfinished.write_text(json.dumps(digests, indent=1, sort_keys=True), encoding="utf-8")
    unfinished.replace(folder / COMPLETE)


def require_intact(folder: Path) -> None:
    """Require that all files of a checkpoint have their recorded checksums."""
    try:
        sealed: dict[str, str] = json.loads((folder / COMPLETE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{folder} is not a complete checkpoint ({error}); expected a fully written one") from error
    for name, digest in sealed.items():
        file = folder / name
        if not file.is_file() or checksum(file) != digest:
            state = "damaged" if file.is_file() else "missing"
            raise BadInput(f"{file} is {state}; remove {folder} to resume from the previous checkpoint, or start again")


def last_complete(run: Path) -> Path | None:
    """The checkpoint to resume from; newer, incomplete ones are removed."""
    for folder in sorted(run.glob(f"{PREFIX}*"), key=step_of, reverse=True):
        if (folder / COMPLETE).exists():
            require_intact(folder)
            return folder
        shutil.rmtree(folder)
    return None


def step_of(folder: Path) -> int:
    """The training step of a checkpoint."""
    number = folder.name.removeprefix(PREFIX)
    if not number.isdigit():
        raise BadInput(f"{folder} is not a checkpoint; expected only folders named {PREFIX}STEP here: move it elsewhere")
    return int(number)


def _files(folder: Path) -> Iterator[Path]:
    return (file for file in sorted(folder.rglob("*")) if file.is_file() and not file.name.startswith(COMPLETE))
