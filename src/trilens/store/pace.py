"""How many passages are indexed between two commits, so that an interruption loses only seconds of work."""

from time import monotonic

SECONDS = 15.0  # between commits; a single document can take longer
FIRST_PASSAGES = 64
FIRST_SHARED = 512  # where a lens trains a shared part on the first batch, such as a codebook, which needs many tokens
MOST_PASSAGES = 4096
GROWTH = 4  # limits what one fast commit, for instance of empty texts, can do


class CommitPace:
    """Adapts the number of passages per commit to the speed at which they are read, encoded and written.

    With `full_batches` only time counts, so that the segments hardly depend on the speed of the machine.
    """

    def __init__(self, full_batches: bool = False, shares: bool = False) -> None:
        """`shares` says whether a lens writes shared parts."""
        self._passages = MOST_PASSAGES if full_batches else FIRST_SHARED if shares else FIRST_PASSAGES
        self._least = MOST_PASSAGES if full_batches else 1
        self._last_commit = monotonic()

    def is_due(self, passages: int) -> bool:
        """Whether to commit now, given the number of passages that await encoding."""
        return passages >= self._passages or monotonic() - self._last_commit >= SECONDS

    def committed(self, passages: int) -> None:
        """Record a commit of this many passages."""
        now = monotonic()
        if passages:
            reached = int(passages * SECONDS / max(now - self._last_commit, 1e-3))
            self._passages = max(self._least, min(reached, GROWTH * self._passages, MOST_PASSAGES))
        self._last_commit = now
