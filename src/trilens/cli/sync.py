"""One run of `index`: survey the sources, add what is new or changed, and remove what is gone if asked to."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trilens import __version__
from trilens.cli.ingest import Ingestion, ingest
from trilens.cli.skips import SkipReport
from trilens.errors import BadInput
from trilens.read.readers import ReadOptions, read_items
from trilens.read.skipped import Skipped
from trilens.store.sources import SourceMemory


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
            documents = self._survey(reading, memory, report)
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

    def _survey(self, reading: ReadOptions, memory: SourceMemory, report: SkipReport) -> int:
        """Read and count all documents without keeping them."""

        def skip(skipped: Skipped) -> None:
            report(skipped)
            memory.skip(skipped)

        count = 0
        for item in read_items(self.sources, reading, skip):
            memory.add(item)
            count += 1
        return count
