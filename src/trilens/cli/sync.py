"""One run of `index`: survey the sources, add what is new or changed, and remove what is gone if asked to."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from trilens import __version__
from trilens.cli.ingest import Ingestion, ingest
from trilens.cli.progress import Work, progress_bar
from trilens.cli.skips import SkipReport
from trilens.errors import BadInput
from trilens.read.readers import ReadOptions, read_items
from trilens.read.skipped import Skipped
from trilens.read.sources import SourceFile
from trilens.store.sources import SourceMemory

Counted = TypeVar("Counted")


@dataclass(frozen=True, slots=True)
class Sync:
    """Sources, the collection that follows them, and how. `strict` is that of `SkipReport`."""

    sources: Sequence[str]
    to: Path
    settings: dict[str, Any]
    reading: ReadOptions
    threads: int | None = None
    strict: bool | None = None
    prune: bool = False

    def run(self) -> tuple[Ingestion, SkipReport]:
        """Bring the collection up to date. All input is checked before the collection is changed."""
        report = SkipReport(self.strict)
        with SourceMemory(self.to, f"{__version__} {self.reading.fields} {self.reading.id_prefix}") as memory:
            reading = replace(self.reading, unchanged=memory.unchanged)
            try:
                documents = self._survey(memory, report)
            except BadInput:
                report.summarise()
                raise
            unread = memory.unchanged_documents
            if not (documents or unread):
                report.summarise()
                raise BadInput("no document could be read; expected at least one: see the messages above")
            if replaced := memory.replaced():
                count, doc_id, source = replaced
                sys.stderr.write(
                    f"note: {count:,} documents replace those of other sources, such as {doc_id[:80]!r} of {source}; "
                    "--id-prefix tells them apart\n"
                )
            items = read_items(self.sources, reading, SkipReport(self.strict, quiet=True))
            stream = (item.document for item in items)
            result = ingest(self.to, self.settings, self.threads, stream, documents, memory, self.prune)
        result.changes.unchanged += unread
        return result, report

    def _survey(self, memory: SourceMemory, report: SkipReport) -> int:
        """Read and count all documents without keeping them."""

        def skip(skipped: Skipped) -> None:
            report(skipped)
            memory.skip(skipped)

        def unchanged(source: Path, file: SourceFile) -> Iterator[str] | None:
            ids = memory.unchanged(source, file)
            return None if ids is None else _counted(ids, work)

        count = 0
        with progress_bar("reading", None, "docs") as work:
            for item in _counted(read_items(self.sources, replace(self.reading, unchanged=unchanged), skip), work):
                memory.add(item)
                count += 1
        return count


def _counted(items: Iterator[Counted], work: Work) -> Iterator[Counted]:
    """Pass items on, and report them as done."""
    for item in items:
        yield item
        work(1)
