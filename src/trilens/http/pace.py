"""The pace of a queue: how long the next request would wait, from the measured time of those before it."""

import math
from dataclasses import dataclass

from trilens.http.failures import Refused

WEIGHT = 0.1  # of the last measurement in the moving average


@dataclass(slots=True)
class Pace:
    """A moving average of the seconds per queued query. `longest` is the expected wait above which requests are refused."""

    longest: float
    threads: int
    seconds: float = 0.0

    def measured(self, queries: int, seconds: float) -> None:
        """Add the time that one thread took for a batch of queries, or for one call."""
        new = seconds / queries
        self.seconds = new if not self.seconds else (1 - WEIGHT) * self.seconds + WEIGHT * new

    def require_short(self, queued: int) -> None:
        """Refuse a request that would wait too long behind `queued` queries."""
        wait = queued * self.seconds / self.threads
        if wait > self.longest:
            busy = f"the service is overloaded: the wait would be about {wait:.0f} s; retry later"
            raise Refused(503, busy, {"Retry-After": str(math.ceil(wait - self.longest))})
