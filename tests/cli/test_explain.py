"""The commands that explain and tune."""

import json
from pathlib import Path

import pytest

from .conftest import Trilens


@pytest.fixture
def collection(tmp_path: Path, corpus: Path, trilens: Trilens) -> Path:
    path = tmp_path / "c.trilens"
    assert trilens("index", corpus, "--to", path, "--lens", "bm25,dense,multi").code == 0
    return path


def test_explain_shows_every_lens(collection: Path, trilens: Trilens) -> None:
    shown = trilens("explain", collection, "delete a directory", "rmtree")
    assert (shown.code, shown.err) == (0, "")
    for text in ("fusion", "bm25", "dense", "multi", "idf", "→ directory", "special tokens", "Recursively delete"):
        assert text in shown.out


def test_explain_for_programs(collection: Path, trilens: Trilens) -> None:
    [best, *_] = trilens("search", collection, "delete a directory", "--fusion", "zscore", "--json").json["hits"]
    found = trilens("explain", collection, "delete a directory", best["doc_id"], "--fusion", "zscore", "--json").json
    assert found["score"] == pytest.approx(best["score"], abs=1e-5)
    assert [part["label"] for part in found["parts"]] == ["bm25", "dense", "multi"]
    for part in found["parts"]:
        assert part["score"] == pytest.approx(best["by_lens"][part["label"]]["contribution"], abs=1e-5)


def test_a_filtered_search_is_explained(collection: Path, trilens: Trilens) -> None:
    options = ["--fusion", "zscore", "--filter", '{"year": {"$gte": 2020}}', "--json"]
    [best, *_] = trilens("search", collection, "delete a directory", *options).json["hits"]
    found = trilens("explain", collection, "delete a directory", best["doc_id"], *options).json
    assert found["score"] == pytest.approx(best["score"], abs=1e-5)


def test_pages_and_pictures(tmp_path: Path, collection: Path, trilens: Trilens) -> None:
    page, picture = tmp_path / "why.html", tmp_path / "why.png"
    arguments = ["explain", collection, "delete a <b>", "rmtree", "--html", page, "--png", picture]
    assert trilens(*arguments).code == 0
    assert "delete a &lt;b&gt;" in page.read_text()
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_expansion_is_shown(collection: Path, trilens: Trilens) -> None:
    found = trilens("explain", collection, "delete", "rmtree", "--lens", "bm25", "--expand", "common=1", "--json").json
    assert found["expansion"]["method"] == "rm3"
    assert "terms" in trilens("explain", collection, "delete", "rmtree", "--lens", "bm25", "--expand", "common=1").out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["explain", "delete", "nothing"], "no document 'nothing'"),
        (["explain", "delete", "rmtree", "--lens", "smell"], "no lens 'smell'"),
        (["explain", "delete", "rmtree", "--fusion", "best"], "fusion is 'best'"),
        (["explain", "delete", "rmtree", "--png", "why.gif"], "expected .png"),
        (["explain", "delete", "rmtree", "--html", "/nowhere/why.html"], "no folder /nowhere for why.html"),
        (["search", "delete", "--fusion", "all"], "there is no lens 'lexical'"),
        (["search", "delete", "--fusion", "rrf:smell=1,bm25=1"], "no lens 'smell'"),
        (["search", "delete", "--hyde", "nowhere"], "hyde.url is"),
        (["search", "delete", "--lens", "dense", "--hyde", "http://127.0.0.1:9/v1"], "cannot be reached"),
        (["tune", "nowhere"], "nowhere is not a folder; expected one in a known layout"),
    ],
)
def test_what_is_refused(arguments: list[str], says: str, collection: Path, trilens: Trilens) -> None:
    outcome = trilens(arguments[0], collection, *arguments[1:])
    assert (outcome.code, outcome.out) == (1, "")
    assert says in outcome.err
    assert outcome.err.count("\n") == 1


def test_tune_saves_and_info_shows(tmp_path: Path, trilens: Trilens) -> None:
    folder = tmp_path / "data"
    (folder / "qrels").mkdir(parents=True)
    names = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu"]
    docs = [{"_id": name, "title": "", "text": f"All about {name} and other letters."} for name in names]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(doc) + "\n" for doc in docs))
    (folder / "queries.jsonl").write_text("".join(json.dumps({"_id": f"q-{n}", "text": f"what is {n}"}) + "\n" for n in names))
    (folder / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(f"q-{n}\t{n}\t1\n" for n in names))
    path = tmp_path / "t.trilens"
    assert trilens("index", folder / "corpus.jsonl", "--to", path, "--lens", "bm25,dense").code == 0
    found = trilens("tune", path, folder, "--policy", "zscore", "--save", "--json").json
    assert found["saved"] and found["best"].startswith("zscore:")
    assert found["baselines"]["bm25"] == 1.0
    assert found["best"] in " ".join(trilens("info", path).out.split())
    assert trilens("info", path, "--json").json["tuned"]["bm25+dense"]["split"] == "dev"
    assert "unseen" in trilens("tune", path, folder, "--policy", "minmax,rrf").out
    two = trilens("tune", path, folder, "--policy", "rrf", "--most", "10", "--also", f"{path}={folder}:dev", "--json").json
    assert (two["dataset"], two["split"], two["queries"]) == ("data, data", "dev, dev", 20)
    for wrong, told in (
        (["--split", "test"], "weights must not be chosen on test queries"),
        (["--also", f"{path}={folder}:test"], "weights must not be chosen on test queries"),
        (["--also", str(path)], "expected COLLECTION=DATA"),
    ):
        outcome = trilens("tune", path, folder, *wrong)
        assert outcome.code == 1 and told in outcome.err
