"""The commands of the sparse lenses."""

import json
from pathlib import Path

import pytest

from .conftest import Trilens

VECTORS = [
    {"id": "a", "vector": {"cat": 1.5, "feline": 0.5}, "text": "A cat."},
    {"id": "b", "vector": {"dog": 2.0, "cat": 0.25}, "year": 2020},
]


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    path = tmp_path / "vectors.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in VECTORS))
    return path


def test_disentangle_names_words_for_people_and_programs(trilens: Trilens) -> None:
    found = trilens("disentangle", "The capital of France", "--top", 5, "--json").json
    assert {"capital", "france"} <= {word["word"] for word in found["words"]}
    assert len(found["words"]) == 5
    assert set(found["words"][0]) == {"word", "weight", "own"}
    shown = trilens("disentangle", "The capital of France", "--top", 5)
    assert (shown.code, shown.err) == (0, "")
    assert "capital" in shown.out and "in the text" in shown.out and "added" in shown.out


def test_disentangle_draws(tmp_path: Path, trilens: Trilens) -> None:
    cloud, bars = tmp_path / "cloud.png", tmp_path / "bars.png"
    assert trilens("disentangle", "The capital of France", "--png", cloud, "--chart", bars).code == 0
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in (cloud, bars))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["disentangle", " "], "the text is empty"),
        (["disentangle", "cat", "--model", "nothing"], "there is no model 'nothing'"),
        (["disentangle", "cat", "--png", "cloud.gif"], "expected .png"),
    ],
)
def test_what_disentangle_refuses(arguments: list[str], says: str, trilens: Trilens) -> None:
    outcome = trilens(*arguments)
    assert (outcome.code, outcome.out) == (1, "")
    assert says in outcome.err
    assert outcome.err.count("\n") == 1


def test_every_mode_finds_and_explains(tmp_path: Path, corpus: Path, trilens: Trilens) -> None:
    path = tmp_path / "c.trilens"
    assert trilens("index", corpus, "--to", path, "--lens", "sparse,tokens,lexical").code == 0
    for lens, more in (("sparse", []), ("sparse", ["--params", "sparse:query=bag"]), ("tokens", []), ("lexical", [])):
        [best, *_] = trilens("search", path, "delete a directory", "--lens", lens, "--json", *more).json["hits"]
        assert best["doc_id"] == "rmtree"
        found = trilens("explain", path, "delete a directory", "rmtree", "--lens", lens, "--json", *more).json
        assert found["score"] == pytest.approx(best["score"], rel=1e-6)
        assert sum(part["score"] for part in found["parts"]) == pytest.approx(best["score"], rel=1e-6)
    shown = trilens("explain", path, "delete a directory", "rmtree", "--lens", "tokens")
    assert all(said in shown.out for said in ("directory", "doc weight 0.", "idf"))


def test_late_search(tmp_path: Path, corpus: Path, trilens: Trilens) -> None:
    path = tmp_path / "c.trilens"
    assert trilens("index", corpus, "--to", path, "--lens", "tokens").code == 0
    hits = trilens("search", path, "delete a directory", "--rerank", "sparse", "--json").json["hits"]
    assert hits[0]["doc_id"] == "rmtree"
    assert set(hits[0]["by_lens"]) == {"tokens", "sparse"}


def test_vectors_of_another_model(tmp_path: Path, vectors: Path, trilens: Trilens) -> None:
    path = tmp_path / "c.trilens"
    assert trilens("index", vectors, "--to", path, "--lens", "external", "--json").json["documents"] == 2
    assert trilens("index", vectors, "--to", path, "--lens", "external", "--json").json["unchanged"] == 2
    hits = trilens("search", path, '{"cat": 2, "feline": 1}', "--json").json["hits"]
    assert [hit["doc_id"] for hit in hits] == ["a", "b"]
    assert hits[0]["score"] == pytest.approx(3.5, rel=0.01)
    assert hits[0]["metadata"] == {"text": "A cat."}
    filtered = trilens("search", path, '{"cat": 2}', "--filter", '{"year": 2020}', "--json").json["hits"]
    assert [hit["doc_id"] for hit in filtered] == ["b"]
    found = trilens("explain", path, '{"cat": 2, "feline": 1}', "a", "--lens", "external", "--json").json
    assert [part["label"] for part in found["parts"]] == ["cat", "feline"]
    assert trilens("check", path).code == 0


def test_figures_of_the_sparse_lenses(tmp_path: Path, vectors: Path, trilens: Trilens) -> None:
    path = tmp_path / "c.trilens"
    trilens("index", vectors, "--to", path, "--lens", "external")
    assert trilens("info", path, "--json").json["figures"]["external"]["postings"] == 4
    assert "postings" in trilens("info", path).out


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"id": "c", "vector": {"cat": -1}}', "weight of term 'cat' is -1"),
        ('{"id": "c", "text": "no vector"}', "no vector field"),
        ('{"id": "c", "vector": "cat"}', "expected an object of terms and weights"),
    ],
)
def test_a_bad_vector_leaves_the_collection_as_it_was(
    line: str, says: str, tmp_path: Path, vectors: Path, trilens: Trilens
) -> None:
    path = tmp_path / "c.trilens"
    trilens("index", vectors, "--to", path, "--lens", "external")
    with vectors.open("a") as file:
        file.write(line + "\n")
    outcome = trilens("index", vectors, "--to", path, "--lens", "external")
    assert (outcome.code, outcome.out) == (1, "")
    assert says in outcome.err and "vectors.jsonl:3" in outcome.err
    assert trilens("info", path, "--json").json["commit"] == 1
    assert "is not JSON" in trilens("search", path, "cats").err
