"""Shared parts: data that a lens stores once for all segments; the list is append-only.

segments/<id>/<lens>/…  one shared part; the catalog knows its place in the list of its lens
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from trilens.encode.encoder import Encoded
from trilens.store.folders import require_whole, write_folder
from trilens.store.lens_set import LensSet
from trilens.store.schema import SharedRecord


class SharedPart:
    """An opened shared part, mapped at once as segments are."""

    def __init__(self, root: Path, record: SharedRecord, lenses: LensSet) -> None:
        self.record = record
        self.lens = lenses.of_folder(record.lens)
        self.part: Any = lenses[self.lens].open_shared(require_whole(root, record) / record.lens)


class SharedParts:
    """The opened shared parts of all lenses."""

    def __init__(self, parts: Iterable[SharedPart] = ()) -> None:
        self.every = list(parts)

    def of(self, lens: str) -> list[Any]:
        """The shared parts of a lens, oldest first."""
        return [shared.part for shared in self.every if shared.lens == lens]


def write_shared(root: Path, lenses: LensSet, name: str, encoded: Encoded, older: Sequence[Any]) -> SharedRecord | None:
    """Let a lens write another shared part; None if the batch needs none."""
    folder_name = lenses.folder(name)

    def describe(folder_id: str) -> SharedRecord:
        return SharedRecord(id=folder_id, lens=folder_name, place=len(older))

    return write_folder(root, describe, lambda folder: lenses[name].share(encoded, older, folder / folder_name))
