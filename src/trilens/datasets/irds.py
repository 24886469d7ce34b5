"""Judged collections of the ir_datasets catalog, which downloads them itself. The extra `trilens[irds]` installs it."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from trilens.datasets.dataset import Split, judged_split
from trilens.datasets.qrels import Qrels
from trilens.datasets.queries import Queries, Query
from trilens.errors import BadInput, ServiceFailed
from trilens.extras import needs_extra
from trilens.text.files import shown

PREFIX = "irds/"
SPLIT = "test"
NEEDED = ("docs", "queries", "qrels")


@dataclass(frozen=True, slots=True)
class Irds:
    """A dataset by its id in ir_datasets, such as beir/scifact/test. The id names the queries, so there is one split.

    The documents are written to `corpus` once; datasets with the same documents share the file.
    """

    dataset_id: str
    corpus: Path

    @property
    def name(self) -> str:
        """The id, as a file name."""
        return self.dataset_id.replace("/", "-")

    @property
    def sources(self) -> list[Path]:
        """The corpus file."""
        return [self.corpus]

    def splits(self) -> list[str]:
        """The only split."""
        return [SPLIT]

    def split(self, name: str) -> Split:
        """The queries with judgements."""
        if name != SPLIT:
            raise BadInput(
                f"{PREFIX}{self.dataset_id} has no split {name!r}; expected {SPLIT!r}: choose other queries by their dataset id"
            )
        dataset = _load(self.dataset_id)
        try:
            queries, qrels = self._queries(dataset), self._qrels(dataset)
        except (OSError, RuntimeError) as error:
            raise _failed(self.dataset_id, error) from error
        return judged_split(name, queries, qrels, f"{PREFIX}{self.dataset_id}")

    def _queries(self, dataset: Any) -> Queries:
        language = dataset.queries_lang() or ""
        return {str(query.query_id): Query(query.default_text(), language) for query in dataset.queries_iter()}

    def _qrels(self, dataset: Any) -> Qrels:
        qrels: Qrels = {}
        for judged in dataset.qrels_iter():
            grades = qrels.setdefault(str(judged.query_id), {})
            if grades.setdefault(str(judged.doc_id), judged.relevance) != judged.relevance:
                raise BadInput(
                    f"{PREFIX}{self.dataset_id} judges {judged.query_id!r} and {judged.doc_id!r} several times; expected one "
                    "judgement: give a file of judgements with --qrels"
                )
        return qrels


def open_irds(dataset_id: str, cache: Path) -> Irds:
    """A dataset by its id; its documents are written to a file in the cache unless they are there."""
    dataset = _load(dataset_id)
    if missing := [kind for kind in NEEDED if not dataset.has(kind)]:
        raise BadInput(f"{PREFIX}{dataset_id} has no {missing[0]}; expected documents, queries and judgements: name a subset")
    import ir_datasets

    folder = cache / ir_datasets.docs_parent_id(dataset_id)
    corpus = folder / "corpus.jsonl"
    if not corpus.is_file():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with FileLock(folder / "corpus.lock"):
                if not corpus.is_file():
                    _write(dataset, corpus)
        except (OSError, RuntimeError) as error:
            raise _failed(dataset_id, error) from error
    return Irds(dataset_id, corpus)


def _write(dataset: Any, corpus: Path) -> None:
    """Write the corpus; the file appears once it is complete."""
    unfinished = corpus.with_name(f"{corpus.name}.unfinished")
    with unfinished.open("w", encoding="utf-8") as file:
        for record in _records(dataset):
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(corpus)


def _records(dataset: Any) -> Iterator[dict[str, str]]:
    """The documents with the text that the dataset defines as its default; a title at its start is kept apart."""
    for document in dataset.docs_iter():
        title, text = getattr(document, "title", None), document.default_text()
        if not isinstance(title, str) or not text.startswith(f"{title} "):
            title = ""
        yield {"_id": str(document.doc_id), "title": title, "text": text[len(title) + 1 :] if title else text}


def _load(dataset_id: str) -> Any:
    with needs_extra("irds"):
        import ir_datasets
    try:
        return ir_datasets.load(dataset_id)
    except KeyError as error:
        raise BadInput(f"ir_datasets has no dataset {dataset_id!r}; expected an id that `ir_datasets list` shows") from error


def _failed(dataset_id: str, error: Exception) -> ServiceFailed:
    # Of a failed download, ir_datasets has said each attempt; its error lists them all again.
    told = error.args[0] if isinstance(error, RuntimeError) and error.args else error
    reason = " ".join(str(told).split()) or type(error).__name__
    return ServiceFailed(f"{PREFIX}{shown(Path(dataset_id))} cannot be obtained ({reason}); repair the cause and try again")
