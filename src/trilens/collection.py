"""`Collection`: what users hold. It puts the store, the lenses and the search together."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, Self

from trilens.encode.folder import CONFIG_FILE, ModelFolder, Weighing
from trilens.encode.models import bundled_models, resolve_model
from trilens.errors import BadInput, CollectionExists, CollectionMissing
from trilens.explain.alignment import Alignment, align_document
from trilens.explain.disentangle import Word, disentangle
from trilens.explain.explain import explain
from trilens.explain.explanation import Explanation
from trilens.index.multi_params import MultiParams
from trilens.search.expansion import Feedback, parse_feedback
from trilens.search.fusion import Candidates, Fusion
from trilens.search.hits import Hit
from trilens.search.hyde import Hyde
from trilens.search.recipes import choose_lenses, fit_recipe, parse_fusion
from trilens.search.searcher import Plan, candidates, search
from trilens.store.catalog import Catalog
from trilens.store.check import BytesDone, Report, check_collection
from trilens.store.config import CollectionConfig
from trilens.store.failures import clear_errors
from trilens.store.folders import FOLDER
from trilens.store.lenses import Lenses, ModelEncoder
from trilens.store.schema import FILE_NAME, FolderRecord
from trilens.store.snapshot import Snapshot, tuned_name
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
        """Make an empty collection. `options` are the fields of `CollectionConfig`, such as lenses, model and passages."""
        root = Path(path)
        config = CollectionConfig.of(**options)
        if config.heads:
            config = _with_model(config)
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
    def model(self) -> ModelEncoder:
        """The model that makes the vectors; loaded when it is first used."""
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

    def search(
        self,
        queries: Sequence[str],
        k: int = 10,
        *,
        lenses: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        exact: bool = False,
        rerank: str | None = None,
        params: Mapping[str, Any] | None = None,
        fusion: Fusion | str | Mapping[str, Any] | None = None,
        expand: Feedback | str | None = None,
        hyde: Hyde | None = None,
    ) -> list[list[Hit]]:
        """The best k documents of each query, through all lenses unless some are named.

        One lens ranks by its own score; several are fused: by `fusion`, such as "zscore:bm25=1,dense=2" or "all", else as was
        tuned for these lenses, else by reciprocal rank. `where` is a metadata filter. `exact` leaves
        out every approximation that a lens makes to be fast. `rerank` names a lens that orders what the others found; one
        that the collection does not hold is made for the candidates alone, if its model was chosen with that head.
        `params` are settings of this one search by lens, such as {"multi": MultiParams(probes=64)}. `expand` adds terms of the
        best passages to the query, "on" or such as "docs=10,terms=20"; `hyde` a passage that a language model writes.
        """
        names, chosen = self._fusion(lenses, fusion)
        more = (where, exact, rerank, params, chosen, _feedback(expand), hyde)
        return search(self.snapshot, self._lenses, queries, k, names, *more)

    def candidates(
        self, queries: Sequence[str], lenses: Sequence[str], depth: int = 100
    ) -> list[tuple[dict[str, Candidates], dict[int, str]]]:
        """What lenses say of the union of what each returns for a query, ready to be fused in any way, and doc_ids by key."""
        plan = Plan(lenses, depth, fusion=Fusion("weighted", depth=depth))
        return candidates(self.snapshot, self._lenses, queries, plan)

    def save_tuned(self, lenses: Sequence[str], record: Mapping[str, Any] | None) -> None:
        """Let searches through these lenses use `record["fusion"]`; None forgets it. Commits, with all changes so far."""
        if record is not None:
            parse_fusion(record["fusion"]).require_lenses(lenses)
        self._writing(no_report).set_tuned(tuned_name(lenses), record)
        self.commit()

    def align(self, query: str, doc_id: str, params: MultiParams | None = None) -> Alignment | None:
        """Why the multi lens gives a document its score: the alignment of its best passage; None if it has no tokens.

        `params` are those of the search to be explained: with method "xtr" parts may be imputed.
        """
        return align_document(self.snapshot, self._lenses, query, _require_id(doc_id), params)

    def explain(
        self,
        query: str,
        doc_id: str,
        lens: str | Sequence[str] | None = None,
        *,
        k: int = 10,
        where: Mapping[str, Any] | None = None,
        rerank: str | None = None,
        params: Mapping[str, Any] | None = None,
        fusion: Fusion | str | Mapping[str, Any] | None = None,
        expand: Feedback | str | None = None,
        hyde: Hyde | None = None,
    ) -> Explanation:
        """Why a document gets its score through a lens, or the fusion of several (None: as `search` would choose).

        The parts of an explanation add up to the score; see `Explanation`. The other arguments are those
        of the search to be explained; `k` counts only where it is more than the depth of the fusion.
        """
        names, chosen = self._fusion([lens] if isinstance(lens, str) else lens, fusion)
        deciding = rerank or chosen.rerank
        plan = Plan(names, k, where, False, deciding, params, chosen, _feedback(expand), hyde)
        return explain(self.snapshot, self._lenses, query, _require_id(doc_id), plan)

    def disentangle(self, text: str, *, passage: bool = False, top: int | None = None) -> list[Word]:
        """The words that a text activates in the model, heaviest first; needs the sparse or the tokens lens."""
        return disentangle(self.model.encoder, text, "doc" if passage else "query", top)

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

    def optimize(self, retrain: bool = False, report: DocumentsDone = no_report) -> Changes:
        """Commit, and merge everything into one segment without the remains of deleted documents.

        `retrain` encodes all documents again, so that what a lens keeps for all segments together (the codebook of multi)
        fits the documents of today and not the first ones. Ids and metadata stay as they are.
        """
        writer = self._writing(report)
        self._writer = None
        changes = writer.optimize(retrain)
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
        snapshot = self.snapshot
        segments: list[FolderRecord] = [segment.record for segment in snapshot.segments]
        shared: list[FolderRecord] = [part.record for part in snapshot.shared.every]
        files = [file for record in segments + shared for file in record.files]
        live = snapshot.live_rows
        figures = {name: snapshot.figures(name) for name in self.lenses}
        return {
            "path": str(self.path),
            "documents": len(self),
            "passages": live,
            "lenses": self.lenses,
            "model": self.config.model if self.config.heads else None,
            "commit": snapshot.commit,
            "segments": len(segments),
            "deleted_passages": snapshot.rows - live,
            "catalog_bytes": (self.path / FILE_NAME).stat().st_size,
            "segment_bytes": {
                name: sum(file.bytes for file in files if file.path.startswith(f"{name}/")) for name in ["rows", *self.lenses]
            },
            "tuned": snapshot.tuned,
            "figures": {name: found for name, found in figures.items() if found},
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

    def _fusion(
        self, lenses: Sequence[str] | None, fusion: Fusion | str | Mapping[str, Any] | None
    ) -> tuple[Sequence[str], Fusion]:
        """The lenses of a search and how they are fused."""
        said = fusion if fusion is None or isinstance(fusion, Fusion) else parse_fusion(fusion)
        if said:
            said = fit_recipe(said, self.lenses)
        names = choose_lenses(said, lenses, self.lenses)
        if said is None and not isinstance(names, str) and len(names) > 1:
            record = self.snapshot.tuned.get(tuned_name(map(str, names)))
            said = parse_fusion(record["fusion"]) if record else None
        return names, said or Fusion()

    def _writing(self, report: DocumentsDone) -> Writer:
        if self._writer is None:
            self._writer = Writer(self.path, self._lenses)
        self._writer.report = report
        return self._writer


def _with_model(config: CollectionConfig) -> CollectionConfig:
    """The config tied to the model that it names, which must be able to do what the lenses need."""
    model = ModelFolder.open(resolve_model(config.model))
    heads: list[str] = list(model.config.heads)
    if missing := [head for head in config.heads if head not in heads]:
        raise BadInput(
            f"model {config.model} has the heads {', '.join(heads)}; the lenses {', '.join(config.lenses)} need "
            f"{', '.join(missing)} as well: choose another model, or leave a lens out"
        )
    if config.weighing not in (Weighing(), model.config.weighing):
        raise BadInput(
            f"weighing is {config.weighing.model_dump(exclude_defaults=True)}; expected none: a collection weighs terms as its "
            f"model is meant to ({CONFIG_FILE} of {config.model})"
        )
    name = config.model if config.model in bundled_models() else str(model.path.resolve())
    return config.model_copy(update={"model": name, "model_fingerprint": model.fingerprint, "weighing": model.config.weighing})


def _foreign(root: Path) -> Iterable[Path]:
    """What is in a folder besides the remains of a creation that was interrupted."""
    ours = (FOLDER, f"{FILE_NAME}.new", f"{FILE_NAME}.new-wal", f"{FILE_NAME}.new-shm")
    return (path for path in root.iterdir() if path.name not in ours)


def _feedback(expand: Feedback | str | None) -> Feedback | None:
    return parse_feedback(expand) if isinstance(expand, str) else expand


def _require_id(doc_id: str) -> str:
    if not isinstance(doc_id, str):
        raise BadInput(f"doc_id is {doc_id!r}; expected a string")
    require_utf8("doc_id", doc_id)
    return doc_id


def _require_document(document: Document) -> Document:
    if not isinstance(document, Document):
        raise BadInput(f"got {type(document).__name__}; expected a trilens.Document")
    return document
