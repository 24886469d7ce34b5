"""The reading processes of test_readers.py: they report what they see, and the test judges it."""

import json
import sys
import threading
from pathlib import Path
from typing import Any

from trilens.collection import Collection
from trilens.text.document import Document

from .tiny import TinyEncoder

WORD = "harbour"
DOCUMENTS = 20
STALE = 3  # times that a process searches before it moves on, so that it reads from files that are gone


def documents(generation: int) -> list[Document]:
    """All documents of a commit. Every other commit changes the metadata alone."""
    text = f"{WORD} generation{generation // 2}"
    return [Document(f"d{i}", text, metadata={"generation": generation}) for i in range(DOCUMENTS)]


def look(collection: Collection) -> dict[str, Any]:
    """Everything that can be seen of a commit, in several ways that must agree."""
    [hits] = collection.search([WORD], k=2 * DOCUMENTS)
    first = collection.get("d0")
    generation = first.metadata["generation"] if first else None
    [filtered] = collection.search([WORD], k=2 * DOCUMENTS, filter={"generation": generation})
    [by_text] = collection.search([f"generation{(generation or 0) // 2}"], k=2 * DOCUMENTS)
    return {
        "lenses": collection.lenses,
        "commit": collection.snapshot.commit,
        "generation": generation,
        "count": len(collection),
        "generations": sorted({hit.document.metadata["generation"] for hit in hits}),
        "texts": sorted({hit.document.text for hit in hits}),
        "found": [len(hits), len(filtered), len(by_text)],
        "scores": [hit.score for hit in hits],
    }


def say(seen: dict[str, Any]) -> None:
    """One line of JSON."""
    sys.stdout.write(json.dumps(seen) + "\n")
    sys.stdout.flush()


def watch(root: Path, last: int) -> None:
    """Report repeatedly, refreshing or reopening in turn, until the last generation is visible."""
    collection = Collection.open(root, encoder=TinyEncoder())
    turn, generation = 0, -1
    while generation < last:
        turn += 1
        if turn % 3:
            collection.refresh()
        else:
            collection.close()
            collection = Collection.open(root, encoder=TinyEncoder())
        for _ in range(STALE):
            seen = look(collection)
            say(seen)
        generation = seen["generation"]
    collection.close()


def check(root: Path, last: int) -> None:
    """Check the files repeatedly, until the last generation is visible."""
    generation = -1
    while generation < last:
        with Collection.open(root, encoder=TinyEncoder()) as collection:
            generation = look(collection)["generation"]
            report = collection.check()
            say({"problems": report.problems, "documents": report.documents})


def hold(root: Path) -> None:
    """Report the snapshot for each input line; the line `refresh` refreshes it first."""
    with Collection.open(root, encoder=TinyEncoder()) as collection:
        say(look(collection))
        for line in sys.stdin:
            moved = collection.refresh() if line.strip() == "refresh" else None
            say(look(collection) | {"moved": moved})


def share(root: Path, last: int) -> None:
    """Several threads search one collection while another one keeps refreshing it."""
    collection = Collection.open(root, encoder=TinyEncoder())
    collection.search([WORD])
    seen: list[dict[str, Any]] = []
    errors: list[str] = []
    over = threading.Event()

    def searching() -> None:
        while not over.is_set():
            try:
                [hits] = collection.search([WORD], k=2 * DOCUMENTS, filter={"generation": {"$gte": 0}})
                generations = sorted({hit.document.metadata["generation"] for hit in hits})
                seen.append({"generations": generations, "count": len(hits)})
            except Exception as error:  # noqa: BLE001  the test wants to see every error
                errors.append(repr(error))

    threads = [threading.Thread(target=searching) for _ in range(3)]
    for thread in threads:
        thread.start()
    generation = -1
    while generation < last:
        collection.refresh()
        generation = look(collection)["generation"]
    over.set()
    for thread in threads:
        thread.join()
    say({"errors": sorted(set(errors)), "seen": [json.loads(line) for line in {json.dumps(item) for item in seen}]})


def write(root: Path) -> None:
    """Try to write, and report the outcome."""
    try:
        with Collection.open(root, encoder=TinyEncoder()) as collection:
            collection.add([Document("intruder", "text")])
    except Exception as error:  # noqa: BLE001  the test wants to see every error
        say({"error": type(error).__name__, "message": str(error)})
    else:
        say({"error": None})


if __name__ == "__main__":
    role, folder, *rest = sys.argv[1:]
    {"watch": watch, "check": check, "hold": hold, "share": share, "write": write}[role](  # type: ignore[operator]
        Path(folder), *map(int, rest)
    )
