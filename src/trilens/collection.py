"""`Collection`: the object that users hold; it joins the store, the lenses and the search."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from trilens.encode.encoder import Encoded
from trilens.encode.model import HeadsEncoder, ModelEncoder
from trilens.errors import BadInput, CollectionError, CollectionMissing
from trilens.explain.disentangle import disentangle
from trilens.explain.explain import explain
from trilens.explain.explanation import Explanation
from trilens.explain.word import Word
from trilens.search.candidates import Candidates
from trilens.search.fusion import Fusion
from trilens.search.fusion_presets import parse_fusion
from trilens.search.hits import Hit
from trilens.search.options import SearchOptions, fused_name, read_options
from trilens.search.search import Search
from trilens.store.adding import add_documents, encode_documents
from trilens.store.backup.contents import Backup
from trilens.store.backup.opening import open_existing, open_place
from trilens.store.backup.restore import list_backups, restore_backup
from trilens.store.backup.take import BackupReport, take_backup
from trilens.store.catalog import Catalog
from trilens.store.changes import Changes
from trilens.store.check import BytesDone, CheckReport, check_collection, require_intact
from trilens.store.commit_record import CommitRecord
from trilens.store.config import CollectionConfig
from trilens.store.creation import create_collection
from trilens.store.failures import clear_errors
from trilens.store.info import collection_info
from trilens.store.lens_set import LensSet
from trilens.store.pace import CommitPace
from trilens.store.passages import PassageSplitter
from trilens.store.progress import DocumentsDone, no_report
from trilens.store.repair import RepairReport, repair_collection
from trilens.store.schema import FILE_NAME
from trilens.store.snapshot import Snapshot
from trilens.store.upgrade import UpgradeReport, upgrade_collection
from trilens.store.writer import Writer
from trilens.text.document import Document, require_utf8

DOCUMENTS_AT_ONCE = 256


class Collection:
    """A collection of documents on disk: add, replace and delete documents, search them and explain the scores.

    Searches see the last commit at the time of opening, of the last `refresh` or of the own last `commit`. Changes are
    invisible before `commit`. As a context manager it commits on exit, or rolls back after an error.
    """

    def __init__(self, path: Path, config: CollectionConfig, threads: int | None, encoder: HeadsEncoder | None = None) -> None:
        self.path = path
        self.config = config
        self._lenses = LensSet(config, threads, encoder)
        self._snapshot: Snapshot | None = None
        self._writer: Writer | None = None

    @staticmethod
    def create(
        path: str | Path, *, threads: int | None = None, encoder: HeadsEncoder | None = None, **options: Any
    ) -> "Collection":
        """Create an empty collection.

        `options` are the fields of `CollectionConfig`, such as lenses, model and passages, and the configurations of lenses
        by name. `encoder` is used instead of a model folder; the same encoder has to be given to `open`.
        """
        root = Path(path)
        config = CollectionConfig.of(**options).with_model(encoder)
        create_collection(root, CommitRecord.empty(config))
        return Collection(root, config, threads, encoder)

    @staticmethod
    def open(
        path: str | Path, *, threads: int | None = None, encoder: HeadsEncoder | None = None, verify: bool = False
    ) -> "Collection":
        """Open an existing collection. `threads` limits the encoder (None: all cores). `verify` checks everything first."""
        root = Path(path)
        with clear_errors(root):
            if not (root / FILE_NAME).exists():
                raise CollectionMissing(f"there is no collection at {root}; make one with `trilens index SOURCE --to {root}`")
        catalog = Catalog.open(root)
        try:
            config = catalog.config()
        finally:
            catalog.close()
        if verify:
            require_intact(root)
        return Collection(root, config, threads, encoder)

    @staticmethod
    def open_or_create(
        path: str | Path, *, threads: int | None = None, encoder: HeadsEncoder | None = None, **options: Any
    ) -> "Collection":
        """Open a collection, or create it with these options. One that exists must have been created with the same."""
        if not (Path(path) / FILE_NAME).exists():
            return Collection.create(path, threads=threads, encoder=encoder, **options)
        collection = Collection.open(path, threads=threads, encoder=encoder)
        try:
            collection.config.require_same(collection.path, options)
        except BadInput:
            collection.close()
            raise
        return collection

    @staticmethod
    def upgrade(
        path: str | Path,
        *,
        model: str | None = None,
        threads: int | None = None,
        encoder: HeadsEncoder | None = None,
        report: DocumentsDone = no_report,
    ) -> UpgradeReport:
        """Upgrade a collection of an older format version, in place and atomically; no document is lost.

        Only versions whose indexes cannot be taken over are encoded again, by `model` if theirs is not at hand.
        """

        def make_lenses(old: CollectionConfig) -> tuple[CollectionConfig, LensSet]:
            config = old.model_copy(update={"model": model or old.model, "model_fingerprint": ""})
            config = config.with_model(encoder)
            return config, LensSet(config, threads, encoder)

        return upgrade_collection(Path(path), make_lenses, report)

    @staticmethod
    def repair(
        path: str | Path,
        *,
        threads: int | None = None,
        encoder: HeadsEncoder | None = None,
        report: DocumentsDone = no_report,
    ) -> RepairReport:
        """Repair a damaged collection: keep what is whole, encode documents with damaged indexes again, list what is gone."""
        return repair_collection(Path(path), lambda config: LensSet(config, threads, encoder), report)

    @property
    def lenses(self) -> list[str]:
        """Names of the lenses."""
        return self._lenses.names

    @property
    def lens_set(self) -> LensSet:
        """The lenses themselves."""
        return self._lenses

    @property
    def model(self) -> ModelEncoder:
        """The collection's model, loaded on first use."""
        return self._lenses.model

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

    def documents(self) -> Iterator[Document]:
        """All documents of the commit that searches see, in the order in which they were added; memory stays constant."""
        snapshot, last_key = self.snapshot, 0
        while page := snapshot.page(last_key, DOCUMENTS_AT_ONCE):
            yield from (document for _, document in page)
            last_key = page[-1][0]

    def search(
        self, queries: Sequence[str], k: int | None = None, *, options: SearchOptions | None = None, **settings: Any
    ) -> list[list[Hit]]:
        """The best k documents of each query, through all lenses unless some are named.

        `settings` are fields of `SearchOptions`, such as lenses, filter, fusion and rerank; they override those of
        `options`. One lens ranks by its own score. Several are fused, and each hit says how each lens scored and ranked it.
        """
        return Search(self.snapshot, self._lenses, queries, read_options(options, k, settings)).hits()

    def explain(self, query: str, doc_id: str, *, options: SearchOptions | None = None, **settings: Any) -> Explanation:
        """Why a search with these options gives a document its score.

        The parts of an explanation add up to the score; see `Explanation`. `settings` are fields of `SearchOptions`. Scores
        of most fusions depend on the other candidates, so pass the options of the search to be explained.
        """
        return explain(self.snapshot, self._lenses, query, _require_id(doc_id), read_options(options, None, settings))

    def candidates(
        self, queries: Sequence[str], lenses: Sequence[str], depth: int = 100
    ) -> list[tuple[Candidates, dict[int, str]]]:
        """The candidates of each query with the scores of every lens, ready to be fused in any way, and doc_ids by key."""
        options = SearchOptions(k=depth, lenses=lenses, fusion=Fusion("weighted", depth=depth, damp=True))
        by_query = Search(self.snapshot, self._lenses, queries, options).candidates()
        documents = [self.snapshot.documents(candidates.keys.tolist()) for candidates in by_query]
        doc_ids = [{key: document.doc_id for key, document in by_key.items()} for by_key in documents]
        return list(zip(by_query, doc_ids, strict=True))

    def save_tuned(self, lenses: Sequence[str], record: Mapping[str, Any] | None) -> None:
        """Use `record["fusion"]` for searches through these lenses; None removes it. Commits, with all changes so far."""
        if record is not None:
            parse_fusion(record["fusion"]).require_lenses(lenses)
        self._writing(no_report).set_tuned(fused_name(lenses), record)
        self.commit()

    def disentangle(self, text: str, *, passage: bool = False, top: int | None = None) -> list[Word]:
        """The vocabulary terms that a text activates, heaviest first; the model needs a sparse head."""
        if not self.config.heads:
            raise BadInput(f"{self.path} has no model: its lenses are {', '.join(self.lenses)}; expected a sparse head")
        return disentangle(self.model.encoder, text, "doc" if passage else "query", top)

    def encode(self, documents: Sequence[Document]) -> dict[str, Encoded]:
        """The passages of documents as each lens indexes them: what `add` takes as `encoded`, for instance elsewhere."""
        split = PassageSplitter(self.config.passages, self._lenses.model)
        return encode_documents([_require_document(document) for document in documents], self._lenses, split)

    def add(
        self,
        documents: Iterable[Document],
        report: DocumentsDone = no_report,
        *,
        encoded: Mapping[str, Encoded] | None = None,
        keys: Iterable[int] | None = None,
    ) -> None:
        """Add documents; an existing id is an error. After an error none of them is added.

        `encoded` is what `encode` has returned for them; they become a segment of their own. `keys` are ascending numbers above
        those of all earlier documents, which decide the order of equal scores: parts of one collection share one sequence.
        """
        writer = self._writing(report)
        with writer.atomic():
            add_documents(writer, map(_require_document, documents), keys, encoded)

    def upsert(self, documents: Iterable[Document], report: DocumentsDone = no_report) -> None:
        """Add documents and replace those with existing ids; unchanged documents are not encoded again.

        After an error none of them is added or replaced.
        """
        writer = self._writing(report)
        with writer.atomic():
            for document in documents:
                writer.upsert(_require_document(document))

    def ingest(
        self, documents: Iterable[Document], report: DocumentsDone = no_report, *, full_batches: bool = False
    ) -> Changes:
        """Upsert a long stream of documents, with a commit every few seconds.

        After an interruption committed documents stay, and the same call over the same stream continues where it stopped.
        `full_batches` commits more rarely, so that the segments do not depend on the speed of the machine.
        """
        total, pace = self.commit(), CommitPace(full_batches, bool(self._lenses.sharing))
        for document in documents:
            self.upsert([document], report)
            buffered = self._writing(report).buffered_passages
            if pace.is_due(buffered):
                total += self.commit()
                pace.committed(buffered)
        return total + self.commit()

    def delete(self, doc_ids: Iterable[str]) -> list[str]:
        """Delete documents; returns the ids that do not exist."""
        if isinstance(doc_ids, str):
            raise BadInput("doc_ids is one string; expected a list of them: put it into a list")
        checked = [_require_id(doc_id) for doc_id in doc_ids]
        writer = self._writing(no_report)
        with writer.atomic():
            return [doc_id for doc_id in checked if not writer.delete(doc_id)]

    def commit(self) -> Changes:
        """Make all changes since the last commit durable and visible."""
        if self._writer is None:
            return Changes()
        writer, self._writer = self._writer, None
        changes = writer.commit()
        self._move_on()
        return changes

    def rollback(self) -> None:
        """Discard all changes since the last commit."""
        if self._writer is not None:
            writer, self._writer = self._writer, None
            writer.rollback()

    def optimize(self, retrain: bool = False, report: DocumentsDone = no_report, *, segments: int = 1) -> Changes:
        """Commit, and merge all segments into one, or several of equal size, without the rows of deleted documents.

        `retrain` encodes all documents again and trains shared parts, such as the codebook of multi, on all of them instead of
        the first batches. Ids and metadata do not change.
        """
        writer = self._writing(report)
        self._writer = None
        changes = writer.optimize(retrain, segments)
        self._move_on()
        return changes

    def refresh(self) -> bool:
        """Move to the last commit, also of other processes; False if there is no newer one."""
        old = self._snapshot
        if old is None:
            return True
        self._snapshot = Snapshot(self.path, self._lenses, previous=old)
        return self._snapshot.commit != old.commit

    def _move_on(self) -> None:
        """Move to the commit that was made. If it cannot be opened, which does not undo it, the next search says why."""
        try:
            self.refresh()
        except CollectionError:
            self._snapshot = None

    def check(self, report: BytesDone = lambda count: None) -> CheckReport:
        """Verify every file and every document on disk."""
        return check_collection(self.path, report)

    def backup(
        self,
        target: str | Path,
        *,
        keep: int | None = None,
        verify: bool = False,
        report: BytesDone = lambda count: None,
    ) -> BackupReport:
        """Add the last commit to the backups in a folder, at an address of fsspec such as s3://bucket/name, or in a new .tar.

        Others may read and write meanwhile. Only segments that the target does not have are copied. `keep` removes all but
        the last backups; `verify` reads everything that the target holds.
        """
        with open_place(target) as place:
            return take_backup(self.path, place, keep=keep, verify=verify, report=report)

    @staticmethod
    def restore(
        source: str | Path, path: str | Path, *, commit: int | None = None, report: BytesDone = lambda count: None
    ) -> Backup:
        """Make a collection of a backup, by default the last one, at a path that is new or empty; then open it there."""
        with open_existing(source) as place:
            return restore_backup(place, Path(path), commit=commit, report=report)

    @staticmethod
    def backups(source: str | Path) -> list[Backup]:
        """The backups in a place, oldest first."""
        with open_existing(source) as place:
            return list_backups(place)

    def info(self) -> dict[str, Any]:
        """Size, configuration and statistics."""
        return collection_info(self.path, self.snapshot, self._lenses, self.config)

    def close(self) -> None:
        """Close all files; uncommitted changes are discarded."""
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
        self._writer.progress.report = report
        return self._writer


def _require_id(doc_id: str) -> str:
    if not isinstance(doc_id, str):
        raise BadInput(f"doc_id is {doc_id!r}; expected a string")
    require_utf8("doc_id", doc_id)
    return doc_id


def _require_document(document: Document) -> Document:
    if not isinstance(document, Document):
        raise BadInput(f"got {type(document).__name__}; expected a trilens.Document")
    return document
