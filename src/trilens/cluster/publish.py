"""Publishing the last commit of a collection at an address, and pulling a published commit."""

from dataclasses import dataclass, replace
from pathlib import Path

from trilens.cluster.manifest import Manifest, Published, checksum_of
from trilens.cluster.note import Note, fingerprint, held_shard, read_note, write_note
from trilens.cluster.shards import MOST_SHARDS, deal_out, is_balanced
from trilens.errors import BadInput, CollectionDamaged, CollectionError, CollectionMissing
from trilens.store.advance import advance_collection
from trilens.store.backup.contents import Backup, Contents
from trilens.store.backup.opening import open_shared
from trilens.store.backup.place import SharedPlace
from trilens.store.backup.restore import copy_folder, restore_record
from trilens.store.backup.take import copy_commit
from trilens.store.check import BytesDone
from trilens.store.commit_record import CommitRecord
from trilens.store.records import Records, read_records
from trilens.store.schema import FILE_NAME, FolderRecord, SegmentRecord, SharedRecord

TRIES = 5


@dataclass(frozen=True, slots=True)
class PublishReport:
    """The number of the published commit, its documents and shards, and how many bytes were copied of all."""

    number: int
    documents: int
    shards: int
    bytes: int
    copied_bytes: int


class _Target:
    """Where `copy_commit` copies to: it ends with the manifest."""

    def __init__(self, root: Path, address: str | Path, published: Published, count: int | None) -> None:
        self._root = root
        self._address = address
        self._published = published
        self._count = count
        self._note = read_note(root, published.last.history) if published.last else Note()
        self._require_newest()

    @property
    def place(self) -> SharedPlace:
        """The place at the address."""
        return self._published.place

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes of the files of new folders."""
        return self._published.sizes

    def require_free_for(self, record: CommitRecord) -> None:
        """Refuse an address of something else, and shards that cannot be made, before anything is copied."""
        self._published.require_free_for(record)
        self._shards(record)

    def fault(self, folder: FolderRecord) -> str | None:
        """What is wrong with a folder at the address; None if it is there."""
        return self._published.fault(folder)

    def write(self, backup: Backup) -> None:
        """Create the manifest. A note before it remembers that it is this collection's own, if the answer is lost."""
        manifest, content = self._published.manifest(backup, self._shards(backup.record))
        write_note(self._root, manifest.history, replace(self._note, trying=checksum_of(content)))
        if not self._published.put(manifest, content):
            raise self._overtaken()
        self._agree(manifest)

    def _require_newest(self) -> None:
        """Refuse a collection that does not have the last published commit in its history."""
        last, checksum = self._published.last, self._published.checksum
        shard = held_shard(self._root)
        if shard is not None:
            raise CollectionError(
                f"{self._root} holds only shard {shard} of a collection; pull the whole collection to publish its changes"
            )
        if last and self._note.trying == checksum:
            self._agree(last)
        if self._note.checksum != checksum:
            raise self._overtaken()

    def _agree(self, manifest: Manifest) -> None:
        self._note = Note(manifest.number, self._published.checksum, fingerprint(manifest.record))
        write_note(self._root, manifest.history, self._note)

    def _overtaken(self) -> CollectionError:
        since = f"since commit {self._note.number}, with which this one agrees" if self._note.number else "of another writer"
        return CollectionError(
            f"{self._address} has commits {since}; nothing was published: run `trilens cluster pull {self._address} "
            f"{self._root}`, or pull it into a new folder and make your changes again"
        )

    def _shards(self, record: CommitRecord) -> tuple[tuple[str, ...], ...]:
        before = self._published.last.shards if self._published.last else ()
        count = self._count or len(before) or 1
        segments = read_records(self._root, record.folders).segments
        shards = deal_out(segments, count, before)
        if len(before) != count and segments and not is_balanced(segments, shards):
            raise BadInput(
                f"{self._root} cannot be dealt out to {count} shards of similar size: it has {len(segments)} segments; run "
                f"`trilens optimize {self._root} --segments {count}` first"
            )
        return shards


def publish(
    root: str | Path, address: str | Path, *, shards: int | None = None, report: BytesDone = lambda count: None
) -> PublishReport:
    """Publish the last commit of a collection, copying the folders that the address does not have.

    `shards` is the number of parts in which it can be served (None: as before, at first one). A collection that does not have
    the last published commit in its history is refused: another writer was faster. It loses nothing, and can be pulled anew.
    """
    root = Path(root)
    if shards is not None and not 1 <= shards <= MOST_SHARDS:
        raise BadInput(f"shards is {shards}; expected 1 to {MOST_SHARDS}")
    if not (root / FILE_NAME).exists():
        raise CollectionMissing(f"there is no collection at {root}; expected the folder of a collection")
    with open_shared(address) as place, place.writing():
        published = Published.read(place)
        target = _Target(root, address, published, shards)
        last = published.last
        if last and last.record == CommitRecord.read(root) and shards in (None, len(last.shards)):
            return PublishReport(last.number, last.backup.documents, len(last.shards), last.backup.bytes, 0)
        copied = copy_commit(root, target, report)
        published.prune()
        made = published.require()
        return PublishReport(made.number, copied.documents, len(made.shards), copied.bytes, copied.copied_bytes)


def pull(
    address: str | Path,
    root: str | Path,
    *,
    number: int | None = None,
    shard: int | None = None,
    report: BytesDone = lambda count: None,
) -> Manifest:
    """Make a collection of a published commit, by default the last one, or move one that was pulled before to it.

    Only the folders that the collection does not have are fetched, and compared with their checksums. `shard` takes only the
    segments of one shard (None: those that were pulled before, at first all). A collection with changes of its own is refused.
    """
    root = Path(root)
    with open_shared(address) as place:
        for remaining in reversed(range(TRIES)):
            published = Published.read(place)
            manifest, checksum = published.get(number)
            note = read_note(root, manifest.history)
            shard = note.shard if shard is None else shard
            try:
                record = manifest.record if shard is None else _part(published.contents(), manifest, shard)
                _move(published.contents(), record, note, _Pull(address, root, shard, manifest.history), report)
            except CollectionDamaged:
                # A newer commit may have made unneeded, and a writer removed, what only this one has.
                if not remaining or number is not None or Published.read(place).numbers[-1:] == [manifest.number]:
                    raise
            else:
                write_note(root, manifest.history, Note(manifest.number, checksum, fingerprint(record), shard=shard))
                return manifest
    raise AssertionError("the loop returns or raises")


@dataclass(frozen=True, slots=True)
class _Pull:
    """What is pulled where."""

    address: str | Path
    root: Path
    shard: int | None
    history: str


def _move(contents: Contents, record: CommitRecord, note: Note, pull: _Pull, report: BytesDone) -> None:
    """Bring a collection to a commit."""
    root = pull.root
    if not (root / FILE_NAME).exists():
        restore_record(contents, record, root, report)
        return
    present = CommitRecord.read(root)
    if fingerprint(present) == fingerprint(record):
        return
    if not note.number or note.shard != pull.shard:
        raise CollectionError(f"{root} holds something else than is to be pulled from {pull.address}; choose another folder")
    if fingerprint(present) not in (note.commit, note.trying):
        raise CollectionError(
            f"{root} has changes that are not published; publish them, or pull {pull.address} into another folder"
        )
    if record.commit < present.commit:
        raise BadInput(f"{root} is at commit {present.commit}, but an older one was asked for; pull it into another folder")
    write_note(root, pull.history, replace(note, trying=fingerprint(record)))

    def fill() -> None:
        for folder_id, checksum in record.folders.items():
            if folder_id not in present.folders:
                copy_folder(contents, contents.folder(folder_id, checksum), root, report)

    advance_collection(root, present, record, fill)


def _part(contents: Contents, manifest: Manifest, shard: int) -> CommitRecord:
    """The commit of one shard: its segments, and all shared parts."""
    if not 0 <= shard < len(manifest.shards):
        raise BadInput(f"shard is {shard}; expected 0 to {len(manifest.shards) - 1}")
    others = {folder_id for ids in manifest.shards for folder_id in ids} - set(manifest.shards[shard])
    folders = {key: checksum for key, checksum in manifest.record.folders.items() if key not in others}
    records = [contents.folder(folder_id, checksum) for folder_id, checksum in folders.items()]
    segments = sorted((r for r in records if isinstance(r, SegmentRecord)), key=lambda segment: segment.first_key)
    shared = [record for record in records if isinstance(record, SharedRecord)]
    return manifest.record.part(Records(segments, shared), set(manifest.shards[shard]))
