"""From what a user names to a dataset: a folder of any known layout, files, or the name of a BEIR dataset."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from trilens.errors import BadInput
from trilens.evaluate.beir_archives import Archive, BytesDone, beir_folder, require_known
from trilens.text.beir import Beir
from trilens.text.dataset import Dataset
from trilens.text.files import layout_file, shown, user_cache
from trilens.text.judged_files import find_dpr, find_trec, given_files
from trilens.text.mkqa import FILE, Mkqa
from trilens.text.mldr import find_mldr

BEIR_PREFIX = "beir/"
DEFAULT_SPLIT = "test"
LAYOUTS = (
    "BEIR (corpus.jsonl, queries.jsonl, qrels/), DPR (psgs_w100.tsv or corpus.jsonl, and questions with answers such as "
    "nq-test.qa.csv), TREC or MIRACL (a corpus, topics.NAME, qrels.NAME), MKQA (corpus.jsonl, mkqa.jsonl) or MLDR "
    "(corpus.jsonl, test.jsonl)"
)

Downloading = Callable[[str, Archive], AbstractContextManager[BytesDone]]
"""Told which dataset of which size is fetched; what it gives is told the bytes."""


def open_dataset(
    source: str,
    queries: Path | None = None,
    qrels: Path | None = None,
    language: str | None = None,
    downloading: Downloading = lambda name, archive: nullcontext(lambda count: None),
) -> Dataset:
    """The dataset that a user means.

    With `queries`, `source` is the corpus and the judgements are in `qrels`, unless the queries bring their answers. `language`
    chooses the corpus where a folder has one for each language.
    """
    path = Path(source)
    if queries is not None:
        return given_files(path, queries, qrels)
    if qrels is not None:
        raise BadInput(f"--qrels is {shown(qrels)}, but no --queries are given; expected both, or a folder alone")
    if path.is_dir():
        return _of_folder(path, language)
    if path.exists() or not source.startswith(BEIR_PREFIX):
        raise BadInput(f"{shown(path)} is no folder; expected one in a known layout, or {BEIR_PREFIX}NAME to download it")
    name, _, inner = source.removeprefix(BEIR_PREFIX).strip("/").partition("/")
    archive = require_known(name)
    cache = user_cache() / "beir"
    folder = cache / name
    if not folder.is_dir():
        with downloading(name, archive) as report:
            folder = beir_folder(name, archive, cache, report)
    return _of_archive(folder, inner)


def choose_split(dataset: Dataset, said: str | None) -> str:
    """What was said, else test, else the only one there is."""
    splits = dataset.splits()
    if said is not None or DEFAULT_SPLIT in splits or not splits:
        return said or DEFAULT_SPLIT
    if len(splits) == 1:
        return splits[0]
    raise BadInput(f"{dataset.name} has no split {DEFAULT_SPLIT!r}; choose one with --split: {', '.join(splits)}")


def _of_folder(folder: Path, language: str | None) -> Dataset:
    if layout_file(folder, "corpus.jsonl") and (layout_file(folder, "queries.jsonl") or (folder / "qrels").is_dir()):
        return Beir(folder)
    if layout_file(folder, FILE):
        return Mkqa(folder)
    found = find_mldr(folder, language) or find_trec(folder, language) or find_dpr(folder)
    if found is None:
        raise BadInput(f"{shown(folder)} has no layout that is known; expected {LAYOUTS}: or give --queries and --qrels")
    return found


def _of_archive(folder: Path, inner: str) -> Dataset:
    """CQADupStack holds a dataset for each forum."""
    parts = sorted(path.name for path in folder.iterdir() if path.is_dir() and layout_file(path, "corpus.jsonl"))
    if inner in parts:
        return Beir(folder / inner)
    if inner or parts:
        raise BadInput(
            f"{BEIR_PREFIX}{folder.name}{'/' + inner if inner else ''} is no dataset; expected "
            + (f"one of its parts, such as {BEIR_PREFIX}{folder.name}/{parts[0]}" if parts else f"{BEIR_PREFIX}{folder.name}")
        )
    return Beir(folder)
