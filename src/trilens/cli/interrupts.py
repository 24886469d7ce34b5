"""Ctrl-C and SIGTERM: both end a command with one line that says what is kept."""

import signal
from threading import Event
from types import FrameType

from trilens.errors import TrilensError

_terminated = Event()  # the exception does not tell: compiled code that a signal interrupts may raise one of its own


class Interrupted(TrilensError):
    """A command that a signal has ended."""

    def __init__(self, kept: str = "committed changes are kept") -> None:
        super().__init__(f"interrupted; {kept}, and the same command resumes")
        self.exit_code = 128 + (signal.SIGTERM if _terminated.is_set() else signal.SIGINT)


def interrupt_on_sigterm() -> None:
    """Let SIGTERM interrupt a command as Ctrl-C does."""
    signal.signal(signal.SIGTERM, _terminate)


def _terminate(_number: int, _frame: FrameType | None) -> None:
    _terminated.set()
    raise KeyboardInterrupt
