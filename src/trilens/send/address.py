"""`Address`: where to send, such as qdrant+http://localhost:6333, postgresql://host/database or lancedb+file:folder."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trilens.errors import BadInput

# Engine → its module in this package, and how it is reached: ENGINE+TRANSPORT; "" is the bare name.
ENGINES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "qdrant": ("qdrant", ("http", "https", "file")),
    "milvus": ("milvus", ("http", "https", "file")),
    "postgresql": ("pgvector", ("",)),
    "lancedb": ("lancedb", ("file", "s3", "gs", "az")),
    "elasticsearch": ("bulk", ("file",)),
    "opensearch": ("bulk", ("file",)),
}
NAME = re.compile(r"[a-z][a-z0-9_]{0,47}")  # what all engines accept


@dataclass(frozen=True, slots=True)
class Address:
    """A parsed address. `url` is what the client of the engine takes; `str` leaves out its user and password."""

    engine: str
    transport: str
    url: str

    @staticmethod
    def of(text: str) -> "Address":
        """Parse an address."""
        scheme, colon, rest = text.partition(":")
        engine, _, transport = scheme.partition("+")
        if not colon or not rest or transport not in ENGINES.get(engine, ("", ()))[1]:
            known = ", ".join(_schemes())
            raise BadInput(f"--to is {_without_secrets(text)!r}; expected an address that begins with one of {known}")
        if transport == "file":
            return Address(engine, transport, rest.removeprefix("//"))
        if not rest.startswith("//") or not rest.strip("/"):
            raise BadInput(f"--to is {_without_secrets(text)!r}; expected {scheme}://HOST")
        return Address(engine, transport, text if not transport else f"{transport}:{rest}")

    @property
    def module(self) -> str:
        """The name of the engine's module."""
        return ENGINES[self.engine][0]

    @property
    def path(self) -> Path | None:
        """The file or folder that the engine reads itself; None for a server."""
        return Path(self.url) if self.transport == "file" else None

    def __str__(self) -> str:
        shown = _without_secrets(self.url)
        if self.transport == "file":
            return f"{self.engine}+file:{shown}"
        return f"{self.engine}+{shown}" if self.transport else shown


def target_name(given: str | None, collection: Path) -> str:
    """The name of the table, index or collection in the engine: the given one, or that of the collection's folder."""
    name = re.sub(r"[^a-z0-9_]", "_", collection.resolve().stem.lower()) if given is None else given
    if not NAME.fullmatch(name):
        raise BadInput(
            f"the name in the engine is {name!r}; expected a lower-case letter and up to 47 letters, digits and underscores: "
            "choose it with --name"
        )
    return name


def _schemes() -> list[str]:
    pairs = [(engine, transport) for engine, (_, transports) in ENGINES.items() for transport in transports]
    return [f"{engine}+{transport}:" if transport else f"{engine}:" for engine, transport in pairs]


def _without_secrets(url: str) -> str:
    url = re.sub(r"//[^?#]*@", "//", url)
    return re.sub(r"(?i)\b(password|token|api_?key|secret)=[^&]*", r"\1=…", url)
