"""What `index` and `load` share: the options of a collection, and adding a stream of documents to it."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trilens.cli.interrupts import Interrupted
from trilens.cli.options import collection_options
from trilens.cli.progress import progress_bar
from trilens.cli.render import out, print_json
from trilens.cli.warmup import first_search
from trilens.collection import Collection
from trilens.encode.hub import is_hub_id
from trilens.encode.models import resolve_model
from trilens.lenses.registry import lens_type
from trilens.store.changes import Changes
from trilens.store.config import DEFAULT_LENSES, CollectionConfig
from trilens.store.schema import FILE_NAME
from trilens.store.sources import SourceMemory
from trilens.text.document import Document


@dataclass(frozen=True, slots=True)
class Ingestion:
    """The result of adding documents: changes, documents of the collection, and advice for the user."""

    changes: Changes
    documents: int
    advice: Sequence[str]

    def show(self, skipped: int, seconds: float, json: bool, details: Mapping[str, Any] | None = None) -> None:
        """Print the result; `skipped` is the number of files and records that were not read, `details` are for JSON."""
        counts = asdict(self.changes)
        if json:
            result = {**counts, "skipped": skipped, "documents": self.documents, "seconds": round(seconds, 3)}
            print_json({**result, **(details or {})})
        else:
            shown = [*counts.items(), ("skipped", skipped)]
            parts = [f"{count:,} {name}" for name, count in shown if count and name != "truncated"]
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
        if model and is_hub_id(model):
            with progress_bar(f"preparing {model}, once", None, "steps"):
                resolve_model(model)
    return options


def reads_vectors(to: Path, options: dict[str, Any]) -> bool:
    """Whether a lens of the collection indexes given vectors instead of texts."""
    return any(lens_type(name).reads == "vector" for name in options.get("lenses") or _lenses_of(to))


def ingest(
    to: Path,
    options: dict[str, Any],
    threads: int | None,
    documents: Iterable[Document],
    count: int,
    memory: SourceMemory | None = None,
    prune: bool = False,
) -> Ingestion:
    """Add `count` documents to a collection, which is created if there is none.

    `memory` is what was read of their sources; `prune` removes the documents that are gone from there.
    """
    with Collection.open_or_create(to, threads=threads, **options) as collection:
        try:
            with progress_bar("indexing", count or None, "docs") as work:  # a bar of nothing would be full at once
                if memory is not None:
                    memory.keep()
                changes = collection.ingest(documents, work)
            gone: list[str] = []
            if memory is not None:
                with progress_bar("removing" if prune else "comparing", None, "docs"):
                    gone = memory.gone()
                    if prune:
                        collection.delete(gone)
                        changes += collection.commit()
                    memory.forget()
            if work.compiled:  # the first use of these lenses on this machine
                first_search(collection)
        except KeyboardInterrupt as interrupt:
            collection.rollback()
            raise Interrupted(f"{len(collection):,} documents are kept in {to}") from interrupt
        figures = collection.info()["figures"]
        advice = [f"{name}: {values['advice']}" for name, values in figures.items() if values.get("advice")]
        if gone and not prune:
            advice.append(f"note: {len(gone):,} documents are gone from the sources and still indexed; --prune removes them")
        if changes.truncated:
            advice.insert(0, _truncation(collection.config, changes.truncated))
        return Ingestion(changes, len(collection), advice)


def _truncation(config: CollectionConfig, count: int) -> str:
    """Which lenses read only the beginning of passages that are longer than the model reads, and what helps."""
    cut = [name for name in config.lenses if lens_type(name).heads] or config.lenses
    whole = [name for name in config.lenses if name not in cut]
    if config.passages.tokens:
        remedy = "their titles leave too little room for the text: shorten the titles"
    else:
        what = "passages are by words alone" if config.passages.words else "documents are whole"
        remedy = f"in this collection {what}: index into another one with the default passages to encode everything"
    passages, them = (f"{count:,} passages", "them") if count > 1 else ("1 passage", "it")
    in_full = f"; {' and '.join(whole)} read all of {them}" if whole else ""
    return f"note: {' and '.join(cut)} read only the beginning of {passages}{in_full}; {remedy}"


def _lenses_of(path: Path) -> Sequence[str]:
    """The lenses of an existing collection; the default ones of a new collection."""
    if not (path / FILE_NAME).exists():
        return DEFAULT_LENSES
    with Collection.open(path) as collection:
        return collection.lenses
