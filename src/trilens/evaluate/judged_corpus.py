"""The corpus of a dataset as a collection: indexed once, kept, and updated on the next use."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from trilens.collection import Collection
from trilens.datasets.dataset import Dataset
from trilens.encode.folder import fingerprint_model
from trilens.encode.models import resolve_model
from trilens.errors import CollectionError
from trilens.read.readers import read, survey
from trilens.store.config import WORD_PASSAGES, CollectionConfig
from trilens.store.progress import DocumentsDone

AT_ONCE = 10_000


Progress = Callable[[str, int, str], AbstractContextManager[DocumentsDone]]
"""Opens a progress bar: (what, total, unit) → a function that advances it."""


def corpus_collection(
    dataset: Dataset, target: Path, options: dict[str, Any], threads: int | None, progress: Progress
) -> Collection:
    """The collection in `target` with these lenses and the same options, or a new one, up to date with the corpus.

    Its passages are by words alone by default: published figures are those of passages that the model truncates.
    """
    options = {"passages": WORD_PASSAGES} | options
    config = CollectionConfig.of(**options)
    documents = survey(dataset.sources).documents
    kept = _kept(target, config)
    if kept is not None:
        collection = Collection.open(kept, threads=threads)
    else:
        collection = Collection.create(_free(target, options), threads=threads, **options)
    with progress("indexing", documents, "docs") as advance:
        collection.ingest(read(dataset.sources), advance, full_batches=True)
    if len(collection) > documents:
        present = {document.doc_id for document in read(dataset.sources)}
        collection.delete(doc_id for doc_id in list(_doc_ids(collection)) if doc_id not in present)
        collection.commit()
    return collection


def _kept(target: Path, wanted: CollectionConfig) -> Path | None:
    fingerprint = fingerprint_model(resolve_model(wanted.model)) if wanted.heads else ""
    for path in sorted(target.glob("*.trilens")):
        try:
            with Collection.open(path) as collection:
                kept = collection.config
        except CollectionError:
            continue  # damaged, or of another version: leave it alone
        same = kept.passages == wanted.passages and all(
            kept.of_lens(name) == wanted.of_lens(name) for name in wanted.lenses if name in kept.lenses
        )
        of_model = not wanted.heads or kept.model_fingerprint == fingerprint
        if same and of_model and set(wanted.lenses) <= set(kept.lenses):
            return path
    return None


def _free(target: Path, options: dict[str, Any]) -> Path:
    """A free name made of the lenses and the model, with a number if it is taken."""
    model = f".{Path(options['model']).name}" if "model" in options else ""
    name = f"{'+'.join(sorted(options['lenses'])) if 'lenses' in options else 'all'}{model}"
    numbered = (target / f"{name}{'' if number == 1 else f'.{number}'}.trilens" for number in range(1, AT_ONCE))
    return next(path for path in numbered if not path.exists())


def _doc_ids(collection: Collection) -> Iterator[str]:
    after = -1
    while page := collection.snapshot.page(after, AT_ONCE):
        yield from (document.doc_id for _, document in page)
        after = page[-1][0]
