"""Checkpoints that are complete or do not count: a run that is killed goes on from the last complete one."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from trilens.errors import BadInput
from trilens.store.folders import checksum

COMPLETE = "complete.json"
PREFIX = "checkpoint-"


def seal(folder: Path) -> None:
    """Write down the size and digest of every file; a checkpoint without that is not complete."""
    found = {str(file.relative_to(folder)): checksum(file) for file in _files(folder)}
    unfinished = folder / f"{COMPLETE}.part"
    unfinished.write_text(json.dumps(found, indent=1, sort_keys=True), encoding="utf-8")
    unfinished.replace(folder / COMPLETE)


def require_sound(folder: Path) -> None:
    """Refuse a checkpoint that is not what was written."""
    try:
        sealed: dict[str, str] = json.loads((folder / COMPLETE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{folder} is not a complete checkpoint ({error}); expected one that was written to its end") from error
    for name, digest in sealed.items():
        file = folder / name
        if not file.is_file() or checksum(file) != digest:
            state = "damaged" if file.is_file() else "missing"
            raise BadInput(f"{file} is {state}; remove {folder} to go on from the checkpoint before it, or start again")


def last_complete(run: Path) -> Path | None:
    """The checkpoint to go on from, and nothing newer beside it: what a killed process left unfinished is removed."""
    for folder in sorted(run.glob(f"{PREFIX}*"), key=step_of, reverse=True):
        if (folder / COMPLETE).exists():
            require_sound(folder)
            return folder
        shutil.rmtree(folder)
    return None


def step_of(folder: Path) -> int:
    """The step that a checkpoint was written after."""
    number = folder.name.removeprefix(PREFIX)
    if not number.isdigit():
        raise BadInput(f"{folder} is in the way; expected checkpoints named {PREFIX}STEP: move it elsewhere")
    return int(number)


def _files(folder: Path) -> Iterator[Path]:
    return (file for file in sorted(folder.rglob("*")) if file.is_file() and not file.name.startswith(COMPLETE))
