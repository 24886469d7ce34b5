"""API keys: who may read and who may write."""

import hmac
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from trilens.errors import BadInput

SHORTEST = 16
READ_VARIABLE, WRITE_VARIABLE = "TRILENS_READ_KEYS", "TRILENS_WRITE_KEYS"
Right = Literal["read", "write"]


@dataclass(frozen=True, slots=True)
class Keys:
    """With a read key, reading needs a key (a write key will do); without one, reading is open. Writing always needs a key."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()

    def may(self, right: Right, given: str | None) -> bool:
        """Whether a key allows something."""
        if right == "read" and not self.read:
            return True
        allowed = self.write if right == "write" else (*self.read, *self.write)
        return given is not None and _among(given, allowed)

    def knows(self, given: str | None) -> bool:
        """Whether a key is one of ours, whatever it allows."""
        return given is not None and _among(given, (*self.read, *self.write))


def load_keys(file: Path | None, environment: Mapping[str, str] = os.environ) -> Keys:
    """Keys of a file (lines `read KEY` and `write KEY`) and of the environment (separated by commas or white space)."""
    found: dict[str, list[str]] = {
        "read": environment.get(READ_VARIABLE, "").replace(",", " ").split(),
        "write": environment.get(WRITE_VARIABLE, "").replace(",", " ").split(),
    }
    if file is not None:
        for number, line in enumerate(_lines(file), start=1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if len(words) != 2 or words[0] not in found:
                raise BadInput(f"{file}:{number} is not a key; expected `read KEY` or `write KEY`")
            found[words[0]].append(words[1])
    for key in (*found["read"], *found["write"]):
        if len(key) < SHORTEST or not key.isascii():
            raise BadInput(
                f"a key of {len(key)} characters was given; expected at least {SHORTEST} ASCII ones, "
                "such as those of `openssl rand -hex 24`"
            )
    return Keys(tuple(found["read"]), tuple(found["write"]))


def _among(given: str, keys: Iterable[str]) -> bool:
    """Looks at every key in full, so that the time it takes tells nothing."""
    return any([hmac.compare_digest(given.encode("utf-8", "surrogatepass"), key.encode()) for key in keys])


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"the keys in {file} cannot be read ({error}); expected a text file with a key a line") from error
