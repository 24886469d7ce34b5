"""Datasets assembled from separate files: a corpus, and queries with judgements or answers per split (DPR, TREC, MIRACL)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trilens.datasets.dataset import Split, answered_split, judged_split, with_language
from trilens.datasets.qrels import read_qrels
from trilens.datasets.queries import read_queries
from trilens.errors import BadInput
from trilens.read.reader_table import CSV, JSON, JSONL, TEXT, TSV
from trilens.text.files import layout_file, shown, without_compression

CORPUS_FILES = ("corpus.jsonl", "corpus.tsv", "psgs_w100.tsv")
CORPUS_FOLDERS = ("corpus", "docs")
MIRACL = re.compile(r"(?P<set>.+)-(?P<language>[a-z]{2,3})-(?P<split>[A-Za-z-]+)")
MIRACL_CORPORA = ("*corpus*-{language}", ".")
QUESTION_SUFFIXES = (".qa.csv", *(suffix for reader in (CSV, TSV, JSONL, JSON) for suffix in reader.suffixes))
TREC_SUFFIXES = (".trec", ".topics", ".qrels", ".qrel", *TEXT.suffixes, *QUESTION_SUFFIXES)


@dataclass(frozen=True, slots=True)
class SplitFiles:
    """The file of queries of a split, and the file of judgements; None if the queries have answers instead."""

    queries: Path
    qrels: Path | None = None


@dataclass(frozen=True, slots=True)
class JudgedFiles:
    """A dataset of separate files. `language` is that of all queries, if the file names give it."""

    name: str
    sources: list[Path]
    files: Mapping[str, SplitFiles]
    language: str = ""

    def splits(self) -> list[str]:
        """The names of all splits, sorted."""
        return sorted(self.files)

    def split(self, name: str) -> Split:
        """Read a split from its files."""
        if name not in self.files:
            known = ", ".join(map(repr, self.splits()))
            raise BadInput(f"{self.name} has no split {name!r}; expected one of {known}")
        files = self.files[name]
        queries = read_queries(files.queries)
        if self.language:
            queries = with_language(queries, self.language)
        if files.qrels is None:
            return answered_split(name, queries, shown(files.queries))
        return judged_split(name, queries, read_qrels(files.qrels), shown(files.qrels))


def given_files(corpus: Path, queries: Path, qrels: Path | None) -> JudgedFiles:
    """A dataset of files that the user names; its only split is named after the file of queries."""
    for path in (corpus, queries, *([qrels] if qrels else [])):
        if not path.exists():
            raise BadInput(f"{shown(path)} does not exist; expected a file: check the path")
    return JudgedFiles(_stem(corpus), [corpus], {_stem(queries): SplitFiles(queries, qrels)})


def find_dpr(folder: Path) -> JudgedFiles | None:
    """A folder in DPR's layout: psgs_w100.tsv or another corpus, and files of questions with answers (nq-test.qa.csv)."""
    corpus = find_corpus(folder)
    paths = [path for path in sorted(folder.iterdir()) if path.is_file() and path not in corpus]
    files = {_stem(path): SplitFiles(path) for path in paths if without_compression(path.name).endswith(QUESTION_SUFFIXES)}
    return JudgedFiles(folder.resolve().name, corpus, files) if corpus and files else None


def find_trec(folder: Path, language: str | None) -> JudgedFiles | None:
    """A folder in the layout of TREC or MIRACL: pairs of files such as topics.NAME and qrels.NAME."""
    topics, qrels = _files_by_split(folder, "topics"), _files_by_split(folder, "qrels")
    pairs = {name: SplitFiles(path, qrels[name]) for name, path in topics.items() if name in qrels}
    if not pairs:
        return None
    miracl_names = {name: match for name in pairs if (match := MIRACL.fullmatch(name))}
    if len(miracl_names) < len(pairs):
        files = {name or "test": files for name, files in pairs.items()}
        return JudgedFiles(folder.resolve().name, _require_corpus(folder, find_corpus(folder)), files)
    language = choose_language(folder, sorted({match["language"] for match in miracl_names.values()}), language)
    files = {match["split"]: pairs[name] for name, match in miracl_names.items() if match["language"] == language}
    corpus = _require_corpus(folder, _miracl_corpus(folder, language))
    dataset_name = next(match["set"] for match in miracl_names.values())
    return JudgedFiles(f"{dataset_name}-{language}", corpus, files, language)


def find_corpus(folder: Path) -> list[Path]:
    """The corpus file or folder, if one has a usual name."""
    files = (layout_file(folder, name) for name in CORPUS_FILES)
    folders = (folder / name if (folder / name).is_dir() else None for name in CORPUS_FOLDERS)
    corpus = next((path for path in (*files, *folders) if path is not None), None)
    return [] if corpus is None else [corpus]


def choose_language(folder: Path, known: Sequence[str], language: str | None) -> str:
    """The language of the corpus to search: the requested one, or the only one."""
    if language in known:
        return str(language)
    if language is None and len(known) == 1:
        return known[0]
    problem = "has a corpus for each language" if language is None else f"has no corpus in {language!r}"
    raise BadInput(f"{shown(folder)} {problem}; choose one with --lang: {', '.join(known)}")


def _miracl_corpus(folder: Path, language: str) -> list[Path]:
    """The files docs-0.jsonl.gz, docs-1.jsonl.gz …, in a folder of the language below or beside this folder."""
    candidates = (candidate for root in (folder, folder.parent) for candidate in _corpus_folders(root, language))
    for candidate in candidates:
        files = sorted(path for path in candidate.glob("docs*.jsonl*") if path.is_file())
        if files:
            return files
    return find_corpus(folder)


def _corpus_folders(root: Path, language: str) -> Iterator[Path]:
    for pattern in MIRACL_CORPORA:
        yield from sorted(root.glob(pattern.format(language=language))) if pattern != "." else [root]


def _files_by_split(folder: Path, prefix: str) -> dict[str, Path]:
    """Files such as topics.miracl-v1.0-sw-dev.tsv or topics.txt, by the name between prefix and suffix."""
    files: dict[str, Path] = {}
    for pattern in (f"{prefix}*", f"{prefix}/{prefix}*", f"*/{prefix}*", f"*/{prefix}/{prefix}*"):
        for path in sorted(folder.glob(pattern)):
            if path.is_file():
                name = _without_suffix(without_compression(path.name), TREC_SUFFIXES)
                files.setdefault(name[len(prefix) :].strip(".-_"), path)
    return files


def _require_corpus(folder: Path, corpus: list[Path]) -> list[Path]:
    if not corpus:
        raise BadInput(
            f"{shown(folder)} has topics and judgements but no corpus; expected {', '.join(CORPUS_FILES)}, a folder "
            f"{' or '.join(CORPUS_FOLDERS)}, or docs*.jsonl.gz: give the corpus as FOLDER, with --queries and --qrels"
        )
    return corpus


def _stem(path: Path) -> str:
    """The file name without suffixes: nq-test for nq-test.qa.csv.gz."""
    name = without_compression(path.resolve().name)
    stem = _without_suffix(name, QUESTION_SUFFIXES)
    return stem if stem != name else Path(name).stem


def _without_suffix(name: str, suffixes: Sequence[str]) -> str:
    return next((name.removesuffix(suffix) for suffix in suffixes if name.endswith(suffix)), name)
