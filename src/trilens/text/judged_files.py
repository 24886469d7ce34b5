"""A dataset put together from files: a corpus, and for each split queries with judgements or answers (DPR, TREC, MIRACL)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trilens.errors import BadInput
from trilens.text.dataset import Split, answered_split, judged_split, with_language
from trilens.text.files import COMPRESSIONS, layout_file, shown
from trilens.text.qrels import read_qrels
from trilens.text.queries import read_queries

CORPUS_FILES = ("corpus.jsonl", "corpus.tsv", "psgs_w100.tsv")
CORPUS_FOLDERS = ("corpus", "docs")
MIRACL = re.compile(r"(?P<set>.+)-(?P<language>[a-z]{2,3})-(?P<split>[A-Za-z-]+)")
MIRACL_CORPORA = ("*corpus*-{language}", ".")
QUESTION_SUFFIXES = (".qa.csv", ".csv", ".tsv", ".jsonl", ".json")


@dataclass(frozen=True, slots=True)
class SplitFiles:
    """The queries of a split, and the judgements unless the queries bring their answers."""

    queries: Path
    qrels: Path | None = None


@dataclass(frozen=True, slots=True)
class JudgedFiles:
    """`language` is that of all queries, if the names of the files tell it."""

    name: str
    sources: list[Path]
    files: Mapping[str, SplitFiles]
    language: str = ""

    def splits(self) -> list[str]:
        """The names of all splits, sorted."""
        return sorted(self.files)

    def split(self, name: str) -> Split:
        """A split, read from its files."""
        if name not in self.files:
            known = ", ".join(map(repr, self.splits()))
            raise BadInput(f"{self.name} has no split {name!r}; choose one of those it has: {known}")
        files = self.files[name]
        queries = read_queries(files.queries)
        if self.language:
            queries = with_language(queries, self.language)
        if files.qrels is None:
            return answered_split(name, queries, shown(files.queries))
        return judged_split(name, queries, read_qrels(files.qrels), shown(files.qrels))


def given_files(corpus: Path, queries: Path, qrels: Path | None) -> JudgedFiles:
    """Files that the user names; the one split has the name of the file of queries."""
    for path in (corpus, queries, *([qrels] if qrels else [])):
        if not path.exists():
            raise BadInput(f"{shown(path)} does not exist; expected a file: check the path")
    return JudgedFiles(_stem(corpus), [corpus], {_stem(queries): SplitFiles(queries, qrels)})


def find_dpr(folder: Path) -> JudgedFiles | None:
    """DPR's layout: psgs_w100.tsv, or another corpus, and files of questions with their answers such as nq-test.qa.csv."""
    corpus = find_corpus(folder)
    names = [path for path in sorted(folder.iterdir()) if path.is_file() and path not in corpus]
    files = {_stem(path): SplitFiles(path) for path in names if _plain(path.name).endswith(QUESTION_SUFFIXES)}
    return JudgedFiles(folder.resolve().name, corpus, files) if corpus and files else None


def find_trec(folder: Path, language: str | None) -> JudgedFiles | None:
    """Topics and judgements whose names differ in their first word alone, as TREC and MIRACL have them."""
    topics, qrels = _named(folder, "topics"), _named(folder, "qrels")
    pairs = {name: SplitFiles(path, qrels[name]) for name, path in topics.items() if name in qrels}
    if not pairs:
        return None
    told = {name: match for name in pairs if (match := MIRACL.fullmatch(name))}
    if len(told) < len(pairs):
        files = {name or "test": files for name, files in pairs.items()}
        return JudgedFiles(folder.resolve().name, _require_corpus(folder, find_corpus(folder)), files)
    chosen = choose_language(folder, sorted({match["language"] for match in told.values()}), language)
    of_language = {match["split"]: pairs[name] for name, match in told.items() if match["language"] == chosen}
    corpus = _require_corpus(folder, _miracl_corpus(folder, chosen))
    return JudgedFiles(next(match["set"] for match in told.values()) + f"-{chosen}", corpus, of_language, chosen)


def find_corpus(folder: Path) -> list[Path]:
    """The file or folder of documents, if there is one of the usual names."""
    files = (layout_file(folder, name) for name in CORPUS_FILES)
    folders = (folder / name if (folder / name).is_dir() else None for name in CORPUS_FOLDERS)
    found = next((path for path in (*files, *folders) if path is not None), None)
    return [] if found is None else [found]


def choose_language(folder: Path, known: Sequence[str], said: str | None) -> str:
    """The one language whose corpus is searched: what was said, or the only one there is."""
    if said in known:
        return str(said)
    if said is None and len(known) == 1:
        return known[0]
    given = "has a corpus for each language" if said is None else f"has no corpus in {said!r}"
    raise BadInput(f"{shown(folder)} {given}; choose one with --lang: {', '.join(known)}")


def _miracl_corpus(folder: Path, language: str) -> list[Path]:
    """The files docs-0.jsonl.gz, docs-1.jsonl.gz …, below the folder or beside it, in a folder named after the language."""
    places = (place for root in (folder, folder.parent) for place in _folders(root, language))
    for place in places:
        found = sorted(path for path in place.glob("docs*.jsonl*") if path.is_file())
        if found:
            return found
    return find_corpus(folder)


def _folders(root: Path, language: str) -> Iterator[Path]:
    for pattern in MIRACL_CORPORA:
        yield from sorted(root.glob(pattern.format(language=language))) if pattern != "." else [root]


def _named(folder: Path, word: str) -> dict[str, Path]:
    """Files such as topics.miracl-v1.0-sw-dev.tsv or topics.txt, by what is left of the name."""
    found: dict[str, Path] = {}
    for pattern in (f"{word}*", f"{word}/{word}*", f"*/{word}*", f"*/{word}/{word}*"):
        for path in sorted(folder.glob(pattern)):
            if path.is_file():
                name = re.sub(r"\.(tsv|txt|trec|topics|qrels?|csv|jsonl|json)$", "", _plain(path.name))
                found.setdefault(name[len(word) :].strip(".-_"), path)
    return found


def _require_corpus(folder: Path, found: list[Path]) -> list[Path]:
    if not found:
        raise BadInput(
            f"{shown(folder)} has topics and judgements but no corpus; expected {', '.join(CORPUS_FILES)}, a folder "
            f"{' or '.join(CORPUS_FOLDERS)}, or docs*.jsonl.gz: give it as FOLDER, with --queries and --qrels"
        )
    return found


def _plain(name: str) -> str:
    """Without the suffix of a compression."""
    return next((name.removesuffix(suffix) for suffix in COMPRESSIONS if name.endswith(suffix)), name)


def _stem(path: Path) -> str:
    """nq-test of nq-test.qa.csv.gz."""
    name = _plain(path.resolve().name)
    return next((name.removesuffix(suffix) for suffix in QUESTION_SUFFIXES if name.endswith(suffix)), Path(name).stem)
