"""`Published`: the commits of a collection at an address that many machines read, and the manifests that name them.

manifests/<number>.json   one file per published commit; the highest number is the collection
segments/<id>/…           the folders that the manifests share, as in a collection

A commit is published by creating the next manifest, if there is none: of two writers, one alone succeeds.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from pydantic import TypeAdapter

from trilens.errors import CollectionDamaged, CollectionError, CollectionMissing
from trilens.store.backup.contents import Backup, Contents, file_name
from trilens.store.backup.place import LOCK_NAME, SharedPlace, read_small
from trilens.store.commit_record import CommitRecord, FolderId, seal, unseal
from trilens.store.folders import FOLDER
from trilens.store.schema import FolderRecord

MANIFESTS = "manifests"
KEPT, MOST = 10, 20  # manifests that stay when there are more; slow readers of an older one still find its segments


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A published commit: its number, the manifest that it follows, the segments of each shard, and the commit itself.

    `history` is random and the same in all manifests of an address. `token` is random, so that no two manifests are equal.
    """

    number: int
    follows: str
    history: str
    token: str
    shards: tuple[tuple[FolderId, ...], ...]
    backup: Backup

    @property
    def record(self) -> CommitRecord:
        """The commit."""
        return self.backup.record


MANIFEST = TypeAdapter(Manifest)


@dataclass(slots=True)
class Published:
    """The last manifest at an address, if there is one, and its checksum."""

    place: SharedPlace
    numbers: list[int]
    last: Manifest | None = None
    checksum: str = ""
    sizes: dict[str, int] = field(default_factory=dict)

    @staticmethod
    def read(place: SharedPlace) -> "Published":
        """Read the last manifest."""
        names = place.sizes(MANIFESTS)
        published = Published(place, sorted(number for name in names if (number := _number(name))))
        if published.numbers:
            content = read_small(place, _name(published.numbers[-1]))
            published.last = _parse(content, published.numbers[-1], place)
            published.checksum = checksum_of(content)
        return published

    def require(self) -> Manifest:
        """The last manifest; an address without one is an error."""
        if self.last is None:
            raise CollectionMissing(
                f"there is no cluster collection at {self.place.name}; make one with `trilens cluster publish COLLECTION "
                f"{self.place.name}`"
            )
        return self.last

    def get(self, number: int | None) -> tuple[Manifest, str]:
        """A manifest by number, or the last one, and its checksum."""
        last = self.require()
        if number is None or number == last.number:
            return last, self.checksum
        if number not in self.numbers:
            raise CollectionError(f"{self.place.name} has no commit {number}; it has {self.numbers[0]} to {self.numbers[-1]}")
        content = read_small(self.place, _name(number))
        return _parse(content, number, self.place), checksum_of(content)

    def contents(self) -> Contents:
        """The folders of the address, to be copied and compared with their checksums."""
        return Contents(self.place, self.sizes)

    def require_free_for(self, record: CommitRecord) -> None:
        """Refuse an address of another collection, or with other files."""
        if self.last is None:
            if any(name != LOCK_NAME and not name.startswith(f"{FOLDER}/") for name in self.place.sizes()):
                raise CollectionError(f"{self.place.name} holds other files; expected a new or empty address")
        elif self.last.record.collection_id != record.collection_id:
            raise CollectionError(f"{self.place.name} holds another collection; choose another address")

    def fault(self, folder: FolderRecord) -> str | None:
        """What is wrong with a folder at the address; those of the last manifest were complete before it was written."""
        if self.last and self.last.record.folders.get(folder.id) == folder.checksum:
            return None
        self.sizes |= self.place.sizes(f"{FOLDER}/{folder.id}")
        whole = all(self.sizes.get(file_name(folder, file)) == file.bytes for file in folder.files)
        return None if whole else f"{folder.id} is not complete"

    def manifest(self, backup: Backup, shards: Sequence[Sequence[str]]) -> tuple[Manifest, bytes]:
        """The manifest that publishes a commit next, and its content."""
        number, history = (self.last.number + 1, self.last.history) if self.last else (1, secrets.token_hex(8))
        token = secrets.token_hex(8)
        made = Manifest(
            number=number,
            follows=self.checksum,
            history=history,
            token=token,
            shards=tuple(map(tuple, shards)),
            backup=backup,
        )
        return made, seal(MANIFEST, made)

    def put(self, manifest: Manifest, content: bytes) -> bool:
        """Create a manifest; False if another writer was faster."""
        if not self.place.create(_name(manifest.number), content):
            return False
        self.last, self.checksum = manifest, checksum_of(content)
        self.numbers.append(manifest.number)
        return True

    def prune(self) -> None:
        """Remove old manifests if there are many, then what no other one names: segments, and what died writers have left."""
        if len(self.numbers) <= MOST:
            return
        self.numbers = self.numbers[-KEPT:]
        kept = set(map(_name, self.numbers))
        self.place.remove([name for name in self.place.sizes(MANIFESTS) if name not in kept])
        needed = {folder_id for number in self.numbers for folder_id in self.get(number)[0].record.folders}
        self.place.remove([name for name in self.place.sizes(FOLDER) if name.split("/")[1] not in needed])


def checksum_of(content: bytes) -> str:
    """Identifies a manifest."""
    return blake2b(content, digest_size=16).hexdigest()


def _name(number: int) -> str:
    return f"{MANIFESTS}/{number:019}.json"


def _number(name: str) -> int:
    """The number in the name of a manifest; 0 for other files, such as one that is being written."""
    stem = name.removeprefix(f"{MANIFESTS}/").removesuffix(".json")
    return int(stem) if stem.isascii() and stem.isdigit() and _name(int(stem)) == name else 0


def _parse(content: bytes, number: int, place: SharedPlace) -> Manifest:
    where = f"{_name(number)} in {place.name}"
    advice = "remove it to go back to the commit before it"
    manifest = unseal(MANIFEST, content, where, advice)
    named = {folder_id for shard in manifest.shards for folder_id in shard}
    if manifest.number != number or not named <= set(manifest.record.folders):
        raise CollectionDamaged(f"{where} does not fit its name or its commit; {advice}")
    return manifest
