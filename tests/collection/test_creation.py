"""Creating and opening collections."""

from pathlib import Path
from typing import Any

import pytest

from trilens.collection import Collection
from trilens.errors import (
    BadInput,
    BadModel,
    CollectionError,
    CollectionExists,
    CollectionMissing,
    TrilensError,
)
from trilens.lenses.bm25 import Bm25Config

from ..store.tiny import TinyEncoder
from .small import DOCUMENTS, ids, refused


def test_create_makes_an_empty_collection(tmp_path: Path) -> None:
    with Collection.create(tmp_path / "deep" / "er" / "c", lenses=["bm25"]) as collection:
        assert len(collection) == 0
        assert collection.lenses == ["bm25"]
        assert collection.search(["anything", "else"]) == [[], []]
        assert collection.get("x") is None
        assert collection.check().problems == []
        assert collection.info()["segments"] == 0


def test_create_takes_an_empty_folder(tmp_path: Path) -> None:
    Collection.create(str(tmp_path), lenses=["bm25"]).close()
    assert len(Collection.open(str(tmp_path))) == 0


def test_create_where_a_collection_is(collection: Collection) -> None:
    assert str(collection.path) in refused(CollectionExists, lambda: Collection.create(collection.path, lenses=["bm25"]))
    assert len(collection) == 3


def test_create_where_something_else_is(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert str(tmp_path) in refused(CollectionExists, lambda: Collection.create(tmp_path, lenses=["bm25"]))
    refused(CollectionExists, lambda: Collection.create(tmp_path / "notes.txt", lenses=["bm25"]))
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_create_inside_a_file(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    message = refused(CollectionError, lambda: Collection.create(tmp_path / "notes.txt" / "c", lenses=["bm25"]))
    assert "notes.txt" in message
    assert "check" not in message  # nothing is damaged


def test_create_under_an_impossible_name(tmp_path: Path) -> None:
    refused(TrilensError, lambda: Collection.create(tmp_path / ("x" * 300), lenses=["bm25"]))
    refused(TrilensError, lambda: Collection.open(tmp_path / ("x" * 300)))


def test_open_where_nothing_is(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    for path in (tmp_path / "none", tmp_path, tmp_path / "notes.txt", tmp_path / "notes.txt" / "c"):
        assert str(path) in refused(CollectionMissing, lambda path=path: Collection.open(path))  # type: ignore[misc]
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lenses": []}, "lenses are none; expected one or more of"),
        ({"lenses": ["smell"]}, "lenses are smell; expected one or more of"),
        ({"lenses": ["bm25", "bm25"]}, "lenses are bm25, bm25; expected one or more of"),
        ({"lenses": "bm25"}, "lenses is 'bm25'; expected a list of lens names"),
        ({"unknown": 1}, "option 'unknown' is not known; expected one of lenses, model, passages, bm25, dense"),
        ({"lenses": ["bm25"], "bm25": {"b": 2}}, "bm25.b is 2; expected a value less than or equal to 1"),
        ({"lenses": ["bm25"], "bm25": {"k1": float("nan")}}, "bm25.k1 is nan; expected a"),
        ({"lenses": ["bm25"], "passages": {"words": 10, "overlap": 10}}, "overlap is 10; expected fewer than the 10 words"),
        ({"lenses": ["bm25"], "passages": {"words": -1}}, "passages.words is -1; expected a value greater than or equal to 0"),
    ],
)
def test_bad_options_leave_nothing_behind(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    assert message in refused(BadInput, lambda: Collection.create(tmp_path / "c", **options))
    assert not (tmp_path / "c").exists()


def test_an_unknown_model_leaves_nothing_behind(tmp_path: Path) -> None:
    assert "no-such-model" in refused(BadModel, lambda: Collection.create(tmp_path / "c", model="no-such-model"))
    assert not (tmp_path / "c").exists()


def test_options_are_kept(tmp_path: Path) -> None:
    options: dict[str, Any] = {"lenses": ["bm25"], "bm25": {"k1": 1.5}, "passages": {"words": 20, "overlap": 3}}
    made = Collection.create(tmp_path / "c", **options)
    assert Collection.open(tmp_path / "c").config == made.config
    assert made.config.of_lens("bm25") == Bm25Config(k1=1.5)


def test_open_or_create(tmp_path: Path) -> None:
    options: dict[str, Any] = {"lenses": ["bm25"], "bm25": {"k1": 1.5}}
    with Collection.open_or_create(tmp_path / "c", **options) as collection:
        collection.add(DOCUMENTS)
    assert len(Collection.open_or_create(tmp_path / "c", **options)) == 3
    assert len(Collection.open_or_create(tmp_path / "c")) == 3
    message = refused(BadInput, lambda: Collection.open_or_create(tmp_path / "c", bm25={"k1": 2.0}))
    assert "was created with bm25" in message and "leave the option out, or index into a new folder" in message
    assert "unknown" in refused(BadInput, lambda: Collection.open_or_create(tmp_path / "c", unknown=1))


def test_an_encoder_object_instead_of_a_model_folder(tmp_path: Path) -> None:
    encoder = TinyEncoder()
    lenses = ["bm25", "dense", "sparse", "tokens", "lexical", "multi"]
    with Collection.create(tmp_path / "c", lenses=lenses, encoder=encoder) as collection:
        collection.add(DOCUMENTS)
    with Collection.open(tmp_path / "c", encoder=encoder) as collection:
        assert (collection.config.model, collection.config.model_fingerprint) == ("", encoder.fingerprint)
        for lens in lenses:
            (hits,) = collection.search(["river"], lenses=[lens])
            explained = collection.explain("river", hits[0].doc_id, lenses=[lens])
            assert sum(part.score for part in explained.parts) == pytest.approx(hits[0].score, abs=1e-4)
    with Collection.open(tmp_path / "c") as without:
        assert ids(without, "river", lenses=["bm25"])
        assert "Collection.open(path, encoder=…)" in refused(BadModel, lambda: without.search(["river"], lenses=["dense"]))
    with Collection.open(tmp_path / "c", encoder=TinyEncoder(fingerprint="another")) as other:
        assert "another" in refused(BadModel, lambda: other.search(["river"], lenses=["dense"]))
    few = TinyEncoder(heads=("dense",))
    message = refused(BadInput, lambda: Collection.create(tmp_path / "d", lenses=["multi"], encoder=few))
    assert message.startswith(f"model {few.fingerprint} has the heads dense; the lenses multi need multi as well")
    assert not (tmp_path / "d").exists()
