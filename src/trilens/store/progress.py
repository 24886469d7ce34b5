"""Reports of progress: the documents that a writer has finished, and what it is doing."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

DocumentsDone = Callable[[float], None]
"""Called with the number of documents finished since the last call; the last ones are finished when they are committed."""


@runtime_checkable
class StageReport(Protocol):
    """A `DocumentsDone` object can have this method as well."""

    def stage(self, name: str) -> None:
        """Called when something else begins, such as encoding or merging."""


def no_report(documents: float) -> None:
    """Ignore progress."""


class CommitProgress:
    """Reports the documents of one transaction as they are encoded, but the last one when it is committed."""

    def __init__(self) -> None:
        self.report: DocumentsDone = no_report
        self._unreported = 0.0

    def stage(self, name: str) -> None:
        """Report what is being done, if the report has a method for it."""
        if isinstance(self.report, StageReport):
            self.report.stage(name)

    def began(self, documents: int) -> None:
        """Expect more documents."""
        self._unreported += documents

    def encoded(self, documents: float) -> None:
        """Report documents, up to the last one."""
        self._advance(min(documents, max(0.0, self._unreported - 1)))

    def committed(self) -> None:
        """Report the rest."""
        self._advance(self._unreported)

    def _advance(self, documents: float) -> None:
        self._unreported -= documents
        self.report(documents)
