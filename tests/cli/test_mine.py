import json
from pathlib import Path

import pytest

from trilens.store.config import DEFAULT_MODEL

from ..encode.counting_cross import counting_cross
from .conftest import CORPUS, Trilens


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "set"
    (root / "qrels").mkdir(parents=True)
    (root / "corpus.jsonl").write_text("".join(json.dumps(record) + "\n" for record in CORPUS))
    (root / "queries.jsonl").write_text('{"_id": "q1", "text": "delete a directory"}\n{"_id": "q2", "text": "square root"}\n')
    (root / "qrels" / "train.tsv").write_text("q1\trmtree\t1\nq2\tsqrt\t1\n")
    return root


def test_negatives_of_a_beir_folder(trilens: Trilens, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "mined.jsonl"
    done = trilens("mine", folder, "--out", out, "--json")
    assert done.code == 0, done.err
    assert {key: done.json[key] for key in ("examples", "negatives", "short", "skipped")} == {
        "examples": 2,
        "negatives": 1,
        "short": 2,
        "skipped": 0,
    }
    first = json.loads(out.read_text().splitlines()[0])
    assert first["positive_ctxs"] == [{"passage_id": "rmtree"}]  # there is a corpus, so ids are enough
    assert [context["passage_id"] for context in first["hard_negative_ctxs"]] == ["mkdir"]


def test_a_collection_on_disk_and_an_encoder_that_scores(trilens: Trilens, folder: Path, tmp_path: Path) -> None:
    assert trilens("index", folder, "--to", tmp_path / "c", "--lens", "bm25").code == 0
    out = tmp_path / "mined.jsonl"
    options = ("--encoder", DEFAULT_MODEL, "--margin", 0.05, "--texts", "--threads", 1)
    done = trilens("mine", folder, "--collection", tmp_path / "c", "--out", out, *options)
    assert done.code == 0, done.err
    assert "1 negatives for 2 examples" in done.out
    first = json.loads(out.read_text().splitlines()[0])
    assert first["hard_negative_ctxs"][0]["text"] == "Create a directory."
    positive, negative = first["teacher_scores"]
    assert negative < 0.95 * positive


def test_a_cross_encoder_of_a_model_folder_scores(trilens: Trilens, folder: Path, tmp_path: Path) -> None:
    model = counting_cross(tmp_path / "cross", ["delete a directory", *(str(record["text"]) for record in CORPUS)])
    out = tmp_path / "mined.jsonl"
    done = trilens("mine", folder, "--cross-encoder", model, "--out", out)
    assert done.code == 0, done.err
    scored = [json.loads(line) for line in out.read_text().splitlines()]
    assert all(0.5 < score < 1 for line in scored for score in line["teacher_scores"])
    wrong = trilens("mine", folder, "--cross-encoder", folder, "--out", tmp_path / "other.jsonl")
    assert wrong.code == 1 and wrong.err.count("\n") == 1


def test_bad_examples_are_reported(trilens: Trilens, tmp_path: Path) -> None:
    data = tmp_path / "data.jsonl"
    good = {"question": "cat", "positive_ctxs": [{"text": "a cat"}], "hard_negative_ctxs": [{"text": "cat food"}]}
    data.write_text(json.dumps(good) + "\n" + json.dumps({"question": "dog", "positive_ctxs": []}) + "\n")
    failed = trilens("mine", data, "--out", tmp_path / "o")
    assert (failed.code, failed.out) == (1, "")
    assert "data.jsonl:2: the query 'dog' has no positive" in failed.err
    done = trilens("mine", data, "--out", tmp_path / "o", "--skip-bad", "--json")
    assert done.json["skipped"] == 1
    assert "skipped:" in done.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--margin", "0.1"], "need a scorer: pass --cross-encoder or --encoder"),
        (["--regex"], "--regex requires --answers"),
        (["--from", "9", "--to", "3"], "ranks are 9 to 3"),
        (["--encoder", "a", "--cross-encoder", "b"], "expected one of them"),
        (["--split", "dev"], "has no split 'dev'"),
        (["--queries", "x"], "option 'beir.queries' is not known"),
        (["--format", "triples"], "triples.queries is missing"),
        (["--collection", "nowhere", "--model", "x"], "leave one of them out"),
        (["--lens", "dance"], "expected one or more of bm25"),
    ],
)
def test_bad_options(trilens: Trilens, folder: Path, tmp_path: Path, options: list[str], message: str) -> None:
    failed = trilens("mine", folder, "--out", tmp_path / "o", *options)
    assert failed.code == 1
    assert message in failed.err
    assert failed.err.count("\n") == 1
    assert not (tmp_path / "o").exists()


def test_help_has_examples(trilens: Trilens) -> None:
    shown = trilens("mine", "--help")
    assert shown.code == 0
    assert "trilens mine data/nfcorpus --lens bm25 --from 10 --to 100" in shown.out
