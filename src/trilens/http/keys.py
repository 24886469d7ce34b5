"""API keys with read or write permission."""

import hashlib
import hmac
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from trilens.errors import BadInput

SHORTEST = 16
FINGERPRINT = 12
OF_OTHERS = 0o077  # the permissions of group and others
READ_VARIABLE, WRITE_VARIABLE = "TRILENS_READ_KEYS", "TRILENS_WRITE_KEYS"
Permission = Literal["read", "write"]


@dataclass(frozen=True, slots=True)
class ApiKeys:
    """The keys of a service.

    Without read keys, reading needs no key. With them, reading needs a read or a write key. Writing always needs a write key.
    `names` are the names of keys in logs.
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)

    def may(self, permission: Permission, key: str | None) -> bool:
        """Whether a request with this key has the permission."""
        if permission == "read" and not self.read:
            return True
        allowed = self.write if permission == "write" else (*self.read, *self.write)
        return key is not None and _among(key, allowed)

    def knows(self, key: str | None) -> bool:
        """Whether this is a read or write key of the service."""
        return key is not None and _among(key, (*self.read, *self.write))

    def label(self, key: str) -> str:
        """What logs say instead of a key of the service: its name, or the first digits of its SHA-256."""
        return self.names.get(key) or hashlib.sha256(key.encode()).hexdigest()[:FINGERPRINT]


def load_keys(file: Path | None, environment: Mapping[str, str] = os.environ) -> ApiKeys:
    """The keys in a file (lines `read KEY [NAME]` and `write KEY [NAME]`) and in the environment (by commas or whitespace)."""
    keys: dict[str, list[str]] = {
        "read": environment.get(READ_VARIABLE, "").replace(",", " ").split(),
        "write": environment.get(WRITE_VARIABLE, "").replace(",", " ").split(),
    }
    names: dict[str, str] = {}
    for number, line in enumerate(_lines(file, environment) if file else (), start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) not in (2, 3) or words[0] not in keys:
            raise BadInput(f"{file}:{number} is not a key; expected `read KEY` or `write KEY`, and a name if wanted")
        keys[words[0]].append(words[1])
        if len(words) == 3:
            names[words[1]] = words[2]
    for key in (*keys["read"], *keys["write"]):
        if len(key) < SHORTEST or not key.isascii():
            raise BadInput(
                f"a key has {len(key)} characters; expected at least {SHORTEST} ASCII characters, such as the output of "
                "`openssl rand -hex 24`"
            )
    return ApiKeys(tuple(keys["read"]), tuple(keys["write"]), names)


def _among(candidate: str, keys: Iterable[str]) -> bool:
    """Compares with every key in constant time, to prevent timing attacks."""
    return any([hmac.compare_digest(candidate.encode("utf-8", "surrogatepass"), key.encode()) for key in keys])


def _lines(file: Path, environment: Mapping[str, str]) -> list[str]:
    try:
        mode = stat.S_IMODE(file.stat().st_mode)
        if mode & OF_OTHERS and not _is_credential(file, environment):
            raise BadInput(f"the keys in {file} can be read by others (mode {mode:o}); run `chmod 600 {file}`")
        return file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"the keys in {file} cannot be read ({error}); expected a text file with one key per line") from error


def _is_credential(file: Path, environment: Mapping[str, str]) -> bool:
    """Whether systemd passed the file (`LoadCredential`): it protects the folder, and its access list looks like a group's."""
    folder = environment.get("CREDENTIALS_DIRECTORY")
    return bool(folder) and file.resolve().is_relative_to(Path(str(folder)).resolve())
