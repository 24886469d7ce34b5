"""`LocalFile`: what a parser in the child process receives."""

from dataclasses import dataclass
from pathlib import Path

from trilens.read.limits import ParsingLimits


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file on disk, not compressed, and the limits that its parser applies itself."""

    path: Path
    limits: ParsingLimits
