"""A process that makes collections with every lens, compiles everything once, and then forks a reader for each damage.

Run as `python -m tests.store.flips FOLDER`. It prints the files of the collections; each line of JSON on stdin is an order,
`[collection, file, damage]`, and is answered by a line of JSON, `[outcome, detail]`. A reader opens the damaged collection,
searches with every lens and explains.
"""

import json
import os
import shutil
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from trilens.collection import Collection
from trilens.errors import TrilensError
from trilens.store.check import check_collection
from trilens.text.document import Document
from trilens.text.vectors import write_vector

from .tiny import LENSES, TinyEncoder

SECONDS_TO_LIVE = 60
SAME, REFUSED, FOUND = "same", "refused", "found by check"  # outcomes that are fine
FAULTS = RAW, MISSED, DIED = "raw exception", "missed by check", "died by signal"
HARMLESS_NAMES = ("catalog.sqlite-shm",)  # SQLite makes it anew from the write-ahead log
Answers = list[Any]

PARAMS: list[dict[str, Any]] = [
    {"multi": {"method": "xtr", "nth": 3}},
    {"multi": {"method": "xtr", "candidates": 10}},
    {"multi": {"probes": 1, "reach": 1, "candidates": 5}},
    {"sparse": {"method": "exact"}},
    {"sparse": {"terms": 1, "candidates": 20}},
]


def words(number: int, count: int) -> str:
    """A text of frequent and rare words."""
    return " ".join(f"w{(number * 7 + i * i) % (11 if i % 3 else 150)}" for i in range(count))


def open_all(root: Path) -> Collection:
    return Collection.open(root, encoder=TinyEncoder())


def make_all(root: Path) -> None:
    """Every lens with an IVF index, two segments, deleted rows, changed metadata and a write-ahead log."""
    passages = {"words": 30, "overlap": 5}
    options: dict[str, Any] = {"passages": passages, "dense": {"ann_rows": 256}}
    with Collection.create(root, lenses=LENSES, encoder=TinyEncoder(), **options) as collection:
        collection.add(Document(f"d{i}", words(i, 5 + i % 50), f"Title {i % 9}", {"n": i}) for i in range(300))
    with open_all(root) as collection:
        collection.add(Document(f"e{i}", words(i + 3, 20), metadata={"n": -i}) for i in range(30))
        collection.commit()
        collection.delete(["d3", "d4", "e5"])
        collection.upsert([Document("e7", words(10, 20), metadata={"n": 70})])


def ask_all(root: Path) -> Answers:
    with open_all(root) as collection:
        answers: Answers = [hits(collection, "w3 w1 w141 title", filter={"n": {"$gte": 100}})]
        for lens in LENSES:
            answers += [hits(collection, query, lenses=[lens]) for query in ("w3 w1 w141", "title w52", "w9 " * 20)]
            answers.append(hits(collection, "w3 w1", lenses=[lens], exact=True))
            answers += [parts(collection, "w1 w9 title", doc_id, lenses=[lens]) for doc_id in ("d20", "e8")]
        answers += [hits(collection, "w3 w7", lenses=list(params), params=params) for params in PARAMS]
        answers += [
            hits(collection, "w3 w7", lenses=["bm25"], rerank="multi"),
            hits(collection, "w1", lenses=["bm25"], expand="on"),
        ]
        answers.append(parts(collection, "w3 w7 w1", "d7"))
        answers.append([str(collection.get(doc_id)) for doc_id in ("d0", "d3", "d299", "e7")])
    return answers


def make_external(root: Path) -> None:
    options: dict[str, Any] = {"passages": {"words": 0, "overlap": 0}, "sparse": {"weights": "float32"}}
    with Collection.create(root, lenses=["external"], **options) as collection:
        for batch in range(2):
            vectors = [{f"t{(i * i + j) % (40 + 30 * batch)}": 1 + j / 3 for j in range(1 + i % 9)} for i in range(100)]
            collection.add(Document(f"{batch}-{i}", write_vector(vector)) for i, vector in enumerate(vectors))
            collection.commit()
        collection.delete(["0-1", "1-2"])


def ask_external(root: Path) -> Answers:
    with Collection.open(root) as collection:
        queries = [
            write_vector(vector) for vector in ({"t1": 1.0, "t4": 0.5}, {"t60": 1.0}, {"t9": 2.0, "t16": 1.0, "t25": 1.0})
        ]
        answers = [hits(collection, query, exact=exact) for query in queries for exact in (False, True)]
        return answers + [parts(collection, queries[0], doc_id) for doc_id in ("0-0", "1-1")]


def make_bags(root: Path) -> None:
    with Collection.create(root, lenses=["tokens"], encoder=TinyEncoder(weighting=None)) as collection:
        collection.add(Document(f"d{i}", words(i, 5 + i % 30)) for i in range(300))
        collection.commit()
        collection.delete(["d3"])


def ask_bags(root: Path) -> Answers:
    with Collection.open(root, encoder=TinyEncoder(weighting=None)) as collection:
        answers = [hits(collection, query) for query in ("w3 w1 w141", "w52", "w9 " * 20)]
        return [*answers, parts(collection, "w1 w9", "d20"), hits(collection, "w1 w7", expand="on")]


def hits(collection: Collection, query: str, **options: Any) -> list[str]:
    return [
        str((hit.doc_id, hit.score, hit.by_lens, hit.document, hit.start))
        for hit in collection.search([query], 10, **options)[0]
    ]


def parts(collection: Collection, query: str, doc_id: str, **options: Any) -> str:
    return json.dumps(collection.explain(query, doc_id, **options).to_json())


COLLECTIONS: dict[str, tuple[Callable[[Path], None], Callable[[Path], Answers]]] = {
    "all": (make_all, ask_all),
    "external": (make_external, ask_external),
    "bags": (make_bags, ask_bags),
}


def damaged(content: bytes, damage: Sequence[Any]) -> bytes:
    """The content after a damage: [`flip`, bit], [`truncate`, length] or [`write`, start, hexadecimal digits]."""
    changed = bytearray(content)
    match damage:
        case ["flip", int(bit)]:
            changed[bit // 8] ^= 1 << bit % 8
        case ["truncate", int(length)]:
            del changed[length:]
        case ["write", int(start), str(digits)]:
            written = bytes.fromhex(digits)[: len(changed) - start]
            changed[start : start + len(written)] = written
    return bytes(changed)


def in_child(work: Callable[[], Any]) -> tuple[int, Any]:
    """The wait status of a forked process, and what `work` returned in it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS_TO_LIVE)
        with os.fdopen(writing, "w") as pipe:
            json.dump(work(), pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    status = os.waitpid(child, 0)[1]
    return status, json.loads(text) if text and status == 0 else None


def read(root: Path, ask: Callable[[Path], Answers]) -> tuple[str, Any]:
    """What a reader of a collection sees: answers, or why it got none."""
    try:
        return "answers", ask(root)
    except TrilensError as error:
        return ("raw" if "\n" in str(error) else "refused"), f"{type(error).__name__}: {error}"
    except BaseException:  # noqa: BLE001  anything else is what the test looks for
        return "raw", traceback.format_exc()


def problems(root: Path) -> list[str]:
    try:
        return check_collection(root).problems
    except TrilensError as error:
        return [str(error)]


def outcome(root: Path, ask: Callable[[Path], Answers], expected: Answers) -> tuple[str, str]:
    """How a reader fares with a damaged collection."""
    status, seen = in_child(lambda: read(root, ask))
    if status:
        return DIED, f"wait status {status}"
    kind, detail = seen
    if kind == "raw":
        return RAW, detail
    if kind == "refused":
        return REFUSED, detail
    if detail == expected:
        return SAME, ""
    status, found = in_child(lambda: problems(root))
    if status or not found:
        return MISSED, f"check ended with status {status} and the problems {found}"
    return FOUND, found[0]


class Place:
    """A collection on disk, with the content of its files to restore."""

    def __init__(self, root: Path, ask: Callable[[Path], Answers]) -> None:
        self._root, self._ask = root, ask
        self.contents = {path: path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}
        self._expected = json.loads(json.dumps(ask(root)))
        self.restore()

    def files(self) -> dict[str, int]:
        """The sizes of the files that can be damaged, by path."""
        paths = {path.relative_to(self._root).as_posix(): len(content) for path, content in self.contents.items()}
        return {path: size for path, size in paths.items() if size and path not in HARMLESS_NAMES}

    def run(self, file: str, damage: Sequence[Any]) -> tuple[str, str]:
        """The outcome of a damage."""
        path = self._root / file
        path.write_bytes(damaged(self.contents[path], damage))
        try:
            return outcome(self._root, self._ask, self._expected)
        finally:
            path.write_bytes(self.contents[path])
            self.restore()

    def restore(self) -> None:
        """Restore the catalog: a reader that closes it moves the write-ahead log into it."""
        for path in self._root.glob("*"):
            if path.is_file() and path not in self.contents:
                path.unlink()
        for path, content in self.contents.items():
            if path.parent == self._root:
                path.write_bytes(content)


def make(name: str, folder: Path) -> Place:
    """Make a collection; a copy is taken while a reader keeps the write-ahead log from being merged into the catalog."""
    fill, ask = COLLECTIONS[name]
    fill(folder / f"{name}.made")
    with Collection.open(folder / f"{name}.made", encoder=TinyEncoder()) as reader:
        assert reader.snapshot.commit
        if name == "all":
            with open_all(folder / f"{name}.made") as collection:
                collection.upsert([Document("last", "a last document")])
        shutil.copytree(folder / f"{name}.made", folder / name)
    return Place(folder / name, ask)


def serve(folder: Path) -> None:
    warnings.simplefilter("ignore")
    places = {name: make(name, folder) for name in COLLECTIONS}
    print(json.dumps({name: place.files() for name, place in places.items()}), flush=True)  # noqa: T201
    for line in sys.stdin:
        name, file, damage = json.loads(line)
        print(json.dumps(places[name].run(file, damage)), flush=True)  # noqa: T201


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
