"""`Destination`: one table, index or collection of an engine, and `Engine`: how to open one."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from trilens.errors import BadInput, ServiceFailed
from trilens.represent import Representation
from trilens.send.address import Address
from trilens.send.layout import KIND_NAMES, Layout
from trilens.send.passages import Passage

LONGEST_REASON = 300


class Destination(Protocol):
    """What is sent to. Opening one creates it where it does not exist, and refuses one of another form."""

    def stored(self) -> Iterable[tuple[str, str]]:
        """The id and the digest of every passage that it holds."""

    def write(self, passages: Sequence[Passage]) -> None:
        """Add passages, and replace those with the same id."""

    def delete(self, ids: Sequence[str]) -> None:
        """Delete passages."""

    def finish(self) -> None:
        """What remains to be done when everything is written."""

    def close(self) -> None:
        """End the connection."""


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine.

    title   its name in messages
    kinds   the representations that it can hold
    half    whether it can hold vectors in 16 bits
    open    opens a target by address and name
    """

    title: str
    kinds: frozenset[type[Representation]]
    half: bool
    open: Callable[[Address, str, Layout], Destination]

    def require(self, layout: Layout) -> None:
        """Refuse what the engine cannot hold."""
        for field in layout.fields:
            if field.kind not in self.kinds:
                others = ",".join(other.lens for other in layout.fields if other.kind in self.kinds)
                advice = f"send the others with --lens {others}" if others else "choose another engine"
                raise BadInput(
                    f"{self.title} cannot hold lens {field.lens}, whose vectors are {KIND_NAMES[field.kind]}; {advice}"
                )
        if layout.half and not self.half:
            raise BadInput(f"vectors of 16 bits are not available for {self.title}; leave out --half")


def require_same_form(address: Address, name: str, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Refuse a target whose fields are others; values describe the fields."""
    if dict(found) == dict(wanted):
        return
    field = next(field for field in (*wanted, *found) if found.get(field) != wanted.get(field))
    has, expects = (form.get(field, "nothing") for form in (found, wanted))
    raise BadInput(
        f"{name} at {address} has {has} as {field}; expected {expects}: send to another --name, or delete it in the engine"
    )


@contextmanager
def answering(address: Address, *failures: type[Exception]) -> Iterator[None]:
    """An error of the engine's client in this block becomes one line. What has been written until then stays."""
    try:
        yield
    except failures as error:
        raise failed(address, str(error) or type(error).__name__) from error


def failed(address: Address, reason: str, advice: str = "correct that and send again, which continues") -> ServiceFailed:
    """The error to raise where an engine refuses something or does not answer."""
    line = " ".join(reason.split()).rstrip(".")
    shortened = line if len(line) <= LONGEST_REASON else line[:LONGEST_REASON] + " …"
    return ServiceFailed(f"{address} failed ({shortened}); {advice}")
