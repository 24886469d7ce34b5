"""`Skipped`: what a reader leaves out, and why."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from trilens.errors import BadInput, Unreadable

NO_READER = "without a reader"
SPECIAL = "pipe, socket or device"
LEFT_OUT = "left out"
MALFORMED = "malformed"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file, folder or record that is not read; its string is the message.

    `in_folder` tells what was found in a folder from what was named. What folders may well hold, such as pictures, is no error.
    `suffix` is that of a file without a reader. `may_be_folder`: nothing could be found out, as of a link to an unmounted disk.
    """

    error: BadInput
    unit: Literal["file", "folder", "record"] = "file"
    name: str = ""
    in_folder: bool = False
    is_error: bool = True
    suffix: str = ""
    may_be_folder: bool = False

    @property
    def reason(self) -> str:
        """The reason in a few words."""
        return self.error.reason if isinstance(self.error, Unreadable) else MALFORMED

    def __str__(self) -> str:
        return str(self.error)


OnSkip = Callable[[Skipped], None]
"""Receives all that is skipped; it may raise the error to stop."""


def raise_errors(skipped: Skipped) -> None:
    """Stop at the first error."""
    if skipped.is_error:
        raise skipped.error
