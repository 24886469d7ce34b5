"""The records of the segments and shared parts of a commit, read from the manifests of their folders."""

from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from trilens.errors import CollectionDamaged
from trilens.store.folders import REPAIR, read_record
from trilens.store.schema import FolderRecord, SegmentRecord, SharedRecord


class Records(NamedTuple):
    """The segments by ascending keys, and the shared parts of each lens, oldest first."""

    segments: list[SegmentRecord]
    shared: list[SharedRecord]


def read_records(root: Path, folders: Mapping[str, str], known: Mapping[str, FolderRecord] | None = None) -> Records:
    """The records of the folders with these ids and checksums; those of `known` folders are not read again."""
    records = [(known or {}).get(folder_id) or read_record(root, folder_id, folders[folder_id]) for folder_id in folders]
    segments = [record for record in records if isinstance(record, SegmentRecord)]
    shared = [record for record in records if isinstance(record, SharedRecord)]
    segments.sort(key=lambda record: record.first_key)
    shared.sort(key=lambda record: (record.lens, record.place))
    for lens, parts in groupby(shared, key=lambda record: record.lens):
        places = [record.place for record in parts]
        if places != list(range(len(places))):
            raise CollectionDamaged(f"{root} has the shared parts {places} of {lens}, of which some are missing; {REPAIR}")
    return Records(segments, shared)
