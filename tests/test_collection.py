"""What users may do with a collection, what they get, and what they are told when it cannot be done."""

import json
import os
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import pytest

from trilens.collection import Collection
from trilens.encode.models import bundled_models
from trilens.errors import (
    BadInput,
    BadModel,
    CollectionError,
    CollectionExists,
    CollectionMissing,
    CollectionReadOnly,
    TrilensError,
)
from trilens.store.config import DEFAULT_MODEL
from trilens.store.writer import Changes
from trilens.text.document import Document

NOBODY = 65534
DOCUMENTS = [
    Document("fox", "A red fox crosses the frozen river at night.", "Foxes", {"year": 1999}),
    Document("train", "The night train waits for the river ferry.", "Trains", {"year": 2005}),
    Document("snow", "Snow fell on the station.", metadata={"year": 2005, "tags": ["cold"]}),
]
with_model = pytest.mark.skipif(DEFAULT_MODEL not in bundled_models(), reason="the bundled model is not there")


@pytest.fixture
def collection(tmp_path: Path) -> Iterator[Collection]:
    """Three documents in one segment."""
    with Collection.create(tmp_path / "c", lenses=["bm25"]) as collection:
        collection.add(DOCUMENTS)
        collection.commit()
        yield collection


def ids(collection: Collection, query: str, k: int = 10, **options: Any) -> list[str]:
    return [hit.doc_id for hit in collection.search([query], k, **options)[0]]


def segment_names(collection: Collection) -> set[str]:
    return {path.name for path in (collection.path / "segments").iterdir()}


def refused(kind: type[TrilensError], act: Callable[[], object]) -> str:
    """The one line that says why not."""
    with pytest.raises(kind) as caught:
        act()
    message = str(caught.value)
    assert message
    assert "\n" not in message
    return message


# Making and opening


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
    "options",
    [
        {"lenses": []},
        {"lenses": ["smell"]},
        {"lenses": ["bm25", "bm25"]},
        {"lenses": "bm25"},
        {"unknown": 1},
        {"lenses": ["bm25"], "bm25": {"b": 2}},
        {"lenses": ["bm25"], "bm25": {"k1": float("nan")}},
        {"lenses": ["bm25"], "passages": {"words": 10, "overlap": 10}},
        {"lenses": ["bm25"], "passages": {"words": -1}},
    ],
)
def test_bad_options_leave_nothing_behind(tmp_path: Path, options: dict[str, Any]) -> None:
    assert "option" in refused(BadInput, lambda: Collection.create(tmp_path / "c", **options))
    assert not (tmp_path / "c").exists()


def test_an_unknown_model_leaves_nothing_behind(tmp_path: Path) -> None:
    assert "no-such-model" in refused(BadModel, lambda: Collection.create(tmp_path / "c", model="no-such-model"))
    assert not (tmp_path / "c").exists()


def test_options_are_kept(tmp_path: Path) -> None:
    options: dict[str, Any] = {"lenses": ["bm25"], "bm25": {"k1": 1.5}, "passages": {"words": 20, "overlap": 3}}
    made = Collection.create(tmp_path / "c", **options)
    assert Collection.open(tmp_path / "c").config == made.config
    assert made.config.bm25.k1 == 1.5


# Changing


def test_documents_come_back_as_they_went_in(tmp_path: Path) -> None:
    strange = [
        Document("ünï \n'\"; --", "text\0with\x01controls\r\n", "title\0too", {"a": {"b": [1, 2.5, None, True, "é😀"]}, "": 0}),
        Document("empty", ""),
        Document("x" * 1024, "\ufeff 漢字 \u200d"),
    ]
    with Collection.create(tmp_path / "c", lenses=["bm25"]) as collection:
        collection.add(strange)
    with Collection.open(tmp_path / "c") as collection:
        assert [collection.get(document.doc_id) for document in strange] == strange
        assert collection.check().problems == []


def test_add_of_a_known_id(collection: Collection) -> None:
    message = refused(BadInput, lambda: collection.add([Document("new", "x"), Document("fox", "other")]))
    assert "'fox'" in message
    assert "upsert" in message
    collection.rollback()
    assert collection.get("fox") == DOCUMENTS[0]
    assert collection.get("new") is None


def test_add_of_the_same_id_twice(collection: Collection) -> None:
    refused(BadInput, lambda: collection.add([Document("new", "x"), Document("new", "y")]))


@pytest.mark.parametrize("wrong", ["text", {"doc_id": "x", "text": "y"}, None, ("x", "y")])
def test_only_documents_can_be_added(collection: Collection, wrong: Any) -> None:
    assert "Document" in refused(BadInput, lambda: collection.add([wrong]))
    assert "Document" in refused(BadInput, lambda: collection.upsert([wrong]))


def test_changes_are_counted_and_seen_after_commit_only(collection: Collection) -> None:
    collection.upsert([Document("fox", "Now about a badger."), DOCUMENTS[1], Document("new", "A brand new badger.")])
    assert collection.delete(["snow", "unknown"]) == ["unknown"]
    assert ids(collection, "badger") == []
    assert len(collection) == 3
    assert collection.commit() == Changes(added=1, replaced=1, unchanged=1, deleted=1)
    assert set(ids(collection, "badger")) == {"fox", "new"}
    assert ids(collection, "snow") == []
    assert len(collection) == 3


def test_commit_without_changes_does_nothing(collection: Collection) -> None:
    before = collection.info()
    assert collection.commit() == Changes()
    assert collection.info() == before


def test_an_unchanged_upsert_costs_nothing(collection: Collection) -> None:
    before, names = collection.info(), segment_names(collection)
    files = {path: path.stat().st_mtime_ns for path in (collection.path / "segments").rglob("*")}
    collection.upsert(DOCUMENTS)
    assert collection.commit() == Changes(unchanged=3)
    assert segment_names(collection) == names
    assert {path: path.stat().st_mtime_ns for path in (collection.path / "segments").rglob("*")} == files
    assert collection.info() == before


def test_an_upsert_of_metadata_makes_no_segment(collection: Collection) -> None:
    names = segment_names(collection)
    changed = Document("fox", DOCUMENTS[0].text, DOCUMENTS[0].title, {"year": 2020})
    collection.upsert([changed])
    assert collection.commit() == Changes(replaced=1)
    assert segment_names(collection) == names
    assert collection.get("fox") == changed
    assert ids(collection, "river", where={"year": 2020}) == ["fox"]
    assert ids(collection, "river", where={"year": 1999}) == []
    assert collection.check().problems == []


def test_where_the_title_ends_is_a_change(collection: Collection) -> None:
    for title, text in (("a", "b\0c"), ("a\0b", "c"), ("", "a\0b\0c")):
        collection.upsert([Document("x", text, title)])
        assert collection.commit().unchanged == 0
        assert collection.get("x") == Document("x", text, title)


def test_changing_a_document_twice_in_one_commit(collection: Collection) -> None:
    collection.upsert([Document("fox", "first badger")])
    collection.upsert([Document("fox", "second otter", metadata={"a": 1})])
    collection.upsert([Document("fox", "second otter", metadata={"a": 2})])
    collection.add([Document("gone", "never seen badger")])
    collection.delete(["gone", "train"])
    collection.add([Document("train", "back as an otter")])
    collection.commit()
    assert len(collection) == 3
    assert set(ids(collection, "otter")) == {"fox", "train"}
    assert ids(collection, "badger") == []
    assert ids(collection, "otter", where={"a": 2}) == ["fox"]
    assert collection.check().problems == []


def test_delete(collection: Collection) -> None:
    assert collection.delete(["fox", "fox", "nobody"]) == ["fox", "nobody"]
    assert collection.delete([]) == []
    collection.commit()
    assert collection.get("fox") is None
    assert "fox" not in ids(collection, "river")
    assert "list" in refused(BadInput, lambda: collection.delete("train"))


def test_delete_everything(collection: Collection) -> None:
    collection.delete([document.doc_id for document in DOCUMENTS])
    collection.commit()
    assert len(collection) == 0
    assert ids(collection, "river") == []
    assert ids(collection, "river", where={"year": 1999}) == []
    collection.optimize()
    assert segment_names(collection) == set()
    collection.add(DOCUMENTS)
    collection.commit()
    assert len(ids(collection, "river")) == 2


@pytest.mark.parametrize("wrong", ["\ud800", "a\udfffb"])
def test_lone_surrogates_are_refused(collection: Collection, wrong: str) -> None:
    makers: list[Callable[[], object]] = [
        lambda: Document(wrong, "text"),
        lambda: Document("x", wrong),
        lambda: Document("x", "text", wrong),
        lambda: Document("x", "text", metadata={"a": wrong}),
        lambda: Document("x", "text", metadata={wrong: 1}),
        lambda: collection.search([wrong]),
        lambda: collection.get(wrong),
        lambda: collection.delete([wrong]),
    ]
    for make in makers:
        refused(BadInput, make)


@pytest.mark.parametrize("wrong", [5, None, b"fox", 5.0])
def test_ids_are_strings(collection: Collection, wrong: Any) -> None:
    collection.upsert([Document("5", "five"), Document("5.0", "five")])
    collection.commit()
    refused(BadInput, lambda: collection.get(wrong))
    refused(BadInput, lambda: collection.delete([wrong]))
    collection.rollback()
    assert len(collection) == 5


def test_metadata_nested_beyond_reason_is_refused() -> None:
    metadata: dict[str, Any] = {}
    for _ in range(100_000):
        metadata = {"a": metadata}
    refused(BadInput, lambda: Document("x", "text", metadata=metadata))


def test_rollback(collection: Collection) -> None:
    names = segment_names(collection)
    collection.upsert([Document("fox", "changed"), Document("new", "new")])
    collection.delete(["train"])
    collection.rollback()
    collection.rollback()
    assert collection.commit() == Changes()
    assert segment_names(collection) == names
    assert [collection.get(document.doc_id) for document in DOCUMENTS] == DOCUMENTS
    with Collection.open(collection.path) as other:
        assert len(other) == 3
        other.delete(["fox"])


def test_the_context_manager_commits(tmp_path: Path) -> None:
    with Collection.create(tmp_path / "c", lenses=["bm25"]) as collection:
        collection.add(DOCUMENTS)
    assert len(Collection.open(tmp_path / "c")) == 3


def test_the_context_manager_rolls_back_after_an_error(tmp_path: Path) -> None:
    Collection.create(tmp_path / "c", lenses=["bm25"]).close()
    with pytest.raises(ZeroDivisionError), Collection.open(tmp_path / "c") as collection:
        collection.add(DOCUMENTS)
        len(DOCUMENTS) // 0
    assert len(Collection.open(tmp_path / "c")) == 0


def test_close_forgets_changes_and_may_be_repeated(collection: Collection) -> None:
    collection.add([Document("new", "text")])
    collection.close()
    collection.close()
    assert len(collection) == 3


def test_optimize(collection: Collection) -> None:
    for number in range(4):
        collection.add([Document(f"n{number}", f"river number {number}")])
        collection.commit()
    collection.delete(["fox", "n1"])
    before = {hit.doc_id: hit.score for hit in collection.search(["river"])[0]} | {"fox": 0, "n1": 0}
    assert collection.info()["segments"] == 5
    collection.optimize()
    info = collection.info()
    assert (info["segments"], info["documents"], info["deleted_passages"]) == (1, 5, 0)
    assert {*ids(collection, "river"), "fox", "n1"} == before.keys()
    names = segment_names(collection)
    collection.optimize()
    assert segment_names(collection) == names


def test_ingest_continues_where_it_was_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trilens.collection.SECONDS_BETWEEN_COMMITS", 0.0)
    stream = [Document(f"d{number}", f"river number {number}") for number in range(10)]

    def interrupted() -> Iterable[Document]:
        yield from stream[:6]
        raise KeyboardInterrupt

    with Collection.create(tmp_path / "c", lenses=["bm25"]) as collection:
        with pytest.raises(KeyboardInterrupt):
            collection.ingest(interrupted())
        collection.close()
        assert len(collection) == 6
        assert collection.ingest(stream) == Changes(added=4, unchanged=6)
        assert len(collection) == 10
        assert collection.check().problems == []


# Searching


def test_hits(collection: Collection) -> None:
    [hits] = collection.search(["river night"])
    assert [hit.rank for hit in hits] == [1, 2]
    assert hits[0].score >= hits[1].score > 0
    for hit in hits:
        assert hit.document == collection.get(hit.doc_id)
        assert hit.passage == hit.document.text
        assert hit.by_lens["bm25"].score == hit.score
        assert hit.by_lens["bm25"].rank == hit.rank


def test_the_title_is_searched(collection: Collection) -> None:
    assert ids(collection, "foxes") == ["fox"]
    collection.upsert([Document("untitled", "nothing", "A zebra")])
    collection.commit()
    assert ids(collection, "zebra") == ["untitled"]


def test_a_batch_equals_its_queries_one_by_one(collection: Collection) -> None:
    queries = ["river", "snow station", "river", "the", "nothing like it"]
    assert collection.search(queries) == [collection.search([query])[0] for query in queries]
    assert collection.search([]) == []


@pytest.mark.parametrize("k", [0, -1, 10**9])
def test_k_out_of_range(collection: Collection, k: int) -> None:
    assert f"k is {k}" in refused(BadInput, lambda: collection.search(["river"], k))


def test_k_beyond_the_collection(collection: Collection) -> None:
    assert collection.search(["river"], 1_000_000) == collection.search(["river"], 2)
    assert len(ids(collection, "river", 1)) == 1


@pytest.mark.parametrize("query", ["", " ", "\n\t", "\u3000"])
def test_an_empty_query(collection: Collection, query: str) -> None:
    assert "query 2 is empty" in refused(BadInput, lambda: collection.search(["river", query]))


@pytest.mark.parametrize("wrong", ["river", [5], [None], ["river", b"river"]])
def test_queries_are_a_list_of_strings(collection: Collection, wrong: Any) -> None:
    refused(BadInput, lambda: collection.search(wrong))


@pytest.mark.parametrize("lenses", [[], ["smell"], "bm25", ["bm25", "bm25"], ["dense"]])
def test_unknown_lenses(collection: Collection, lenses: Any) -> None:
    refused(BadInput, lambda: collection.search(["river"], lenses=lenses))


def test_bad_requests_are_refused_by_an_empty_collection_too(tmp_path: Path) -> None:
    with Collection.create(tmp_path / "c", lenses=["bm25"]) as collection:
        refused(BadInput, lambda: collection.search(["river"], 0))
        refused(BadInput, lambda: collection.search(["river"], lenses=["dense"]))
        refused(BadInput, lambda: collection.search(["river"], where={"a": {"$what": 1}}))


@pytest.mark.parametrize("query", ["the", "and of the", "!?", "zzzunknown"])
def test_a_query_that_matches_nothing(collection: Collection, query: str) -> None:
    assert collection.search([query, "river"])[0] == []
    assert len(collection.search([query, "river"])[1]) == 2


def test_a_document_without_words(collection: Collection) -> None:
    collection.add([Document("empty", ""), Document("marks", "?!…"), Document("stop", "the of and")])
    collection.commit()
    assert len(collection) == 6
    assert set(ids(collection, "river the of and ?!")) == {"fox", "train"}
    assert collection.get("empty") == Document("empty", "")
    collection.optimize()
    assert collection.check().problems == []


def test_only_documents_without_words(tmp_path: Path) -> None:
    with Collection.create(tmp_path / "c", lenses=["bm25"]) as collection:
        collection.add([Document("empty", ""), Document("stop", "the")])
        collection.commit()
        assert collection.search(["the", "river"]) == [[], []]
        collection.optimize()
        assert collection.check().problems == []


def test_a_search_leaves_no_trace(collection: Collection) -> None:
    before = collection.search(["river", "snow"], 5)
    collection.search(["river"], 1, where={"year": 2005}, exact=True)
    assert collection.search(["river", "snow"], 5) == before


# Passages


def long_text(words: int, marked: dict[int, str]) -> str:
    """Sentences of ten words, some words replaced."""
    plain = [marked.get(number, f"word{number % 7}") for number in range(words)]
    return " ".join(word + ("." if number % 10 == 9 else "") for number, word in enumerate(plain))


def test_one_hit_per_document_with_its_best_passage(tmp_path: Path) -> None:
    text = long_text(200, {15: "zebra", 150: "zebra", 152: "zebra", 154: "zebra"})
    with Collection.create(tmp_path / "c", lenses=["bm25"], passages={"words": 20, "overlap": 5}) as collection:
        collection.add([Document("long", text, "Long"), Document("short", "One zebra and one word1.")])
        collection.commit()
        assert collection.info()["passages"] > 10
        [hits] = collection.search(["zebra"])
        assert sorted(hit.doc_id for hit in hits) == ["long", "short"]
        [best] = [hit for hit in hits if hit.doc_id == "long"]
        assert best.passage.count("zebra") == 3
        assert best.passage == text[best.start : best.end]
        assert len(best.passage.split()) <= 20
        assert "word1" in best.passage


def test_a_document_of_many_passages_does_not_crowd_out_the_others(tmp_path: Path) -> None:
    crowd = Document("crowd", long_text(2000, dict.fromkeys(range(0, 2000, 4), "zebra")))
    others = [Document(f"d{number:02}", f"zebra {'plain ' * number}") for number in range(12)]
    with Collection.create(tmp_path / "c", lenses=["bm25"], passages={"words": 20, "overlap": 5}) as collection:
        collection.add([crowd, *others])
        collection.commit()
        everything = ids(collection, "zebra", 100)
        assert sorted(everything) == sorted(["crowd", *(document.doc_id for document in others)])
        for k in range(1, 14):
            assert ids(collection, "zebra", k) == everything[:k]


def test_a_document_of_fifty_megabytes(tmp_path: Path) -> None:
    piece = long_text(10_000, {}).replace("word", "quitealongwordindeed" * 3)
    text = "\n\n".join([piece] * (50_000_000 // len(piece) + 1)) + " The needle."
    assert len(text) > 50_000_000
    with Collection.create(tmp_path / "c", lenses=["bm25"]) as collection:
        collection.add([Document("big", text), Document("small", "A needle and a thread.")])
        collection.commit()
        [hits] = collection.search(["needle"])
        assert [hit.doc_id for hit in hits] == ["small", "big"]
        assert hits[1].passage.endswith("The needle.")
        assert len(hits[1].passage) < 10_000
        assert collection.get("big") == Document("big", text)
        collection.delete(["big"])
        collection.optimize()
        assert ids(collection, "needle") == ["small"]


# Several lenses


@with_model
def test_two_lenses(tmp_path: Path) -> None:
    with Collection.create(tmp_path / "c") as collection:
        collection.add([*DOCUMENTS, Document("empty", ""), Document("long", "A boat on the water. " * 400)])
        assert collection.commit() == Changes(added=5)
        assert collection.lenses == ["bm25", "dense"]
        assert ids(collection, "animal in winter", 1, lenses=["dense"]) == ["fox"]
        assert ids(collection, "animal in winter", lenses=["bm25"]) == []
        assert sorted(ids(collection, "river", lenses=["dense"])) == ["empty", "fox", "long", "snow", "train"]
        [hits] = collection.search(["river at night"])
        assert [hit.rank for hit in hits] == [1, 2, 3, 4, 5]
        for hit in hits:
            assert hit.score == pytest.approx(sum(1 / (60 + lens.rank) for lens in hit.by_lens.values() if lens.rank))
            assert "dense" in hit.by_lens
        assert set(hits[0].by_lens) == {"bm25", "dense"}
        for name in collection.lenses:
            alone = {hit.doc_id: hit.by_lens[name] for hit in collection.search(["river at night"], lenses=[name])[0]}
            fused = {hit.doc_id: hit.by_lens[name] for hit in hits}
            assert {one: (seen.score, seen.rank) for one, seen in alone.items()} == {
                one: (seen.score, seen.rank) for one, seen in fused.items() if seen.rank
            }
        assert ids(collection, "river", where={"year": {"$exists": True}}) != ids(collection, "river")
        assert sorted(ids(collection, "river", where={"year": 2005})) == ["snow", "train"]
        assert collection.check().problems == []


@with_model
def test_a_model_folder_is_found_from_any_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model").symlink_to(bundled_models()[DEFAULT_MODEL])
    monkeypatch.chdir(tmp_path)
    with Collection.create("c", lenses=["dense"], model="model") as collection:
        collection.add(DOCUMENTS)
    monkeypatch.chdir("/")
    with Collection.open(tmp_path / "c") as collection:
        assert ids(collection, "animal in winter", 1) == ["fox"]


# Folders that cannot be written


def as_nobody(act: Callable[[], object]) -> Any:
    """What `act` returns in a process that may not write here, or the name and message of its error."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        try:
            said: object = act()
        except Exception as error:  # noqa: BLE001  the test wants to see every error
            said = [type(error).__name__, str(error)]
        os.write(writing, json.dumps(said).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return json.loads(answer)


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that everybody may enter and nobody but us may write; pytest's own are private."""
    with TemporaryDirectory() as folder:
        path = Path(folder)
        path.chmod(0o755)
        yield path
        for place in [path, *path.rglob("*")]:
            place.chmod(0o755)


def freeze(root: Path) -> None:
    """Take away every permission to write."""
    for path in [root, *root.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)


def read_everything(root: Path) -> list[object]:
    """Every kind of reading; what comes back can be written as JSON."""
    with Collection.open(root) as collection:
        document = collection.get("train")
        return [
            len(collection),
            ids(collection, "river"),
            ids(collection, "river", where={"year": 2005}),
            document.text if document else "",
            collection.check().problems,
            collection.refresh(),
            collection.info()["documents"],
        ]


def test_a_read_only_folder_can_be_read(public: Path) -> None:
    root = public / "c"
    with Collection.create(root, lenses=["bm25"]) as collection:
        collection.add(DOCUMENTS)
    expected = read_everything(root)
    freeze(root)
    assert as_nobody(lambda: read_everything(root)) == expected

    def write() -> None:
        with Collection.open(root) as collection:
            collection.add([Document("new", "text")])

    kind, message = as_nobody(write)
    assert kind == CollectionReadOnly.__name__
    assert str(root) in message
    assert "\n" not in message
    kind, message = as_nobody(lambda: Collection.create(root / "inside", lenses=["bm25"]))
    assert kind == CollectionReadOnly.__name__
    assert sorted(path.name for path in root.iterdir()) == ["catalog.sqlite", "segments", "writer.lock"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can write what others can only read")
def test_others_may_read_while_the_owner_writes(public: Path) -> None:
    root = public / "c"
    with Collection.create(root, lenses=["bm25"]) as collection:
        collection.add(DOCUMENTS[:1])
        collection.commit()
        assert as_nobody(lambda: read_everything(root)) == read_everything(root)
        collection.add(DOCUMENTS[1:])
        collection.commit()
        assert len(collection) == 3  # we hold a snapshot, so the commit is not yet in the main file
        assert as_nobody(lambda: read_everything(root)) == read_everything(root)
        collection.optimize()
        assert as_nobody(lambda: read_everything(root)) == read_everything(root)
    assert as_nobody(lambda: read_everything(root)) == read_everything(root)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can write what others can only read")
def test_a_reader_that_cannot_be_told_of_a_change_is_refused_and_never_sees_a_mixture(public: Path) -> None:
    root = public / "c"
    with Collection.create(root, lenses=["bm25"]) as collection:
        collection.add(DOCUMENTS)
    opened, changed = os.pipe(), os.pipe()

    def read() -> list[object]:
        with Collection.open(root) as collection:
            found: list[object] = [ids(collection, "river")]
            os.write(opened[1], b"x")
            os.read(changed[0], 1)
            with pytest.raises(CollectionReadOnly, match=r"changed by another process.*open it again"):
                collection.get("train")
            collection.refresh()
            return [*found, ids(collection, "river")]

    def change() -> None:
        os.read(opened[0], 1)
        with Collection.open(root) as collection:
            collection.delete([document.doc_id for document in DOCUMENTS])
        os.write(changed[1], b"x")

    thread = Thread(target=change)
    thread.start()
    before, after = as_nobody(read)
    thread.join()
    assert before and not after


# A full disk


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)], capture_output=True, text=True, check=False
    )
    if mount.returncode:
        pytest.skip(f"cannot mount a small file system: {mount.stderr.strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def fill(disk: Path, free_bytes: int) -> None:
    """Leave only this much space."""
    status = os.statvfs(disk)
    (disk / "filler").write_bytes(b"x" * max(0, status.f_bavail * status.f_bsize - free_bytes))


def test_a_full_disk_changes_nothing(small_disk: Path) -> None:
    root = small_disk / "c"
    old = [Document(f"d{number}", f"river number {number}") for number in range(40)]
    many = [Document(f"n{i}", " ".join(f"w{i}x{j}" for j in range(100)) + " river") for i in range(100)]
    with Collection.create(root, lenses=["bm25"]) as collection:
        collection.add(old)

    def add(collection: Collection) -> None:
        collection.add(many)
        collection.commit()

    def replace(collection: Collection) -> None:
        collection.upsert([Document(document.doc_id, "a lake " * 50) for document in old[:30]])
        collection.optimize()

    outcomes = set()
    for free_kib in (0, 4, 16, 28, 32, 36, 48, 64, 80, 96, 128, 160, 192, 256, 320, 400, 512, 1024):
        for change in (add, replace):
            collection = Collection.open(root)
            fill(small_disk, free_kib << 10)
            try:
                change(collection)
                changed = True
            except CollectionReadOnly as error:
                assert str(error).startswith("no space left on the disk")
                assert "\n" not in str(error)
                changed = False
            outcomes.add((change, changed))
            (small_disk / "filler").unlink()
            # The same object goes on as if nothing had been tried.
            collection.rollback()
            assert collection.check().problems == []
            assert len(collection) == len(old) + changed * (change is add) * len(many)
            assert len(ids(collection, "lake", 200)) == changed * (change is replace) * 30
            assert segment_names(collection) == {segment.record.id for segment in collection.snapshot.segments}
            collection.delete([document.doc_id for document in many])
            collection.upsert(old)
            collection.optimize()
            assert [collection.get(document.doc_id) for document in old] == old
            assert len(collection) == len(old)
            collection.close()
    assert outcomes == {(add, True), (add, False), (replace, True), (replace, False)}


def test_a_full_disk_is_no_damage_for_readers(small_disk: Path) -> None:
    root = small_disk / "c"
    with Collection.create(root, lenses=["bm25"]) as collection:
        collection.add(DOCUMENTS)
    fill(small_disk, 8 << 10)
    assert "no space" in refused(CollectionReadOnly, lambda: Collection.open(root))
    (small_disk / "filler").unlink()
    fill(small_disk, 64 << 10)
    with Collection.open(root) as collection:
        assert len(ids(collection, "river")) == 2


def test_a_collection_weighs_terms_as_its_model_is_meant_to(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"weighing is .'own_query': 9\.0.; expected none: a collection weighs terms"):
        Collection.create(tmp_path / "c", lenses=["sparse"], weighing={"own_query": 9.0})
    assert not (tmp_path / "c" / "catalog.sqlite").exists()
