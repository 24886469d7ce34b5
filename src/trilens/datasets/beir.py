"""Datasets in the BEIR layout: a corpus, its queries, and the judgements of each split."""

from dataclasses import dataclass
from pathlib import Path

from trilens.datasets.dataset import Split, judged_split
from trilens.datasets.qrels import Qrels, read_qrels
from trilens.datasets.queries import Queries, read_queries
from trilens.errors import BadInput
from trilens.text.files import layout_file, shown


@dataclass(frozen=True, slots=True)
class Beir:
    """A folder with corpus.jsonl, queries.jsonl and qrels/<split>.tsv; each call reads its files."""

    folder: Path

    def __post_init__(self) -> None:
        if layout_file(self.folder, "corpus.jsonl") is None:
            raise BadInput(f"{shown(self.folder)} has no corpus.jsonl; expected a folder in the BEIR layout")

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.resolve().name

    @property
    def corpus_path(self) -> Path:
        """The corpus file."""
        return layout_file(self.folder, "corpus.jsonl") or self.folder / "corpus.jsonl"

    @property
    def sources(self) -> list[Path]:
        """The corpus file, as `Dataset` names it."""
        return [self.corpus_path]

    def splits(self) -> list[str]:
        """The names of the judgement files, sorted."""
        return sorted(path.stem for path in (self.folder / "qrels").glob("*.tsv") if path.is_file())

    def split(self, name: str) -> Split:
        """The judged queries of a split. Queries that only other splits judge do not count as unjudged."""
        qrels = self.qrels(name)
        judged_elsewhere = {query_id for other in self.splits() if other != name for query_id in self.qrels(other)}
        excluded = judged_elsewhere - qrels.keys()
        queries = {query_id: query for query_id, query in self._queries().items() if query_id not in excluded}
        return judged_split(name, queries, qrels, shown(self._qrels_path(name)))

    def qrels(self, split: str) -> Qrels:
        """The judgements of a split, in file order."""
        return read_qrels(self._qrels_path(split))

    def queries(self, split: str) -> dict[str, str]:
        """The texts of the queries with judgements in this split, in the order of queries.jsonl."""
        return judged_split(split, self._queries(), self.qrels(split), shown(self._qrels_path(split))).texts()

    def _qrels_path(self, split: str) -> Path:
        splits = self.splits()
        if split not in splits:
            known = f"one of {', '.join(map(repr, splits))}" if splits else "a file qrels/<split>.tsv"
            raise BadInput(f"{shown(self.folder)} has no split {split!r}; expected {known}")
        return self.folder / "qrels" / f"{split}.tsv"

    def _queries(self) -> Queries:
        path = layout_file(self.folder, "queries.jsonl")
        if path is None:
            raise BadInput(f"{shown(self.folder)} has no queries.jsonl; expected a folder in the BEIR layout")
        return read_queries(path)
