"""A process that commits without pause: `python -m tests.store.backup.writing COLLECTION LOG`.

Before each commit a line of LOG says what the collection will hold: the number of the commit and a hash of all documents.
"""

import random
import sys
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

from trilens.collection import Collection
from trilens.store import merge, writer
from trilens.text.document import Document


def digest(documents: Iterable[Document]) -> str:
    """A hash of documents, whatever their order."""
    lines = sorted(repr((item.doc_id, item.title, item.text, item.metadata_json())) for item in documents)
    return blake2b("\n".join(lines).encode(), digest_size=16).hexdigest()


def write(root: Path, log: Path) -> None:
    """Add, replace and delete documents and change metadata, with merges every few commits, until killed."""
    writer.BUFFER_PASSAGES, merge.FANOUT, merge.SMALLEST = 8, 3, 8
    draw = random.Random(5)
    documents: dict[str, Document] = {}
    with Collection.create(root, lenses=["bm25"]) as collection:
        for commit in range(1, 1_000_000):
            for _ in range(draw.randint(1, 6)):
                doc_id = f"d{draw.randint(0, 60)}"
                text = f"{draw.choice('abcdef')} river {commit}" if draw.random() < 0.6 else "the same text"
                documents[doc_id] = Document(doc_id, text, metadata={"commit": commit})
                collection.upsert([documents[doc_id]])
            for doc_id in draw.sample(sorted(documents), k=min(2, len(documents) - 1)):
                del documents[doc_id]
                collection.delete([doc_id])
            with log.open("a") as lines:
                lines.write(f"{commit} {digest(documents.values())}\n")
            collection.commit()


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
