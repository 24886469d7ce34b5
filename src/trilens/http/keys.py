"""API keys with read or write permission."""

import hmac
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from trilens.errors import BadInput

SHORTEST = 16
READ_VARIABLE, WRITE_VARIABLE = "TRILENS_READ_KEYS", "TRILENS_WRITE_KEYS"
Permission = Literal["read", "write"]


@dataclass(frozen=True, slots=True)
class ApiKeys:
    """The keys of a service.

    Without read keys, reading needs no key. With them, reading needs a read or a write key. Writing always needs a write key.
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()

    def may(self, permission: Permission, key: str | None) -> bool:
        """Whether a request with this key has the permission."""
        if permission == "read" and not self.read:
            return True
        allowed = self.write if permission == "write" else (*self.read, *self.write)
        return key is not None and _among(key, allowed)

    def knows(self, key: str | None) -> bool:
        """Whether this is a read or write key of the service."""
        return key is not None and _among(key, (*self.read, *self.write))


def load_keys(file: Path | None, environment: Mapping[str, str] = os.environ) -> ApiKeys:
    """The keys in a file (lines `read KEY` and `write KEY`) and in the environment (separated by commas or whitespace)."""
    keys: dict[str, list[str]] = {
        "read": environment.get(READ_VARIABLE, "").replace(",", " ").split(),
        "write": environment.get(WRITE_VARIABLE, "").replace(",", " ").split(),
    }
    if file is not None:
        for number, line in enumerate(_lines(file), start=1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if len(words) != 2 or words[0] not in keys:
                raise BadInput(f"{file}:{number} is not a key; expected `read KEY` or `write KEY`")
            keys[words[0]].append(words[1])
    for key in (*keys["read"], *keys["write"]):
        if len(key) < SHORTEST or not key.isascii():
            raise BadInput(
                f"a key has {len(key)} characters; expected at least {SHORTEST} ASCII characters, such as the output of "
                "`openssl rand -hex 24`"
            )
    return ApiKeys(tuple(keys["read"]), tuple(keys["write"]))


def _among(candidate: str, keys: Iterable[str]) -> bool:
    """Compares with every key in constant time, to prevent timing attacks."""
    return any([hmac.compare_digest(candidate.encode("utf-8", "surrogatepass"), key.encode()) for key in keys])


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"the keys in {file} cannot be read ({error}); expected a text file with one key per line") from error
