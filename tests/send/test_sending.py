"""Sending, by the engine that needs no other package: files of `_bulk`, applied to an index that is a dict."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.conftest import Trilens
from tests.store.tiny import LENSES, TinyEncoder
from trilens import Collection, Document
from trilens.errors import BadInput, ServiceFailed
from trilens.represent import Dense, Multi, Sparse
from trilens.send import bulk, passages
from trilens.send.sending import SendReport, send

from .conftest import DOCUMENTS, LONG
from .test_queries import all_passages

VECTORS = [lens for lens in LENSES if lens != "bm25"]
Index = dict[str, dict[str, Any]]


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("docs-*.ndjson"))


def applied(folder: Path) -> Index:
    """The index that all files in order make, as `_bulk` reads them: an action, then a source unless it is a deletion."""
    index: Index = {}
    for path in files(folder):
        content = path.read_bytes()
        assert content.endswith(b"\n")
        lines = iter(json.loads(line) for line in content.decode().removesuffix("\n").split("\n"))
        for action in lines:
            ((kind, target),) = action.items()
            assert target["_index"] == "docs" and set(target) == {"_index", "_id"}
            if kind == "index":
                index[target["_id"]] = next(lines)
            else:
                assert kind == "delete" and index.pop(target["_id"])
    return index


def sent(collection: Collection, folder: Path, engine: str = "elasticsearch", **options: Any) -> SendReport:
    return send(collection, f"{engine}+file:{folder}", **options)


def test_the_files_hold_all_of_a_passage(collection: Collection, tmp_path: Path) -> None:
    report = sent(collection, tmp_path / "b")
    index, expected = applied(tmp_path / "b"), all_passages(collection)
    assert (report.written, report.lenses) == (len(expected), tuple(VECTORS))
    assert list(index) == [passage.id for passage in expected]
    by_id = {document.doc_id: document for document in collection.documents()}
    for passage in expected:
        source, document = index[passage.id], by_id[passage.document.doc_id]
        assert source["text"] == document.text[source["span_start"] : source["span_end"]] == passage.text
        assert (source["title"], source["metadata"]) == (document.title, document.metadata)
        for lens, vector in passage.vectors.items():
            match vector:
                case Dense():
                    assert np.array(source[lens], np.float32).tolist() == vector.vectors[0].tolist()
                case Sparse():
                    weights = {term: np.float32(weight) for term, weight in source.get(lens, {}).items()}
                    assert weights == dict(zip(map(str, vector.terms.tolist()), vector.weights, strict=True))
                case Multi():
                    assert np.array(source.get(lens, []), np.float32).tolist() == vector.vectors.tolist()
    numbers = [source["passage"] for source in index.values() if source["doc_id"] == "long"]
    assert numbers == list(range(len(numbers))) and len(numbers) > 1
    assert "sparse" not in next(source for source in index.values() if source["doc_id"] == "blank")


def test_sent_again(collection: Collection, tmp_path: Path) -> None:
    """Twice is once. Changes of text and metadata are sent, and deleted documents disappear."""
    seen: list[float] = []
    first = sent(collection, tmp_path / "b", report=seen.append)
    assert sum(seen) == first.written == collection.snapshot.live_rows
    before = files(tmp_path / "b")
    assert (sent(collection, tmp_path / "b").written, files(tmp_path / "b")) == (0, before)
    collection.upsert(
        [Document("long", "Rivers."), Document("fox", DOCUMENTS[0].text, "Foxes", {"year": 2000}), Document("b", "x")]
    )
    collection.delete(["blank"])
    collection.commit()
    gone = sum(source["doc_id"] == "long" for source in applied(tmp_path / "b").values()) - 1
    report = sent(collection, tmp_path / "b")
    assert (report.written, report.unchanged, report.deleted) == (3, first.written - 3 - gone, 1 + gone)
    assert files(tmp_path / "b")[: len(before)] == before
    sent(collection, tmp_path / "fresh")
    assert applied(tmp_path / "b") == applied(tmp_path / "fresh")
    collection.optimize()
    assert sent(collection, tmp_path / "b").unchanged == collection.snapshot.live_rows  # the same in one segment
    assert [path.name for path in (tmp_path / "b").glob("*.part")] == []


def test_a_request_is_limited(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    every = all_passages(collection)
    assert [len(piece) for piece in passages.requests(every)] == [len(every)]
    monkeypatch.setattr(passages, "MOST_PASSAGES", 2)
    assert {len(piece) for piece in passages.requests(every)} <= {1, 2}
    monkeypatch.setattr(passages, "MOST_PASSAGES", 100)
    monkeypatch.setattr(passages, "MOST_NUMBERS", every[0].numbers)
    pieces = list(passages.requests(every))
    assert [passage for piece in pieces for passage in piece] == every
    assert all(len(piece) == 1 or sum(passage.numbers for passage in piece) <= every[0].numbers for piece in pieces)
    assert list(passages.requests([])) == []


def test_passages_do_not_depend_on_how_many_are_read_at_once(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [(passage.id, passage.number, passage.digest) for passage in all_passages(collection)]
    for rows in (1, 2, 3):
        monkeypatch.setattr(passages, "ROWS_AT_ONCE", rows)
        assert [(passage.id, passage.number, passage.digest) for passage in all_passages(collection)] == expected
        assert list(passages.passage_ids(collection.snapshot)) == [passage_id for passage_id, _, _ in expected]
    assert len({passage_id for passage_id, _, _ in expected}) == len({digest for _, _, digest in expected}) == len(expected)


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.store.tiny import TinyEncoder
from trilens import Collection
from trilens.send import bulk, passages, sending

path, folder, most = sys.argv[1], sys.argv[2], int(sys.argv[3])
passages.MOST_PASSAGES, bulk.FILE_BYTES = 1, 1
done = 0

def report(count):
    global done
    done += count
    if done >= most:
        os.kill(os.getpid(), signal.SIGKILL)

collection = Collection.open(path, encoder=TinyEncoder())
sending.send(collection, f"opensearch+file:{folder}", lenses=["dense", "tokens"], report=report)
"""


def test_killed_halfway(collection: Collection, tmp_path: Path) -> None:
    """A process that is killed after some passages leaves whole files; the next run sends the rest."""
    collection.close()
    folder = tmp_path / "b"
    for done in (1, 3):
        arguments = [sys.executable, "-c", KILLED, str(collection.path), str(folder), str(done)]
        killed = subprocess.run(arguments, env=dict(os.environ), capture_output=True, text=True, check=False)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert len(applied(folder)) == done
    (folder / "docs-000009.ndjson.part").write_text('{"index": {"_ind')  # as if it had been killed within a line
    with Collection.open(collection.path, encoder=TinyEncoder()) as opened:
        report = sent(opened, folder, "opensearch", lenses=["dense", "tokens"])
        assert (report.unchanged, report.written) == (3, opened.snapshot.live_rows - 3)
        sent(opened, tmp_path / "fresh", "opensearch", lenses=["dense", "tokens"])
    assert applied(folder) == applied(tmp_path / "fresh")


# What the documentation of both engines shows for these fields.
ELASTIC = {
    "dense": {"type": "dense_vector", "dims": 32, "index": True, "similarity": "max_inner_product"},
    "sparse": {"type": "sparse_vector"},
    "multi": {"type": "rank_vectors", "dims": 32},
    "metadata": {"type": "flattened", "depth_limit": 40},
}
OPEN = {
    "dense": {
        "type": "knn_vector",
        "dimension": 32,
        "method": {"name": "hnsw", "space_type": "innerproduct", "engine": "faiss"},
    },
    "sparse": {"type": "rank_features"},
    "metadata": {"type": "flat_object"},
}


@pytest.mark.parametrize("engine, fields", [("elasticsearch", ELASTIC), ("opensearch", OPEN)])
def test_the_index_is_described(collection: Collection, tmp_path: Path, engine: str, fields: dict[str, Any]) -> None:
    sent(collection, tmp_path, engine, lenses=[lens for lens in fields if lens != "metadata"])
    body = json.loads((tmp_path / "docs.index.json").read_text())
    properties = body["mappings"]["properties"]
    assert {name: properties[name] for name in fields} == fields
    assert body["mappings"]["dynamic"] == "strict"
    assert body.get("settings") == ({"index": {"knn": True}} if engine == "opensearch" else None)
    for source in applied(tmp_path).values():
        assert set(source) <= set(properties)  # strict: nothing else is accepted
        assert all(weight > 0 for weight in source.get("sparse", {}).values())  # both refuse 0 and less
        assert not any("." in term for term in source.get("sparse", {}))


def test_a_target_of_another_form(collection: Collection, tmp_path: Path) -> None:
    sent(collection, tmp_path / "b", lenses=["dense"])
    before = {path: path.read_bytes() for path in (tmp_path / "b").iterdir()}
    with pytest.raises(
        BadInput, match=r"^docs at elasticsearch\+file:.* has nothing as sparse; expected .*: send to another --name"
    ):
        sent(collection, tmp_path / "b", lenses=["dense", "sparse"])
    with Collection.create(tmp_path / "other.trilens", encoder=TinyEncoder(), lenses=["dense"]) as other:
        other.add([Document("z", LONG)])
        other.commit()
        with pytest.raises(BadInput, match=r"holds \d+ passages, none of them of .*other\.trilens; send to another --name"):
            sent(other, tmp_path / "b", name="docs")
        other.delete(["z"])
        other.commit()
        with pytest.raises(BadInput, match="has no documents; nothing was sent"):
            sent(other, tmp_path / "b", name="docs")
    assert {path: path.read_bytes() for path in (tmp_path / "b").iterdir()} == before


def test_what_cannot_be_sent(collection: Collection, tmp_path: Path) -> None:
    for lenses, said in (
        (["x"], r"^there is no lens 'x' in .*; expected some of bm25, dense"),
        (["bm25"], "^lens bm25 has no vectors; expected lenses with vectors"),
        (
            ["multi", "dense"],
            r"^OpenSearch cannot hold lens multi, whose vectors are token vectors; send the others with --lens dense$",
        ),
        (["multi"], r"whose vectors are token vectors; choose another engine$"),
    ):
        with pytest.raises(BadInput, match=said):
            sent(collection, tmp_path / "b", "opensearch", lenses=lenses)
    with pytest.raises(BadInput, match=r"^vectors of 16 bits are not available for Elasticsearch"):
        sent(collection, tmp_path / "b", half=True)
    assert not (tmp_path / "b").exists()
    with Collection.create(tmp_path / "words", lenses=["bm25"]) as words:
        words.add([Document("a", "text")])
        words.commit()
        with pytest.raises(BadInput, match=r"no lens of .* has vectors: they are bm25"):
            sent(words, tmp_path / "b")
    with Collection.create(tmp_path / "blank", encoder=TinyEncoder(), lenses=["multi"]) as blank:
        blank.add([Document("a", " ")])
        blank.commit()
        with pytest.raises(BadInput, match="lens multi has no vectors: no passage has a token"):
            sent(blank, tmp_path / "b")


def test_a_folder_that_cannot_be_written(collection: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ServiceFailed, match=r"^elasticsearch\+file:.*file failed \(.*\); correct that and send again"):
        sent(collection, tmp_path / "file", lenses=["dense"])

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("trilens.send.bulk.os.fsync", full)
    with pytest.raises(ServiceFailed, match=r"No space left on device\); correct that and send again, which continues$"):
        sent(collection, tmp_path / "b", lenses=["dense"])
    monkeypatch.undo()
    assert applied(tmp_path / "b") == {} and not list((tmp_path / "b").glob("*.part"))
    assert sent(collection, tmp_path / "b", lenses=["dense"]).written == collection.snapshot.live_rows


@pytest.mark.parametrize("damage", [b"\xff\n", b'{"index": {}}\n', b'{"create": {"_index": "docs"}}\n{}\n'])
def test_a_file_that_was_changed(collection: Collection, tmp_path: Path, damage: bytes) -> None:
    sent(collection, tmp_path / "b")
    (path,) = files(tmp_path / "b")
    for content in (path.read_bytes() + damage, path.read_bytes()[:-2]):
        (tmp_path / "b" / path.name).write_bytes(content)
        with pytest.raises((BadInput, ServiceFailed), match=r"is not as it was written|codec can't decode"):
            sent(collection, tmp_path / "b")


def test_the_command(collection: Collection, trilens: Trilens, tmp_path: Path) -> None:
    collection.close()
    with Collection.create(tmp_path / "my files.trilens", lenses=["external"], passages={"words": 0}) as weighted:
        weighted.add([Document("a", json.dumps({"heat": 1.5, "fin": 2.0})), Document("b", json.dumps({"heat": 0.5}))])
    to = f"opensearch+file:{tmp_path / 'b'}"
    outcome = trilens("send", tmp_path / "my files.trilens", "--to", to)
    assert outcome.out == f"my_files at {to}: 2 passages written, 0 deleted, 0 unchanged; vectors of external\n"
    again = trilens("send", tmp_path / "my files.trilens", "--to", to, "--json")
    assert again.json == {"address": to, "name": "my_files", "lenses": ["external"], "written": 0, "unchanged": 2, "deleted": 0}
    refused = trilens("send", tmp_path / "my files.trilens", "--to", "mysql://localhost")
    assert refused.code == 1 and refused.err.startswith("trilens: --to is 'mysql://localhost'; expected an address that begins")
    assert trilens("send", tmp_path / "none", "--to", to).code == 1
    assert bulk.FILE_BYTES > 1_000_000
