"""The state of one commit as data: with the folders that it names, all that is needed to write its catalog.

The catalog's rows are not part of it: ids, texts and metadata of the documents are in their segments.
"""

import secrets
from bisect import bisect_right
from collections.abc import Set
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import Field, StringConstraints, TypeAdapter, ValidationError

from trilens.errors import CollectionDamaged, UnknownFormat
from trilens.store.catalog import LARGEST_KEY, Catalog, DocumentRow
from trilens.store.catalog_file import new_database, write_file
from trilens.store.config import CollectionConfig
from trilens.store.documents import DocumentsPart
from trilens.store.folders import FOLDER, REPAIR
from trilens.store.records import Records, read_records
from trilens.store.schema import FORMAT_VERSION
from trilens.store.segment import DOCUMENTS

Key = Annotated[int, Field(ge=1, le=LARGEST_KEY)]
FolderId = Annotated[str, StringConstraints(pattern="^[0-9a-f]{16}$")]
Checksum = Annotated[str, StringConstraints(pattern="^[0-9a-f]{32}$")]
Sealed = TypeVar("Sealed")
LONGEST_NUMBER = 19  # digits


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRecord:
    """A commit: its facts, the manifest checksums of its folders, the marks since its segments were written, the next key."""

    facts: dict[str, str]
    folders: dict[FolderId, Checksum]
    deleted: tuple[Key, ...] = ()
    changed: dict[Key, str] = field(default_factory=dict)
    next_key: Key

    @staticmethod
    def empty(config: CollectionConfig) -> "CommitRecord":
        """A collection without documents."""
        facts = {"config": config.to_stored(), "commit": "0", "id": secrets.token_hex(16)}
        return CommitRecord(facts=facts, folders={}, next_key=1)

    @staticmethod
    def of(catalog: Catalog, marks: bool = True) -> "CommitRecord":
        """The commit that a catalog sees, in a transaction; with or without the deleted and changed keys."""
        return CommitRecord(
            facts={name: value for name, value in catalog.facts().items() if name != "digest"},
            folders=catalog.folders(),
            deleted=tuple(catalog.marked("deleted").tolist()) if marks else (),
            changed=catalog.changed() if marks else {},
            next_key=catalog.next_key(),
        )

    @staticmethod
    def read(root: Path) -> "CommitRecord":
        """The last commit of a collection."""
        catalog = Catalog.open(root)
        try:
            catalog.begin()
            return CommitRecord.of(catalog)
        finally:
            catalog.close()

    @property
    def commit(self) -> int:
        """The number of the commit."""
        return int(self.facts["commit"])

    @property
    def collection_id(self) -> str:
        """The identity of the collection, which its copies share."""
        return self.facts["id"]

    def part(self, records: Records, segments: Set[str]) -> "CommitRecord":
        """The commit of a collection that has only some segments of this one, and all shared parts."""
        kept = [segment for segment in records.segments if segment.id in segments]
        folders = {folder.id: self.folders[folder.id] for folder in (*kept, *records.shared)}
        ranges = [(segment.first_key, segment.last_key) for segment in kept]

        def has(key: int) -> bool:
            i = bisect_right(ranges, (key, LARGEST_KEY)) - 1
            return i >= 0 and key <= ranges[i][1]

        changed = {key: metadata for key, metadata in self.changed.items() if has(key)}
        return replace(self, folders=folders, deleted=tuple(filter(has, self.deleted)), changed=changed)

    def __post_init__(self) -> None:
        number = self.facts.get("commit", "")
        if not (number.isascii() and number.isdigit() and len(number) < LONGEST_NUMBER and {"config", "id"} <= set(self.facts)):
            raise ValueError("facts are incomplete; expected commit, config and id")

    def to_json(self) -> bytes:
        """The record as one line of JSON with its format version and checksum."""
        return seal(RECORD, self)

    @staticmethod
    def from_json(content: bytes, where: str) -> "CommitRecord":
        """Parse what `to_json` has written; `where` names the file in errors."""
        return unseal(RECORD, content, where)


RECORD = TypeAdapter(CommitRecord)


def write_catalog(root: Path, record: CommitRecord, *, replace: bool = False) -> None:
    """Write the catalog of a commit whose folders are in place, atomically. The caller holds the write lock.

    `replace` permits it to take the place of another catalog, which must not be in use.
    """
    database = new_database()
    catalog = Catalog(root, database)
    try:
        for name, value in record.facts.items():
            catalog.set_fact(name, value)
        records = read_records(root, record.folders)
        deleted = set(record.deleted)
        for segment in records.segments:
            documents = DocumentsPart.open(root / FOLDER / segment.id / DOCUMENTS)
            for position, key in enumerate(documents.keys.tolist()):
                if key not in deleted:
                    catalog.restore(DocumentRow.of(key, documents.document(position, record.changed.get(key))))
        for folder in (*records.segments, *records.shared):
            catalog.add_folder(folder)
        for key in record.deleted:
            catalog.mark("deleted", key)
        for key in record.changed:
            catalog.mark("changed", key)
        catalog.set_next_key(record.next_key)
        catalog.seal()
        write_file(root, database, replace=replace)
    finally:
        database.close()


def seal(adapter: TypeAdapter[Sealed], value: Sealed) -> bytes:
    """A value as one line of JSON with the format version and a checksum."""
    content = adapter.dump_json(value)
    return b"".join((_head(FORMAT_VERSION, content), content, TAIL))


def unseal(adapter: TypeAdapter[Sealed], sealed: bytes, where: str, advice: str = REPAIR) -> Sealed:
    """Parse what `seal` has written; `where` names the file in errors, and `advice` says what to do if it is damaged."""
    head, _, content = sealed.removesuffix(TAIL).partition(SEPARATOR)
    version = head.removeprefix(START).partition(b",")[0]
    if not (version.isdigit() and sealed.endswith(TAIL) and sealed.startswith(_head(int(version[:9]), content))):
        raise CollectionDamaged(f"{where} has changed: it does not fit its checksum; {advice}")
    if int(version) != FORMAT_VERSION:
        raise UnknownFormat(
            f"{where} has format version {int(version)}; this trilens reads version {FORMAT_VERSION}: "
            "use the version of trilens that wrote it"
        )
    try:
        return adapter.validate_json(content)
    except ValidationError as error:
        raise CollectionDamaged(f"{where} is not the record of a commit; {advice}") from error


START, SEPARATOR, TAIL = b'{"format":', b',"content":', b"}\n"


def _head(version: int, content: bytes) -> bytes:
    checksum = blake2b(content, digest_size=16).hexdigest()
    return START + f'{version},"checksum":"{checksum}"'.encode() + SEPARATOR
