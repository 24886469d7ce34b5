import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from trilens.collection import Collection
from trilens.text.document import Document

from .conftest import Trilens

HARD = [
    Document(
        "a b/ü\u2028\0𝄞", "line\u2028one\u2029\x85two\0three\r\nfour 𝄞\ufeff", "\ufeffTitle\t", {"tags": ["x", None, True]}
    ),
    Document("empty", ""),
    Document(" ", " \n ", " "),
    Document("numbers", "text", metadata={"n": [1, 1.0, -0.0, 0, 1 << 53 | 1, -(1 << 63), 1 << 80, 1e300, 5e-324, 0.1, True]}),
    Document(
        "names",
        "text",
        metadata={"metadata": {"metadata": 1}, "id": 1, "_id": "x", "text": "y", "title": None, "dumped_documents": 2},
    ),
    Document("dumped_documents", '{"dumped_documents": 3}', metadata={"": "", "\u2028": {"deep": [{"er": []}]}}),
]


def exact(document: Document) -> str:
    """All of a document, with the types of numbers and the sign of zero."""
    return repr((document.doc_id, document.text, document.title, sorted(document.metadata.items())))


@pytest.fixture
def hard(tmp_path: Path) -> Path:
    with Collection.create(tmp_path / "c", lenses=["bm25"]) as collection:
        collection.add(HARD)
    return tmp_path / "c"


def documents(path: Path) -> list[str]:
    with Collection.open(path) as collection:
        return [exact(document) for document in collection.documents()]


@pytest.mark.parametrize("name", ["d.jsonl", "d.jsonl.gz", "d.xz", "d.bz2"])
def test_a_dump_is_loaded_without_loss(trilens: Trilens, hard: Path, tmp_path: Path, name: str) -> None:
    assert trilens("dump", hard, tmp_path / name).out == f"{len(HARD)} documents in {tmp_path / name}\n"
    loaded = trilens("load", tmp_path / name, "--to", tmp_path / "copy", "--lens", "bm25", "--json")
    assert loaded.json["added"] == len(HARD)
    assert documents(tmp_path / "copy") == documents(hard) == [exact(document) for document in HARD]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["c", "copy", name])


def test_a_dump_goes_through_pipes(trilens: Trilens, hard: Path, tmp_path: Path) -> None:
    dumped = trilens("dump", hard).out
    assert trilens("load", "-", "--to", tmp_path / "copy", "--lens", "bm25", stdin=dumped).code == 0
    assert documents(tmp_path / "copy") == documents(hard)
    assert trilens("dump", tmp_path / "copy").out == dumped
    assert trilens("load", "-", "--to", hard, stdin=dumped).out.startswith(f"{len(HARD)} unchanged")


def test_lines_are_what_get_prints(trilens: Trilens, hard: Path) -> None:
    *lines, end = trilens("dump", hard).out.split("\n")[:-1]
    for document, line in zip(HARD, lines, strict=True):
        assert trilens("get", hard, document.doc_id, "--json").out == f"{line}\n"
    assert json.loads(end) == {"dumped_documents": len(HARD)}


def test_other_commands_read_the_lines_as_well(trilens: Trilens, hard: Path, tmp_path: Path) -> None:
    lines = trilens("dump", hard).out.split("\n")[:-2]
    (tmp_path / "lines.jsonl").write_text("\n".join(lines))
    assert trilens("index", tmp_path / "lines.jsonl", "--to", tmp_path / "copy", "--lens", "bm25").code == 0
    assert documents(tmp_path / "copy") == documents(hard)


def test_a_collection_of_vectors_is_dumped_and_loaded(trilens: Trilens, tmp_path: Path) -> None:
    (tmp_path / "v.jsonl").write_text('{"id": "a", "vector": {"heat": 1.5, "cold": 1}}\n{"id": "b", "vector": {"heat": 2}}\n')
    assert trilens("index", tmp_path / "v.jsonl", "--to", tmp_path / "c", "--lens", "external").code == 0
    assert trilens("dump", tmp_path / "c", tmp_path / "d.jsonl").code == 0
    assert trilens("load", tmp_path / "d.jsonl", "--to", tmp_path / "copy", "--lens", "external").code == 0
    assert documents(tmp_path / "copy") == documents(tmp_path / "c")
    assert trilens("load", tmp_path / "d.jsonl", "--to", tmp_path / "copy").out.startswith("2 unchanged")


def test_an_empty_collection_is_dumped_and_loaded(trilens: Trilens, tmp_path: Path) -> None:
    Collection.create(tmp_path / "c", lenses=["bm25"]).close()
    assert trilens("dump", tmp_path / "c", tmp_path / "d.jsonl").code == 0
    assert trilens("load", tmp_path / "d.jsonl", "--to", tmp_path / "copy", "--lens", "bm25").code == 0
    assert documents(tmp_path / "copy") == []


def test_every_cut_is_noticed_before_anything_is_loaded(trilens: Trilens, hard: Path, tmp_path: Path) -> None:
    whole = trilens("dump", hard).out.encode()
    for end in {*range(0, len(whole) - 1, 37), *(place + 1 for place, byte in enumerate(whole[:-1]) if byte == 10)}:
        (tmp_path / "cut.jsonl").write_bytes(whole[:end])
        outcome = trilens("load", tmp_path / "cut.jsonl", "--to", tmp_path / "copy", "--lens", "bm25")
        assert outcome.code == 1, end
        assert outcome.err.count("\n") == 1
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(whole)[:-20])
    assert "damaged or cut short" in trilens("load", tmp_path / "cut.jsonl.gz", "--to", tmp_path / "copy").err
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"dumped_documents": 1}\n', "has 0 documents; expected 1"),
        ('{"dumped_documents": 0}\n{"dumped_documents": 0}\n', ":2 comes after the end of the dump"),
        ('{"doc_id": "a", "text": "b"}\n', ":1 is not a document of a dump"),
        ('{"doc_id": "a", "text": "b", "title": "", "metadata": {}, "more": 1}\n', ":1 is not a document of a dump"),
        ('{"doc_id": "", "text": "b", "title": "", "metadata": {}}\n', ":1: doc_id is ''"),
        ('{"doc_id": "a", "text": 1, "title": "", "metadata": {}}\n', ":1: text of document 'a' is int"),
        ("[1]\n", ":1 is not a document of a dump"),
        ("{\n", "broken JSON"),
    ],
)
def test_what_is_no_dump_is_refused(trilens: Trilens, tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "d.jsonl").write_text(content)
    outcome = trilens("load", tmp_path / "d.jsonl", "--to", tmp_path / "copy", "--lens", "bm25")
    assert (outcome.code, message in outcome.err) == (1, True), outcome.err
    assert not (tmp_path / "copy").exists()


def test_a_file_that_cannot_be_written_is_one_line(trilens: Trilens, hard: Path, tmp_path: Path) -> None:
    for target in (tmp_path / "none" / "d.jsonl", Path("/dev/full/d.jsonl")):
        outcome = trilens("dump", hard, target)
        assert (outcome.code, outcome.err.count("\n")) == (1, 1)
        assert "cannot be written" in outcome.err


def test_a_dump_is_one_commit_and_keeps_an_older_file_until_it_is_whole(hard: Path, tmp_path: Path) -> None:
    from trilens.read.dump import dump_file, write_dump

    target = tmp_path / "d.jsonl"
    target.write_text("older")

    def interrupted(reader: Collection) -> Any:
        for number, document in enumerate(reader.documents()):
            if number == 3:
                raise KeyboardInterrupt
            yield document

    with Collection.open(hard) as reader:
        with pytest.raises(KeyboardInterrupt), dump_file(target) as stream:
            write_dump(interrupted(reader), stream, lambda count: None)
        assert target.read_text() == "older"
        dumping = reader.documents()
        first = next(dumping)
        with Collection.open(hard) as writer:
            writer.delete([document.doc_id for document in HARD])
            writer.commit()
        assert [first, *dumping] == HARD
