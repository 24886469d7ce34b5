"""Cancellation: work that nobody waits for stops at its next check.

Whoever runs work for somebody else, such as a search thread of the service, says when it is unwanted; the work itself calls
`require_wanted` between its stages. Work outside `stop_when` is always wanted.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from trilens.errors import Stopped

STOPPED = "the request took too long and was stopped; send less at once, use a simpler filter, or retry later"


def _never() -> bool:
    return False


_unwanted: ContextVar[Callable[[], bool]] = ContextVar("unwanted", default=_never)


@contextmanager
def stop_when(unwanted: Callable[[], bool]) -> Iterator[None]:
    """Stop the work inside, in this thread, as soon as `unwanted` returns True. It is called often and has to be fast."""
    token = _unwanted.set(unwanted)
    try:
        yield
    finally:
        _unwanted.reset(token)


def is_unwanted() -> bool:
    """Whether the work of this thread should stop."""
    return _unwanted.get()()


def require_wanted() -> None:
    """Raise `Stopped` if the work of this thread should stop."""
    if is_unwanted():
        raise Stopped(STOPPED)
