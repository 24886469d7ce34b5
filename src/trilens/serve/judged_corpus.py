"""Datasets as users name them, and their corpora as collections: encoded once, kept, and brought up to date by the next use."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trilens.collection import Collection
from trilens.encode.folder import fingerprint_model
from trilens.encode.models import resolve_model
from trilens.errors import CollectionError
from trilens.evaluate.beir_archives import Archive, BytesDone
from trilens.evaluate.datasets import open_dataset
from trilens.serve.progress import counting, counting_bytes
from trilens.store.config import CollectionConfig
from trilens.text.dataset import Dataset
from trilens.text.readers import read, survey

AT_ONCE = 10_000


def opened(source: str) -> Dataset:
    """The dataset of a folder in any known layout, or of a name, which is downloaded with a progress bar."""
    return open_dataset(source, downloading=downloading)


@contextmanager
def downloading(name: str, archive: Archive) -> Iterator[BytesDone]:
    with counting_bytes(f"downloading {name}", archive.bytes) as advance:
        yield advance


def corpus_collection(dataset: Dataset, target: Path, options: dict[str, Any], threads: int | None) -> Collection:
    """Any collection in `target` that has the lenses of these options, made in the same way, or a new one."""
    config = CollectionConfig.of(**options)
    documents = survey(dataset.sources).documents
    kept = _kept(target, config)
    if kept is not None:
        collection = Collection.open(kept, threads=threads)
    else:
        collection = Collection.create(_free(target, options), threads=threads, **options)
    with counting("indexing", documents, "docs") as advance:
        collection.ingest(read(dataset.sources), advance)
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
            continue  # damaged, or of another version: it is not for us to say what becomes of it
        same = (kept.bm25, kept.passages) == (wanted.bm25, wanted.passages)
        of_model = not wanted.heads or kept.model_fingerprint == fingerprint
        if same and of_model and set(wanted.lenses) <= set(kept.lenses):
            return path
    return None


def _free(target: Path, options: dict[str, Any]) -> Path:
    """A name that tells the lenses and the model, with a number if another collection has it."""
    model = f".{Path(options['model']).name}" if "model" in options else ""
    name = f"{'+'.join(sorted(options['lenses'])) if 'lenses' in options else 'all'}{model}"
    numbered = (target / f"{name}{'' if number == 1 else f'.{number}'}.trilens" for number in range(1, AT_ONCE))
    return next(path for path in numbered if not path.exists())


def _doc_ids(collection: Collection) -> Iterator[str]:
    after = -1
    while page := collection.snapshot.page(after, AT_ONCE):
        yield from (document.doc_id for _, document in page)
        after = page[-1][0]
