"""Damaged collections are detected, the damaged file is named, and it is never searched."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from trilens.collection import Collection
from trilens.encode.folder import CONFIG_FILE
from trilens.encode.models import bundled_models
from trilens.errors import BadModel, CollectionDamaged, CollectionMissing, TrilensError, UnknownFormat
from trilens.store.config import DEFAULT_MODEL
from trilens.store.schema import FORMAT_VERSION
from trilens.text.document import Document

from .tiny import LENSES, TinyEncoder

DOCUMENTS = [
    Document("a", "A red fox crosses the frozen river.", "Fox", {"year": 1999}),
    Document("b", "The river is wide. " * 20, metadata={"year": 2001}),
    Document("c", ""),
]
MODELS = bundled_models()


@pytest.fixture(scope="module")
def whole() -> Iterator[Path]:
    """A collection of two segments, one of them with a deleted row, and their shared parts; tests change copies of it."""
    with TemporaryDirectory() as folder:
        root = Path(folder) / "c"
        passages = {"words": 30, "overlap": 5}
        with Collection.create(root, lenses=LENSES, encoder=TinyEncoder(), passages=passages) as collection:
            collection.add([*DOCUMENTS, Document("old", "A river of the past.")])
            collection.add([Document("d", " ".join(f"w{number}" for number in range(200)))])
            collection.commit()
            collection.delete(["old"])
            collection.add([Document("e", "One more document about a fox.")])
        yield root


@pytest.fixture
def root(whole: Path, folder: Path) -> Path:
    shutil.copytree(whole, folder / "c")
    return folder / "c"


def files(root: Path) -> list[Path]:
    """All files of all segments."""
    return sorted(path for path in (root / "segments").rglob("*") if path.is_file())


def a_segment(root: Path) -> Path:
    return next((root / "segments").glob("*/rows")).parent


def problems(root: Path) -> list[str]:
    with Collection.open(root, encoder=TinyEncoder()) as collection:
        found = collection.check().problems
    assert all(problem and "\n" not in problem for problem in found)
    return found


def refuses(root: Path, kind: type[TrilensError] = CollectionDamaged) -> str:
    """The one-line error of opening and searching."""
    with pytest.raises(kind) as caught, Collection.open(root, encoder=TinyEncoder()) as collection:
        collection.search(["river"], lenses=["bm25"])
    assert "\n" not in str(caught.value)
    return str(caught.value)


def change(root: Path, *statements: str) -> None:
    """Change the catalog with plain SQL."""
    with closing(sqlite3.connect(root / "catalog.sqlite")) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def test_nothing_is_wrong_with_a_whole_collection(root: Path) -> None:
    with Collection.open(root, encoder=TinyEncoder()) as collection:
        seen: list[int] = []
        report = collection.check(seen.append)
    sizes = [path.stat().st_size for path in files(root)]
    assert report.problems == []
    assert (report.documents, report.files, report.bytes) == (5, len(sizes), sum(sizes))
    assert sorted(seen) == sorted(sizes)
    with Collection.open(root, encoder=TinyEncoder()) as collection:
        shared = {part.record.id for part in collection.snapshot.shared.every}
    assert shared
    assert len({path.relative_to(root / "segments").parts[0] for path in files(root)} - shared) == 2


def test_every_flipped_byte_is_found(root: Path) -> None:
    random = Random(1)
    for path in files(root):
        content = path.read_bytes()
        places = {0, len(content) // 2, len(content) - 1, *random.sample(range(len(content)), 2)}
        for place in places:
            flipped = bytearray(content)
            flipped[place] ^= 1 << random.randrange(8)
            path.write_bytes(flipped)
            assert [problem for problem in problems(root) if problem.startswith(str(path))], f"byte {place} of {path}"
        path.write_bytes(content)
    assert problems(root) == []


@pytest.mark.parametrize("kept", [0, 0.5, 0.99], ids=["empty", "half", "nearly whole"])
def test_a_truncated_file_is_named(root: Path, kept: float) -> None:
    for path in files(root):
        content = path.read_bytes()
        path.write_bytes(content[: int(kept * len(content))])
        assert [problem for problem in problems(root) if problem.startswith(str(path))]
        assert str(path) in refuses(root)
        path.write_bytes(content)
    assert problems(root) == []


def test_a_longer_file_is_named(root: Path) -> None:
    path = files(root)[0]
    path.write_bytes(path.read_bytes() + b"\0")
    assert str(path) in problems(root)[0]
    assert str(path) in refuses(root)


def test_a_missing_file_is_named(root: Path) -> None:
    for path in files(root):
        content = path.read_bytes()
        path.unlink()
        assert any(problem.startswith(f"{path} is missing") for problem in problems(root))
        assert f"{path} is missing" in refuses(root)
        path.write_bytes(content)
    assert problems(root) == []


def test_a_missing_segment_is_named(root: Path) -> None:
    gone = a_segment(root)
    shutil.rmtree(gone)
    assert problems(root)
    assert all(str(gone) in problem for problem in problems(root))
    assert str(gone) in refuses(root)


def test_all_segments_missing_is_named(root: Path) -> None:
    shutil.rmtree(root / "segments")
    assert len(problems(root)) > 2
    assert str(root / "segments") in refuses(root)


def test_a_folder_lost_in_copying_an_empty_collection_is_no_damage(folder: Path) -> None:
    Collection.create(folder / "c", lenses=["bm25"]).close()
    (folder / "c" / "segments").rmdir()
    assert problems(folder / "c") == []
    with Collection.open(folder / "c") as collection:
        collection.add(DOCUMENTS)
        collection.commit()
        assert len(collection.search(["river"])[0]) == 2


def test_a_file_of_another_kind_of_the_same_size_is_named(root: Path) -> None:
    path = next(path for path in files(root) if path.name == "keys.npy")
    path.write_bytes(b"x" * path.stat().st_size)
    assert str(path) in problems(root)[0]
    assert str(path) in refuses(root)


def test_a_pickle_under_the_name_of_an_array_is_not_run(root: Path) -> None:
    path = max((path for path in files(root) if path.suffix == ".npy"), key=lambda path: path.stat().st_size)
    size = path.stat().st_size
    np.save(path, np.array([{"some": "object"}], object), allow_pickle=True)
    path.write_bytes(path.read_bytes().ljust(size, b"\0"))
    assert path.stat().st_size == size
    assert str(path) in problems(root)[0]
    assert str(path) in refuses(root)


@pytest.mark.parametrize("place", ["segments/notes.txt", "segments/mine/a.npy", "segments/{}/x.npy", "segments/{}/rows/y"])
def test_a_foreign_file_is_named_and_left_alone(root: Path, place: str) -> None:
    foreign = root / place.format(a_segment(root).name)
    foreign.parent.mkdir(exist_ok=True)
    foreign.write_text("mine")
    named = [problem for problem in problems(root) if "does not belong" in problem]
    assert len(named) == 1
    assert str(foreign).startswith(named[0].split(" does not")[0])
    with Collection.open(root, encoder=TinyEncoder()) as collection:
        collection.add([Document("new", "A river without damage.")])
        collection.commit()
        assert collection.search(["river"], lenses=["bm25"])[0]
    assert foreign.read_text() == "mine"


def test_what_a_dead_writer_left_is_no_damage(root: Path) -> None:
    whole = a_segment(root)
    for name in ("0123456789abcdef", "unfinished-0123456789abcdef"):
        shutil.copytree(whole, whole.with_name(name))
    assert problems(root) == []
    with Collection.open(root, encoder=TinyEncoder()) as collection:
        collection.add([Document("new", "text")])
        collection.commit()
    assert not (root / "segments" / "0123456789abcdef").exists()
    assert not (root / "segments" / "unfinished-0123456789abcdef").exists()


@pytest.mark.parametrize("retrain", [False, True])
def test_a_merge_during_a_check_is_no_damage(root: Path, retrain: bool) -> None:
    done: list[int] = []

    def optimize_once(_: int) -> None:
        if not done:
            done.append(1)
            with Collection.open(root, encoder=TinyEncoder()) as writer:
                writer.optimize(retrain)

    with Collection.open(root, encoder=TinyEncoder()) as collection:
        report = collection.check(optimize_once)
    assert done
    assert report.problems == []
    assert report.documents == 5


def test_a_catalog_that_is_no_sqlite_file(root: Path) -> None:
    (root / "catalog.sqlite").write_text("this is a text file, and a rather long one at that: " * 200)
    assert str(root / "catalog.sqlite") in refuses(root)


def test_an_empty_catalog(root: Path) -> None:
    (root / "catalog.sqlite").write_bytes(b"")
    assert "not a trilens catalog" in refuses(root)


def test_a_catalog_of_another_application(root: Path) -> None:
    (root / "catalog.sqlite").unlink()
    change(root, "CREATE TABLE bookmarks (url TEXT)", "PRAGMA application_id = 252006674")
    assert "not a trilens catalog" in refuses(root)


@pytest.mark.parametrize("kept", [0.3, 0.6, 0.9])
def test_a_truncated_catalog(root: Path, kept: float) -> None:
    path = root / "catalog.sqlite"
    content = path.read_bytes()
    path.write_bytes(content[: int(kept * len(content))])
    try:
        found = problems(root)
    except CollectionDamaged as error:
        found = [str(error)]
    assert found
    assert all(str(path) in problem for problem in found)


def test_a_missing_catalog_is_not_made_anew(root: Path) -> None:
    collection = Collection.open(root, encoder=TinyEncoder())
    (root / "catalog.sqlite").unlink()
    with pytest.raises(TrilensError):
        collection.search(["river"], lenses=["bm25"])
    assert not (root / "catalog.sqlite").exists()
    assert refuses(root, CollectionMissing)
    with pytest.raises(TrilensError):
        collection.add(DOCUMENTS)
    assert not (root / "catalog.sqlite").exists()


@pytest.mark.parametrize("version", [FORMAT_VERSION + 1, FORMAT_VERSION + 1000, 0])
def test_another_format_version_names_both(root: Path, version: int) -> None:
    change(root, f"PRAGMA user_version = {version}")
    message = refuses(root, UnknownFormat)
    assert f"version {version}" in message
    assert f"version {FORMAT_VERSION}" in message


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE documents SET metadata = '{\"year\":900}' WHERE doc_id = 'a'", "document 'a' has changed"),
        ("UPDATE documents SET hash = zeroblob(16) WHERE doc_id = 'a'", "document 'a' has changed"),
        ("UPDATE documents SET doc_id = 'aa' WHERE doc_id = 'a'", "document 'aa' has changed"),
        ("UPDATE documents SET doc_id = CAST(doc_id AS BLOB) WHERE doc_id = 'a'", "has changed"),
        ("UPDATE documents SET key = key + 100 WHERE doc_id = 'a'", "document 'a' is in no segment"),
        ("DELETE FROM documents WHERE doc_id = 'a'", "which is not in the catalog"),
        ("DELETE FROM documents WHERE doc_id = 'e'", "which is not in the catalog"),
        ("DELETE FROM deleted", "which is not in the catalog"),
        ("UPDATE folders SET checksum = 'f' || substr(checksum, 2)", "do not fit their digest"),
        ("UPDATE facts SET value = replace(value, '30', '31') WHERE name = 'config'", "do not fit their digest"),
        ("UPDATE sqlite_sequence SET seq = 1", "do not fit their digest"),
        ("INSERT INTO facts VALUES ('tuned', '{}')", "do not fit their digest"),
    ],
)
def test_a_changed_catalog_is_found(root: Path, statement: str, said: str) -> None:
    change(root, statement)
    assert any(said in problem for problem in problems(root))


def test_metadata_that_is_no_json(root: Path) -> None:
    change(root, "UPDATE documents SET metadata = '{' WHERE doc_id = 'a'")
    with (
        Collection.open(root, encoder=TinyEncoder()) as collection,
        pytest.raises(CollectionDamaged, match=r"catalog\.sqlite"),
    ):
        collection.search(["river"], lenses=["bm25"], filter={"year": 1999})
    try:
        found = problems(root)
    except CollectionDamaged as error:
        found = [str(error)]
    assert any("catalog.sqlite" in problem for problem in found)


@pytest.mark.parametrize("config", ["{", "[]", '{"lenses": ["bm25"], "bm25": {"k1": -1}}', '{"unknown": 1}'])
def test_a_config_that_cannot_be_used(root: Path, config: str) -> None:
    change(root, f"UPDATE facts SET value = '{config}' WHERE name = 'config'")
    assert str(root / "catalog.sqlite") in refuses(root)


def test_a_lens_that_is_not_installed(root: Path) -> None:
    change(root, """UPDATE facts SET value = '{"lenses": ["smell"]}' WHERE name = 'config'""")
    assert "lens 'smell', which is not installed" in refuses(root, UnknownFormat)


@pytest.mark.parametrize("name", ["config", "commit"])
def test_a_lost_fact(root: Path, name: str) -> None:
    change(root, f"DELETE FROM facts WHERE name = '{name}'")
    assert str(root / "catalog.sqlite") in refuses(root)
    try:
        found = problems(root)
    except CollectionDamaged as error:
        found = [str(error)]
    assert any(f"has no {name}" in problem for problem in found)


def test_a_lost_table(root: Path) -> None:
    change(root, "DROP TABLE documents")
    assert str(root / "catalog.sqlite") in refuses(root)


@pytest.mark.skipif(DEFAULT_MODEL not in MODELS, reason="the bundled model is not there")
def test_vectors_of_another_model_are_refused(folder: Path) -> None:
    model = folder / "model"
    shutil.copytree(MODELS[DEFAULT_MODEL], model)
    root = folder / "c"
    with Collection.create(root, lenses=["bm25", "dense"], model=str(model)) as collection:
        collection.add(DOCUMENTS)
        fingerprint = collection.config.model_fingerprint
    config = json.loads((model / CONFIG_FILE).read_text())
    (model / CONFIG_FILE).write_text(json.dumps(config | {"max_doc_tokens": 64}))
    with Collection.open(root) as collection:
        assert len(collection.search(["river"], lenses=["bm25"])[0]) == 2
        with pytest.raises(BadModel, match=fingerprint):
            collection.search(["river"], lenses=["dense"])
        with pytest.raises(BadModel, match=fingerprint):
            collection.search(["river"])
        with pytest.raises(BadModel, match=fingerprint):
            collection.add([Document("new", "A river that must not be encoded.")])
        collection.commit()
        assert collection.check().problems == []
        assert collection.get("new") is None


@pytest.mark.skipif(DEFAULT_MODEL not in MODELS, reason="the bundled model is not there")
def test_a_lost_model_is_named_and_words_are_still_searched(folder: Path) -> None:
    model = folder / "model"
    shutil.copytree(MODELS[DEFAULT_MODEL], model)
    with Collection.create(folder / "c", lenses=["bm25", "dense"], model=str(model)) as collection:
        collection.add(DOCUMENTS)
    shutil.rmtree(model)
    with Collection.open(folder / "c") as collection:
        assert len(collection.search(["river"], lenses=["bm25"])[0]) == 2
        assert collection.check().problems == []
        with pytest.raises(BadModel, match="model"):
            collection.search(["river"])
