"""Opening of datasets: layouts of folders, separate files, cached BEIR archives, and the choice of a split."""

import json
from pathlib import Path

import pytest

from trilens.datasets.beir import Beir
from trilens.datasets.beir_archives import ADDRESS_VARIABLE, BeirArchive, BytesDone
from trilens.datasets.layouts import choose_split, open_dataset
from trilens.datasets.mkqa import Mkqa
from trilens.errors import BadInput, ServiceFailed

CORPUS = '{"_id": "d", "text": "word"}\n'
FILES = {
    "corpus.jsonl": CORPUS,
    "queries.jsonl": '{"_id": "q", "text": "word"}\n',
    "qrels/test.tsv": "query-id\tcorpus-id\tscore\nq\td\t1\n",
}


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_the_layout_of_a_folder_is_detected(tmp_path: Path) -> None:
    assert isinstance(open_dataset(str(write(tmp_path / "beir", FILES))), Beir)
    example = {"example_id": 1, "queries": {"en": "word?"}, "answers": {"en": [{"type": "entity", "text": "word"}]}}
    mkqa = write(tmp_path / "mkqa", {"corpus.jsonl": CORPUS, "mkqa.jsonl": json.dumps(example) + "\n"})
    assert isinstance(open_dataset(str(mkqa)), Mkqa)
    trec = {"corpus.jsonl": CORPUS, "topics.dev.tsv": "q\tword\n", "qrels.dev.txt": "q 0 d 1\n"}
    assert open_dataset(str(write(tmp_path / "trec", trec))).split("dev").qrels == {"q": {"d": 1}}
    dpr = write(tmp_path / "dpr", {"corpus.jsonl": CORPUS, "nq-test.qa.csv": "word?\t['word']\n"})
    assert open_dataset(str(dpr)).split("nq-test").answered
    with pytest.raises(BadInput, match="has no known layout; expected BEIR"):
        open_dataset(str(write(tmp_path / "other", {"readme.txt": "text"})))


def test_separate_files(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    queries, qrels = tmp_path / "queries.jsonl", tmp_path / "qrels" / "test.tsv"
    dataset = open_dataset(str(tmp_path / "corpus.jsonl"), queries, qrels)
    assert dataset.split(choose_split(dataset, None)).qrels == {"q": {"d": 1}}
    with pytest.raises(BadInput, match="--queries is missing; expected both"):
        open_dataset(str(tmp_path), qrels=qrels)
    with pytest.raises(BadInput, match=r"corpus.jsonl is not a folder; expected one in a known layout, or beir/NAME"):
        open_dataset(str(tmp_path / "corpus.jsonl"))


def test_cached_beir_datasets_are_not_downloaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(ADDRESS_VARIABLE, "http://127.0.0.1:9")
    for name in ("scifact", "cqadupstack/android", "cqadupstack/english"):
        write(tmp_path / "trilens" / "beir" / name, FILES)
    assert open_dataset("beir/scifact").split("test").qrels == {"q": {"d": 1}}
    assert open_dataset("beir/cqadupstack/english").name == "english"
    with pytest.raises(BadInput, match="one of its parts, such as beir/cqadupstack/android"):
        open_dataset("beir/cqadupstack")
    with pytest.raises(BadInput, match="beir/scifact/english is not a dataset"):
        open_dataset("beir/scifact/english")
    with pytest.raises(BadInput, match="no BEIR dataset 'scifakt' to download; expected one of arguana"):
        open_dataset("beir/scifakt")
    with pytest.raises(ServiceFailed, match="cannot be reached"):
        open_dataset("beir/nfcorpus")


def test_a_download_is_announced_with_its_size(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(ADDRESS_VARIABLE, "http://127.0.0.1:9")
    announced = []

    class Progress:
        def __init__(self, name: str, archive: BeirArchive) -> None:
            announced.append((name, archive.bytes))

        def __enter__(self) -> BytesDone:
            return lambda count: None

        def __exit__(self, *error: object) -> None:
            return None

    with pytest.raises(ServiceFailed):
        open_dataset("beir/scifact", downloading=Progress)
    assert announced == [("scifact", 2_816_079)]


def test_the_default_split_is_test_or_the_only_one(tmp_path: Path) -> None:
    qrels = FILES["qrels/test.tsv"]
    both = Beir(write(tmp_path / "both", FILES | {"qrels/dev.tsv": qrels}))
    assert choose_split(both, None) == "test"
    assert choose_split(both, "dev") == "dev"
    corpus = {name: FILES[name] for name in ("corpus.jsonl", "queries.jsonl")}
    assert choose_split(Beir(write(tmp_path / "only", corpus | {"qrels/dev.tsv": qrels})), None) == "dev"
    several = Beir(write(tmp_path / "several", corpus | {"qrels/dev.tsv": qrels, "qrels/train.tsv": qrels}))
    with pytest.raises(BadInput, match="has no split 'test'; choose one with --split: dev, train"):
        choose_split(several, None)
