"""Sends a collection to another engine, so that the engine holds what the collection holds.

The engine itself is the record of what was sent: it keeps a digest with each passage. Sending reads all digests, writes the
passages that are missing or differ and deletes those that the collection no longer has. So sending twice changes nothing, and
after an interruption the next run continues.
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module

from trilens.collection import Collection
from trilens.errors import BadInput
from trilens.send.address import Address, target_name
from trilens.send.layout import layout_of
from trilens.send.passages import passage_ids, read_passages, requests
from trilens.send.target import Engine
from trilens.store.progress import DocumentsDone, no_report

DELETED_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class SendReport:
    """What was sent: the lenses, and the numbers of passages by what happened to them."""

    address: str
    name: str
    lenses: tuple[str, ...]
    written: int
    unchanged: int
    deleted: int


def send(
    collection: Collection,
    to: str,
    *,
    name: str | None = None,
    lenses: Sequence[str] | None = None,
    half: bool = False,
    report: DocumentsDone = no_report,
) -> SendReport:
    """Send the commit that searches see.

    `to` is an address (see docs/send.md), `name` the table, index or collection there, by default named like the collection's
    folder. `lenses` are those whose vectors are sent, by default all that have vectors. `report` is called with numbers of
    passages.
    """
    address = Address.of(to)
    name = target_name(name, collection.path)
    engine: Engine = import_module(f"trilens.send.{address.module}").engine(address)
    layout = layout_of(collection, lenses, half)
    engine.require(layout)
    snapshot = collection.snapshot
    written = unchanged = 0
    with closing(engine.open(address, name, layout)) as target:
        stored = dict(target.stored())
        if stored and not any(passage_id in stored for passage_id in passage_ids(snapshot)):
            raise BadInput(
                f"{name} at {address} holds {len(stored):,} passages, none of them of {collection.path}; send to another "
                "--name, or delete it in the engine"
            )
        for passages in read_passages(snapshot, layout):
            changed = [passage for passage in passages if stored.pop(passage.id, None) != passage.digest]
            unchanged += len(passages) - len(changed)
            report(len(passages) - len(changed))
            for piece in requests(changed):
                target.write(piece)
                written += len(piece)
                report(len(piece))
        gone = list(stored)
        for start in range(0, len(gone), DELETED_AT_ONCE):
            target.delete(gone[start : start + DELETED_AT_ONCE])
        target.finish()
    return SendReport(str(address), name, tuple(field.lens for field in layout.fields), written, unchanged, len(gone))
