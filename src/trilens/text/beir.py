"""The BEIR layout as a value: a corpus, its queries, and for each split the judgements."""

from dataclasses import dataclass
from pathlib import Path

from trilens.errors import BadInput
from trilens.text.dataset import Split, judged_split
from trilens.text.files import layout_file, shown
from trilens.text.qrels import Qrels, read_qrels
from trilens.text.queries import Queries, read_queries


@dataclass(frozen=True, slots=True)
class Beir:
    """A folder with corpus.jsonl, queries.jsonl and qrels/<split>.tsv; files are read when asked for."""

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
        """The file of documents."""
        return layout_file(self.folder, "corpus.jsonl") or self.folder / "corpus.jsonl"

    @property
    def sources(self) -> list[Path]:
        """The file of documents, as datasets of any layout name theirs."""
        return [self.corpus_path]

    def splits(self) -> list[str]:
        """The names of the judgement files, sorted."""
        return sorted(path.stem for path in (self.folder / "qrels").glob("*.tsv") if path.is_file())

    def split(self, name: str) -> Split:
        """The judged queries of a split; what other splits judge is not unjudged."""
        qrels = self.qrels(name)
        others = {query_id for other in self.splits() if other != name for query_id in self.qrels(other)}
        elsewhere = others - qrels.keys()
        queries = {query_id: query for query_id, query in self._queries().items() if query_id not in elsewhere}
        return judged_split(name, queries, qrels, shown(self._qrels_path(name)))

    def qrels(self, split: str) -> Qrels:
        """The judgements of a split, in file order."""
        return read_qrels(self._qrels_path(split))

    def queries(self, split: str) -> dict[str, str]:
        """The texts of the queries that have judgements in this split, in the order of queries.jsonl."""
        judged = judged_split(split, self._queries(), self.qrels(split), shown(self._qrels_path(split)))
        return judged.texts()

    def _qrels_path(self, split: str) -> Path:
        splits = self.splits()
        if split not in splits:
            known = ", ".join(map(repr, splits)) or "none: there is no qrels/<split>.tsv"
            raise BadInput(f"{shown(self.folder)} has no split {split!r}; choose one of those it has: {known}")
        return self.folder / "qrels" / f"{split}.tsv"

    def all_queries(self) -> dict[str, str]:
        """The texts of all queries, judged or not."""
        return {query_id: query.text for query_id, query in self._queries().items()}

    def _queries(self) -> Queries:
        path = layout_file(self.folder, "queries.jsonl")
        if path is None:
            raise BadInput(f"{shown(self.folder)} has no queries.jsonl; expected a folder in the BEIR layout")
        return read_queries(path)
