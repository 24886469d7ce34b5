"""`FairLock`: a re-entrant lock that threads get in the order in which they ask for it.

A thread that releases a lock of the standard library and takes it again at once usually gets it before those that wait; so a
long computation in short turns would keep all other threads waiting until its end.
"""

from collections import deque
from dataclasses import dataclass, field
from threading import Lock, get_ident


@dataclass(eq=False, slots=True)
class _Turn:
    """The place of a thread in the queue; `ready` is released when the lock is handed to it."""

    thread: int = field(default_factory=get_ident)
    ready: Lock = field(default_factory=Lock)


class FairLock:
    """A lock for `with` statements."""

    def __init__(self) -> None:
        self._state = Lock()  # guards the attributes below; held for a few instructions only
        self._owner: int | None = None
        self._depth = 0
        self._queue: deque[_Turn] = deque()

    @property
    def waiting(self) -> int:
        """Number of threads that wait for the lock."""
        return len(self._queue)

    def __enter__(self) -> None:
        """Wait for the lock."""
        if self._owner == get_ident():
            self._depth += 1
            return
        with self._state:
            if self._owner is None:
                self._owner, self._depth = get_ident(), 1
                return
            turn = _Turn()
            turn.ready.acquire()
            self._queue.append(turn)
        try:
            turn.ready.acquire()
        except BaseException:  # a signal, such as Ctrl-C
            self._leave(turn)
            raise

    def __exit__(self, *_: object) -> None:
        """Hand the lock to the thread that has waited longest."""
        self._depth -= 1
        if not self._depth:
            with self._state:
                self._hand_on()

    def _hand_on(self) -> None:
        if self._queue:
            turn = self._queue.popleft()
            self._owner, self._depth = turn.thread, 1
            turn.ready.release()
        else:
            self._owner = None

    def _leave(self, turn: _Turn) -> None:
        """Give up a place in the queue, or the lock if it has been handed over already."""
        with self._state:
            if turn in self._queue:
                self._queue.remove(turn)
            else:
                self._hand_on()
