"""Opening of datasets: a folder in a supported layout, separate files, or a dataset of BEIR or ir_datasets to download."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from trilens.datasets.beir import Beir
from trilens.datasets.beir_archives import BeirArchive, BytesDone, beir_folder, require_archive
from trilens.datasets.dataset import Dataset
from trilens.datasets.irds import PREFIX as IRDS_PREFIX
from trilens.datasets.irds import open_irds
from trilens.datasets.judged_files import find_dpr, find_trec, given_files
from trilens.datasets.mkqa import FILE, Mkqa
from trilens.datasets.mldr import find_mldr
from trilens.errors import BadInput
from trilens.text.files import layout_file, shown, user_cache

BEIR_PREFIX = "beir/"
DEFAULT_SPLIT = "test"
LAYOUTS = (
    "BEIR (corpus.jsonl, queries.jsonl, qrels/), DPR (psgs_w100.tsv or corpus.jsonl, and questions with answers such as "
    "nq-test.qa.csv), TREC or MIRACL (a corpus, topics.NAME, qrels.NAME), MKQA (corpus.jsonl, mkqa.jsonl) or MLDR "
    "(corpus.jsonl, test.jsonl)"
)

Downloading = Callable[[str, BeirArchive], AbstractContextManager[BytesDone]]
"""Called with the name and archive of a dataset before its download; yields the progress callback."""


def open_dataset(
    source: str,
    queries: Path | None = None,
    qrels: Path | None = None,
    language: str | None = None,
    downloading: Downloading = lambda name, archive: nullcontext(lambda count: None),
) -> Dataset:
    """Open the dataset that a user named: a folder, `beir/NAME`, `irds/ID`, or a corpus with `queries`.

    With `queries`, `source` is the corpus and `qrels` holds the judgements, unless the queries contain answers. `language`
    selects the corpus in folders with one corpus per language.
    """
    path = Path(source)
    if queries is not None:
        return given_files(path, queries, qrels)
    if qrels is not None:
        raise BadInput(f"--qrels is {shown(qrels)}, but --queries is missing; expected both, or a folder alone")
    if path.is_dir():
        return _open_folder(path, language)
    if path.exists() or not source.startswith((BEIR_PREFIX, IRDS_PREFIX)):
        raise BadInput(
            f"{shown(path)} is not a folder; expected one in a known layout, or {BEIR_PREFIX}NAME or "
            f"{IRDS_PREFIX}ID to download it"
        )
    if source.startswith(IRDS_PREFIX):
        return open_irds(source.removeprefix(IRDS_PREFIX).strip("/"), user_cache() / "irds")
    name, _, inner = source.removeprefix(BEIR_PREFIX).strip("/").partition("/")
    archive = require_archive(name)
    cache = user_cache() / "beir"
    folder = cache / name
    if not folder.is_dir():
        with downloading(name, archive) as report:
            folder = beir_folder(name, archive, cache, report)
    return _open_beir(folder, inner)


def choose_split(dataset: Dataset, name: str | None) -> str:
    """The named split; by default `test`, or the only split of the dataset."""
    splits = dataset.splits()
    if name is not None or DEFAULT_SPLIT in splits or not splits:
        return name or DEFAULT_SPLIT
    if len(splits) == 1:
        return splits[0]
    raise BadInput(f"{dataset.name} has no split {DEFAULT_SPLIT!r}; choose one with --split: {', '.join(splits)}")


def _open_folder(folder: Path, language: str | None) -> Dataset:
    """Detect the layout of a folder."""
    if layout_file(folder, "corpus.jsonl") and (layout_file(folder, "queries.jsonl") or (folder / "qrels").is_dir()):
        return Beir(folder)
    if layout_file(folder, FILE):
        return Mkqa(folder)
    dataset = find_mldr(folder, language) or find_trec(folder, language) or find_dpr(folder)
    if dataset is None:
        raise BadInput(f"{shown(folder)} has no known layout; expected {LAYOUTS}, or --queries and --qrels")
    return dataset


def _open_beir(folder: Path, inner: str) -> Dataset:
    """Open an unpacked BEIR archive; CQADupStack contains one dataset per forum, selected by `inner`."""
    parts = sorted(path.name for path in folder.iterdir() if path.is_dir() and layout_file(path, "corpus.jsonl"))
    if inner in parts:
        return Beir(folder / inner)
    if inner or parts:
        raise BadInput(
            f"{BEIR_PREFIX}{folder.name}{'/' + inner if inner else ''} is not a dataset; expected "
            + (f"one of its parts, such as {BEIR_PREFIX}{folder.name}/{parts[0]}" if parts else f"{BEIR_PREFIX}{folder.name}")
        )
    return Beir(folder)
