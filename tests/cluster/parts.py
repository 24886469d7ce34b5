"""A collection in parts, in one process: what the tests compare with the whole."""

import pickle
import random
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trilens.cluster.joined_collection import JoinedCollection
from trilens.collection import Collection
from trilens.store.commit_record import CommitRecord
from trilens.store.creation import create_collection
from trilens.store.folders import FOLDER
from trilens.store.records import read_records
from trilens.text.document import Document

WORDS = [
    "river",
    "bank",
    "engine",
    "oil",
    "water",
    "tower",
    "light",
    "stone",
    "winter",
    "bridge",
    "market",
    "signal",
    "copper",
    "glass",
    "train",
    "harbour",
]
QUERIES = ["oil for the engine", "winter light on the river", "a copper bridge", "harbour market in winter", "unicorn"]
EVERY_LENS = ["bm25", "dense", "sparse", "lexical", "tokens", "multi"]


def make_documents(count: int, seed: int = 1, first: int = 0) -> list[Document]:
    """Documents of a few words, some of them equal, so that scores tie; long ones have several passages."""
    draw = random.Random(seed)
    documents = []
    for number in range(first, first + count):
        texts = [" ".join(draw.choices(WORDS, k=draw.choice([3, 6, 12]))) for _ in range(draw.choice([1, 1, 3]))]
        text = "the engine needs oil" if number % 9 == 0 else ". ".join(texts)
        documents.append(Document(f"d{number}", text, metadata={"n": number, "even": number % 2 == 0}))
    return documents


def split(collection: Collection, folder: Path, count: int) -> list[Collection]:
    """Collections with the segments of the last commit dealt out."""
    record = CommitRecord.read(collection.path)
    records = read_records(collection.path, record.folders)
    ids = [segment.id for segment in records.segments]
    parts = []
    for shard in range(count):
        root = folder / f"shard-{shard}"
        part = record.part(records, set(ids[shard::count]))

        def copy(root: Path = root, part: CommitRecord = part) -> None:
            for folder_id in part.folders:
                shutil.copytree(collection.path / FOLDER / folder_id, root / FOLDER / folder_id)

        create_collection(root, part, copy)
        parts.append(Collection.open(root, threads=1))
    return parts


class Joined(JoinedCollection):
    """Parts that are asked as shards on other machines are: what they get and answer is pickled."""

    def __init__(self, parts: Sequence[Collection]) -> None:
        super().__init__(parts)
        self.asked: list[str] = []

    def _ask(self, method: str, calls: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        self.asked.append(method)
        sent: dict[int, tuple[Any, ...]] = pickle.loads(pickle.dumps(dict(calls)))
        answers: dict[int, Any] = pickle.loads(pickle.dumps(super()._ask(method, sent)))
        return answers
