"""Shared parts: what a lens keeps once for all segments, in a list that only grows.

segments/<id>/<lens>/…  one shared part; the catalog knows its place in the list of its lens
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from trilens.encode.encoder import Encoded
from trilens.index.lens import Lens
from trilens.store.folders import require_whole, write_folder
from trilens.store.lenses import Lenses
from trilens.store.schema import SharedRecord


class SharedPart:
    """An opened shared part, mapped at once as segments are."""

    def __init__(self, root: Path, record: SharedRecord, lenses: Lenses) -> None:
        self.record = record
        self.part: Any = lenses[record.lens].open_shared(require_whole(root, record) / record.lens)


class SharedParts:
    """The opened shared parts of all lenses."""

    def __init__(self, parts: Iterable[SharedPart] = ()) -> None:
        self.every = list(parts)

    def of(self, lens: str) -> list[Any]:
        """What the lens is given: its own, oldest first."""
        return [shared.part for shared in self.every if shared.record.lens == lens]


def write_shared(root: Path, lens: Lens, encoded: Encoded, older: Sequence[Any]) -> SharedRecord | None:
    """Let a lens write one more shared part; None if the batch calls for none."""
    written = write_folder(root, lambda folder: lens.share(encoded, older, folder / lens.name))
    return SharedRecord(written.id, written.files, lens.name, len(older)) if written else None
