"""`Collection`: what users hold. It puts the store, the lenses and the search together."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, Self

from trilens.encode.folder import ModelFolder, bundled_models, resolve_model
from trilens.errors import BadInput, CollectionExists, CollectionMissing
from trilens.search.hits import Hit
from trilens.search.searcher import search
from trilens.store.catalog import FILE_NAME, Catalog, clear_errors
from trilens.store.check import BytesDone, Report, check_collection
from trilens.store.config import CollectionConfig
from trilens.store.lenses import Lenses
from trilens.store.segment import FOLDER
from trilens.store.snapshot import Snapshot
from trilens.store.writer import Changes, DocumentsDone, Writer, no_report
from trilens.text.document import Document, require_utf8

SECONDS_BETWEEN_COMMITS = 20.0


class Collection:
    """Documents that can be changed at any time and searched through every lens.

    Searches see the last commit at opening, at the last `refresh` or at our own last `commit`. Changes are seen by nobody
    before `commit`. As a context manager it commits on the way out, or rolls back if there was an error.
    """

    def __init__(self, path: Path, config: CollectionConfig, threads: int | None) -> None:
        self.path = path
        self.config = config
        self._lenses = Lenses(config, threads)
        self._snapshot: Snapshot | None = None
        self._writer: Writer | None = None

    @staticmethod
    def create(path: str | Path, *, threads: int | None = None, **options: Any) -> "Collection":
        """Make an empty collection. `options` are the fields of `CollectionConfig`: lenses, model, bm25, dense, passages."""
        root = Path(path)
        config = CollectionConfig.of(**options)
        if "dense" in config.lenses:
            folder = resolve_model(config.model)
            name = config.model if config.model in bundled_models() else str(folder.resolve())
            config = config.model_copy(update={"model": name, "model_fingerprint": ModelFolder.open(folder).fingerprint})
        with clear_errors(root):
            if (root / FILE_NAME).exists():
                raise CollectionExists(f"{root} holds a collection already; open it, or choose another folder")
            if root.exists() and (not root.is_dir() or any(_foreign(root))):
                raise CollectionExists(f"{root} exists and is not a collection; expected a new or empty folder")
            (root / FOLDER).mkdir(parents=True, exist_ok=True)
        Catalog.create(root, config)
        return Collection(root, config, threads)

    @staticmethod
    def open(path: str | Path, *, threads: int | None = None) -> "Collection":
        """Open an existing collection. `threads` limits the encoder (None: all cores)."""
        root = Path(path)
        with clear_errors(root):
            if not (root / FILE_NAME).exists():
                raise CollectionMissing(f"there is no collection at {root}; make one with `trilens index SOURCE --to {root}`")
        catalog = Catalog.open(root)
        try:
            config = catalog.config()
        finally:
            catalog.close()
        return Collection(root, config, threads)

    @property
    def lenses(self) -> list[str]:
        """Names of the lenses."""
        return self._lenses.names

    @property
    def snapshot(self) -> Snapshot:
        """The commit that searches see."""
        if self._snapshot is None:
            self._snapshot = Snapshot(self.path, self._lenses)
        return self._snapshot

    def __len__(self) -> int:
        return self.snapshot.documents_count

    def get(self, doc_id: str) -> Document | None:
        """A document by its id."""
        return self.snapshot.document(_require_id(doc_id))

    def search(
        self,
        queries: Sequence[str],
        k: int = 10,
        *,
        lenses: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        exact: bool = False,
    ) -> list[list[Hit]]:
        """The best k documents of each query, through all lenses unless some are named.

        One lens ranks by its own score, several by reciprocal rank fusion. `where` is a metadata filter. `exact` leaves
        out every approximation that a lens makes to be fast.
        """
        return search(self.snapshot, self._lenses, queries, k, self.lenses if lenses is None else lenses, where, exact)

    def add(self, documents: Iterable[Document], report: DocumentsDone = no_report) -> None:
        """Add documents; an id that is there already is an error."""
        writer = self._writing(report)
        for document in documents:
            writer.add(_require_document(document))

    def upsert(self, documents: Iterable[Document], report: DocumentsDone = no_report) -> None:
        """Add documents, replacing those whose ids are there already; what has not changed costs nothing."""
        writer = self._writing(report)
        for document in documents:
            writer.upsert(_require_document(document))

    def ingest(self, documents: Iterable[Document], report: DocumentsDone = no_report) -> Changes:
        """Upsert a long stream of documents, committing again and again.

        If it is interrupted, what was committed stays, and the same call over the same stream continues where it stopped.
        """
        total, last_commit = self.commit(), monotonic()
        for document in documents:
            self.upsert([document], report)
            if monotonic() - last_commit > SECONDS_BETWEEN_COMMITS:
                total, last_commit = total + self.commit(), monotonic()
        return total + self.commit()

    def delete(self, doc_ids: Iterable[str]) -> list[str]:
        """Delete documents; returns the ids that were not there."""
        if isinstance(doc_ids, str):
            raise BadInput("doc_ids is one string; expected a list of them: put it into a list")
        checked = [_require_id(doc_id) for doc_id in doc_ids]
        writer = self._writing(no_report)
        return [doc_id for doc_id in checked if not writer.delete(doc_id)]

    def commit(self) -> Changes:
        """Make all changes since the last commit durable and visible."""
        if self._writer is None:
            return Changes()
        writer, self._writer = self._writer, None
        changes = writer.commit()
        self.refresh()
        return changes

    def rollback(self) -> None:
        """Forget all changes since the last commit."""
        if self._writer is not None:
            writer, self._writer = self._writer, None
            writer.rollback()

    def optimize(self) -> Changes:
        """Commit, and merge everything into one segment without the remains of deleted documents."""
        writer = self._writing(no_report)
        self._writer = None
        changes = writer.optimize()
        self.refresh()
        return changes

    def refresh(self) -> bool:
        """Move on to the last commit, also of other processes; False if there is no newer one."""
        old = self._snapshot
        if old is None:
            return True
        self._snapshot = Snapshot(self.path, self._lenses, previous=old)
        return self._snapshot.commit != old.commit

    def check(self, report: BytesDone = lambda count: None) -> Report:
        """Verify every file and every document on disk."""
        return check_collection(self.path, report)

    def info(self) -> dict[str, Any]:
        """Facts and figures."""
        records = [segment.record for segment in self.snapshot.segments]
        files = [file for record in records for file in record.files]
        live = self.snapshot.live_rows
        return {
            "path": str(self.path),
            "documents": len(self),
            "passages": live,
            "lenses": self.lenses,
            "model": self.config.model if "dense" in self.lenses else None,
            "commit": self.snapshot.commit,
            "segments": len(records),
            "deleted_passages": self.snapshot.rows - live,
            "catalog_bytes": (self.path / FILE_NAME).stat().st_size,
            "segment_bytes": {
                name: sum(file.bytes for file in files if file.path.startswith(f"{name}/")) for name in ["rows", *self.lenses]
            },
            "config": self.config.model_dump(mode="json"),
        }

    def close(self) -> None:
        """Let go of the files; changes that were not committed are forgotten."""
        self.rollback()
        if self._snapshot is not None:
            self._snapshot.close()
            self._snapshot = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if kind is None:
                self.commit()
        finally:
            self.close()

    def _writing(self, report: DocumentsDone) -> Writer:
        if self._writer is None:
            self._writer = Writer(self.path, self._lenses)
        self._writer.report = report
        return self._writer


def _foreign(root: Path) -> Iterable[Path]:
    """What is in a folder besides the remains of a creation that was interrupted."""
    ours = (FOLDER, f"{FILE_NAME}.new", f"{FILE_NAME}.new-wal", f"{FILE_NAME}.new-shm")
    return (path for path in root.iterdir() if path.name not in ours)


def _require_id(doc_id: str) -> str:
    if not isinstance(doc_id, str):
        raise BadInput(f"doc_id is {doc_id!r}; expected a string")
    require_utf8("doc_id", doc_id)
    return doc_id


def _require_document(document: Document) -> Document:
    if not isinstance(document, Document):
        raise BadInput(f"got {type(document).__name__}; expected a trilens.Document")
    return document
