"""The layouts of DPR, TREC and MIRACL, and files that the user names."""

import gzip
import json
from pathlib import Path

import pytest

from trilens.datasets.judged_files import JudgedFiles, find_dpr, find_trec, given_files
from trilens.datasets.queries import Query
from trilens.errors import BadInput
from trilens.read.readers import read


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


def found(dataset: JudgedFiles | None) -> JudgedFiles:
    assert dataset is not None
    return dataset


def test_dpr_as_it_is_published(tmp_path: Path) -> None:
    write(
        tmp_path / "psgs_w100.tsv.gz", 'id\ttext\ttitle\n1\t"Aaron is a prophet, ""high priest"""\tAaron\n2\tPython\tSnakes\n'
    )
    write(tmp_path / "nq-test.qa.csv", "who is a prophet\t['Aaron']\nwho is not\t[]\n")
    write(tmp_path / "nq-dev.json.gz", json.dumps([{"question": "what", "answers": ["a snake"], "positive_ctxs": []}]))
    dataset = found(find_dpr(tmp_path))
    assert dataset.splits() == ["nq-dev", "nq-test"]
    assert [(doc.doc_id, doc.title) for doc in read(dataset.sources)] == [("1", "Aaron"), ("2", "Snakes")]
    split = dataset.split("nq-test")
    assert split.queries == {"1": Query("who is a prophet", answers=("Aaron",))}
    assert (split.qrels, split.unjudged, split.answered) == ({}, ["2"], True)
    assert dataset.split("nq-dev").queries["1"].answers == ("a snake",)
    with pytest.raises(BadInput, match="has no split 'test'; expected one of 'nq-dev', 'nq-test'"):
        dataset.split("test")


def test_topics_and_judgements_of_trec(tmp_path: Path) -> None:
    write(tmp_path / "docs" / "a.txt", "first")
    write(tmp_path / "topics.robust04.txt", "<top><num> Number: 301 <title> one </top><top><num>302<title>two</top>")
    write(tmp_path / "qrels.robust04.txt", "301 0 a.txt 1\n")
    dataset = found(find_trec(tmp_path, None))
    assert (dataset.name, dataset.splits(), dataset.sources) == (tmp_path.name, ["robust04"], [tmp_path / "docs"])
    split = dataset.split("robust04")
    assert (split.queries, split.qrels, split.unjudged) == ({"301": Query("one")}, {"301": {"a.txt": 1}}, ["302"])
    assert find_trec(tmp_path / "docs", None) is None


def test_topics_without_a_name_are_the_test_split(tmp_path: Path) -> None:
    write(tmp_path / "corpus.jsonl", '{"id": "d", "text": "x"}\n')
    write(tmp_path / "topics.tsv", "1\tone\n")
    write(tmp_path / "qrels.txt", "1 0 d 1\n")
    assert found(find_trec(tmp_path, None)).splits() == ["test"]


@pytest.fixture
def miracl(tmp_path: Path) -> Path:
    """Two languages, topics and judgements as in one repository and documents as in the other."""
    for language, word in (("sw", "habari"), ("yo", "iroyin")):
        inner = tmp_path / f"miracl-v1.0-{language}"
        for split in ("dev", "testA"):
            write(inner / "topics" / f"topics.miracl-v1.0-{language}-{split}.tsv", f'0\t"{word}" ni nini?\n')
        write(inner / "qrels" / f"qrels.miracl-v1.0-{language}-dev.tsv", "0\tQ0\t462221#4\t1\n0\tQ0\t1#0\t0\n")
        corpus = tmp_path / f"miracl-corpus-v1.0-{language}"
        for number, doc_id in enumerate(("462221#4", "1#0")):
            record = {"docid": doc_id, "title": language, "text": word}
            write(corpus / f"docs-{number}.jsonl.gz", json.dumps(record) + "\n")
    return tmp_path


def test_miracl_has_a_corpus_for_each_language(miracl: Path) -> None:
    dataset = found(find_trec(miracl, "yo"))
    assert (dataset.name, dataset.splits()) == ("miracl-v1.0-yo", ["dev"])
    assert [(doc.doc_id, doc.title) for doc in read(dataset.sources)] == [("462221#4", "yo"), ("1#0", "yo")]
    split = dataset.split("dev")
    assert split.queries == {"0": Query('"iroyin" ni nini?', "yo")}
    assert split.qrels == {"0": {"462221#4": 1, "1#0": 0}}
    with pytest.raises(BadInput, match="has a corpus for each language; choose one with --lang: sw, yo"):
        find_trec(miracl, None)
    with pytest.raises(BadInput, match="has no corpus in 'de'; choose one with --lang: sw, yo"):
        find_trec(miracl, "de")
    one = found(find_trec(miracl / "miracl-v1.0-sw", None))
    assert (one.language, [path.parent.name for path in one.sources]) == ("sw", ["miracl-corpus-v1.0-sw"] * 2)


def test_a_missing_corpus_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "topics.tsv", "1\tone\n")
    write(tmp_path / "qrels.tsv", "1\td\t1\n")
    with pytest.raises(BadInput, match="has topics and judgements but no corpus"):
        find_trec(tmp_path, None)


def test_files_can_be_named(tmp_path: Path) -> None:
    corpus = write(tmp_path / "c.jsonl", '{"id": "d", "text": "x"}\n')
    queries, qrels = write(tmp_path / "dev.tsv", "1\tone\n2\ttwo\n"), write(tmp_path / "q.txt", "2 0 d 1\n")
    dataset = given_files(corpus, queries, qrels)
    assert (dataset.name, dataset.splits(), dataset.sources) == ("c", ["dev"], [corpus])
    assert dataset.split("dev").queries == {"2": Query("two")}
    with pytest.raises(BadInput, match=r"no query of .*dev.tsv has an answer; .* --qrels"):
        given_files(corpus, queries, None).split("dev")
    qrels.write_text("2 0 d 1\n9 0 d 1\n")
    with pytest.raises(BadInput, match=r"q.txt judges 1 unknown queries, such as '9'"):
        dataset.split("dev")
    with pytest.raises(BadInput, match="nowhere does not exist"):
        given_files(corpus, queries, tmp_path / "nowhere")
