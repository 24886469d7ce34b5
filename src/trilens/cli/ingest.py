"""What `index` and `load` share: the options of a collection, and adding a stream of documents to it."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trilens.cli.interrupts import Interrupted
from trilens.cli.options import collection_options
from trilens.cli.progress import progress_bar
from trilens.cli.render import out, print_json
from trilens.collection import Collection
from trilens.lenses.registry import lens_type
from trilens.store.changes import Changes
from trilens.store.config import DEFAULT_LENSES, CollectionConfig
from trilens.store.schema import FILE_NAME
from trilens.text.document import Document


@dataclass(frozen=True, slots=True)
class Ingestion:
    """The result of adding documents: changes, documents of the collection, and advice of its lenses."""

    changes: Changes
    documents: int
    advice: Sequence[str]

    def show(self, skipped: int, seconds: float, json: bool) -> None:
        """Print the result; `skipped` is the number of bad records."""
        if self.changes.truncated:
            sys.stderr.write(
                f"note: {self.changes.truncated:,} passages were truncated to the length limit of the model; use a smaller "
                "--passage-words to encode them in full\n"
            )
        counts = asdict(self.changes)
        if json:
            print_json({**counts, "skipped": skipped, "documents": self.documents, "seconds": round(seconds, 3)})
        else:
            shown = [*counts.items(), ("skipped", skipped)]
            parts = [f"{count:,} {name}" for name, count in shown if count and name not in ("truncated", "deleted")]
            out().print(f"{', '.join(parts) or 'nothing to do'}; {self.documents:,} documents in {seconds:.1f} s")
        for line in self.advice:
            sys.stderr.write(f"{line}\n")


def settings(
    to: Path,
    lens: str | None,
    model: str | None,
    language: str | None,
    config: list[str] | None,
    passage_words: int | None,
    overlap_words: int | None,
) -> dict[str, Any]:
    """The options of `Collection.open_or_create`; for a new collection, mistakes in them are reported at once."""
    options = collection_options(lens, model, language, config, _lenses_of(to))
    passages = {"words": passage_words, "overlap": overlap_words}
    if reads_vectors(to, options):
        passages = {name: value or 0 for name, value in passages.items()}
    if passage_options := {name: value for name, value in passages.items() if value is not None}:
        options["passages"] = passage_options
    if not (to / FILE_NAME).exists():
        CollectionConfig.of(**options)
    return options


def reads_vectors(to: Path, options: dict[str, Any]) -> bool:
    """Whether a lens of the collection indexes given vectors instead of texts."""
    return any(lens_type(name).reads == "vector" for name in options.get("lenses") or _lenses_of(to))


def ingest(to: Path, options: dict[str, Any], threads: int | None, documents: Iterable[Document], count: int) -> Ingestion:
    """Add `count` documents to a collection, which is created if there is none."""
    with (
        Collection.open_or_create(to, threads=threads, **options) as collection,
        progress_bar("indexing", count, "docs") as advance,
    ):
        try:
            changes = collection.ingest(documents, advance)
        except KeyboardInterrupt as interrupt:
            collection.rollback()
            raise Interrupted(interrupt, f"{len(collection):,} documents are kept in {to}") from interrupt
        figures = collection.info()["figures"]
        advice = [f"{name}: {values['advice']}" for name, values in figures.items() if values.get("advice")]
        return Ingestion(changes, len(collection), advice)


def _lenses_of(path: Path) -> Sequence[str]:
    """The lenses of an existing collection; the default ones of a new collection."""
    if not (path / FILE_NAME).exists():
        return DEFAULT_LENSES
    with Collection.open(path) as collection:
        return collection.lenses
