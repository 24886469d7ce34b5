"""What a collection on this machine knows of the published histories from which it was pulled or to which it was published."""

import json
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from trilens.errors import CollectionDamaged
from trilens.store.commit_record import CommitRecord
from trilens.store.failures import clear_errors
from trilens.store.folders import force

FILE = "published.json"


@dataclass(frozen=True, slots=True)
class Note:
    """The manifest with which a collection agrees.

    number    its number, 0 before the first one
    checksum  its checksum
    commit    the checksum of the collection's commit that agrees with it
    trying    the checksum of what comes after the manifest or the commit, if this collection was about to take it over or to
              publish it; it may not know whether that succeeded
    shard     the shard that the collection holds; None if it holds all of it
    """

    number: int = 0
    checksum: str = ""
    commit: str = ""
    trying: str = ""
    shard: int | None = None


NOTES = TypeAdapter(dict[str, Note])


def fingerprint(record: CommitRecord) -> str:
    """Identifies a commit."""
    content = json.dumps(asdict(record), sort_keys=True, ensure_ascii=False)
    return blake2b(content.encode(), digest_size=16).hexdigest()


def read_note(root: Path, history: str) -> Note:
    """The note of a collection on a published history."""
    return _read(root).get(history, Note())


def held_shard(root: Path) -> int | None:
    """The shard that a collection holds of any history; None if it is whole."""
    return next((note.shard for note in _read(root).values() if note.shard is not None), None)


def write_note(root: Path, history: str, note: Note) -> None:
    """Replace the note of a collection on a published history."""
    notes = {key: asdict(known) for key, known in _read(root).items()} | {history: asdict(note)}
    unfinished = root / f"{FILE}.new"
    with clear_errors(root):
        unfinished.write_text(json.dumps(notes), encoding="utf-8")
        force(unfinished)
        unfinished.replace(root / FILE)
        force(root)


def _read(root: Path) -> dict[str, Note]:
    path = root / FILE
    with clear_errors(root):
        try:
            return NOTES.validate_json(path.read_bytes())
        except FileNotFoundError:
            return {}
        except ValidationError as error:
            raise CollectionDamaged(f"{path} is damaged; pull the collection into another folder") from error
