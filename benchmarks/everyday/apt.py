"""Package lists and packages through apt, without root and without changing the state of the machine's own apt."""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trilens.errors import BadInput

HELPER = "/usr/lib/apt/apt-helper"
ORIGIN = ("Origin: Debian", "Component: main")


@dataclass(frozen=True, slots=True)
class Apt:
    """The machine's package sources with lists and downloads in a folder of our own."""

    folder: Path

    def update(self) -> None:
        """Fetch the package lists with English descriptions."""
        (self.folder / "state" / "lists" / "partial").mkdir(parents=True, exist_ok=True)
        (self.folder / "cache" / "archives" / "partial").mkdir(parents=True, exist_ok=True)
        run(["apt-get", *self._options(), "update"])

    def lists(self, kind: str) -> Iterator[str]:
        """The text of each of Debian's lists of a kind: `Packages` or `Translations`."""
        targets = [f"Created-By: {kind}", *ORIGIN]
        files = run(["apt-get", *self._options(), "indextargets", "--format", "$(FILENAME)", *targets]).decode().split()
        if not files:
            raise BadInput(f"apt has no list {kind!r} of Debian's main component; its sources must name a Debian release")
        for file in sorted(files):
            yield run([HELPER, "cat-file", file]).decode()

    def download(self, name: str) -> Path:
        """Download a package file."""
        folder = self.folder / "packages" / name
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.deb"):
            old.unlink()
        run(["apt-get", *self._options(), "download", name], folder)
        return next(folder.glob("*.deb"))

    def _options(self) -> list[str]:
        settings = {
            "Dir::State": self.folder / "state",
            "Dir::State::status": "/var/lib/dpkg/status",
            "Dir::Cache": self.folder / "cache",
            "Acquire::Languages": "en",
            "APT::Sandbox::User": "",
        }
        return [part for name, value in settings.items() for part in ("-o", f"{name}={value}")]


def run(command: list[str], folder: Path | None = None, given: bytes | None = None) -> bytes:
    """Standard output of a command; an error if it is not installed or fails."""
    try:
        done = subprocess.run(command, cwd=folder, input=given, capture_output=True, check=False)
    except FileNotFoundError:
        raise BadInput(f"the command {command[0]!r} is not installed; it is needed to build the everyday collections") from None
    if done.returncode:
        last = (done.stderr.decode(errors="replace").strip().splitlines() or ["no message"])[-1]
        raise BadInput(f"{command[0]} failed: {last}")
    return done.stdout
