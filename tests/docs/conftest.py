"""A folder with small data under the names that the documentation uses, copied for each page."""

import json
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from trilens import Collection, Document
from trilens.encode.models import bundled_models
from trilens.read.readers import read
from trilens.store.config import DEFAULT_MODEL

from ..encode.counting_cross import counting_cross

TOPICS = {
    "pumps": "Centrifugal pumps move water. Heat transfer in the casing limits their speed.",
    "fins": "Fins increase the surface of a radiator and with it the heat transfer to air.",
    "valves": "Valves control the flow of a liquid through a pipe.",
    "git": "To undo a commit, use git revert; it creates a new commit with the opposite changes.",
    "errors": "Error E1234 means that the disk is full. Remove old files and try again.",
    "bearings": "Bearings carry rotating shafts. Grease them once a month.",
    "boilers": "Boilers heat water until it becomes steam, which drives a turbine.",
    "filters": "Filters keep dirt out of the oil. Replace them every year.",
    "belts": "A belt connects two pulleys; too much tension wears out the motor.",
    "sensors": "Sensors measure temperature and pressure and report them to the controller.",
    "motors": "Electric motors turn current into rotation.",
    "gaskets": "Gaskets seal the joint between two pipes.",
}
QUESTIONS = {
    "pumps": "which machine moves water",
    "fins": "how to improve cooling by air",
    "valves": "how to control the flow in a pipe",
    "git": "how do I undo a commit",
    "errors": "what does E1234 mean",
    "bearings": "how often to grease a shaft",
    "boilers": "where does steam come from",
    "filters": "when to change the oil filter",
    "belts": "why does the motor wear out",
    "sensors": "how is temperature measured",
    "motors": "what turns current into rotation",
    "gaskets": "how to seal a pipe joint",
}
FILES = Path(__file__).parents[1] / "read" / "data"
ALL_LENSES = ["bm25", "dense", "sparse", "lexical", "multi"]


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents, datasets, training examples, a model folder and indexed collections."""
    root = tmp_path_factory.mktemp("world")
    guide = root / "docs" / "guide"
    guide.mkdir(parents=True)
    for name, text in TOPICS.items():
        (guide / f"{name}.md").write_text(f"---\nyear: {2015 + len(name)}\nlang: en\n---\n# {name.title()}\n\n{text}\n")
    (guide / "old.md").write_text("# Old\n\nSteam engines.\n")
    (root / "keys.txt").write_text("read 0123456789abcdef-read\nwrite 0123456789abcdef-write\n")
    (root / "keys.txt").chmod(0o600)
    _dataset(root / "data" / "faq", "guide/{}.md")  # of the documents in docs/
    _dataset(root / "data" / "other", "{}")
    for file in ("corpus.jsonl", "queries.jsonl"):
        shutil.copy(root / "data" / "faq" / file, root)
    shutil.copy(root / "data" / "faq" / "qrels" / "test.tsv", root / "qrels.tsv")
    (root / "manuals").mkdir()
    for manual in FILES.glob("handbook.*"):
        shutil.copy(manual, root / "manuals")
    _lines(root / "splade.jsonl", ({"id": name, "vector": {"heat": 1.0, name: 2.0}} for name in TOPICS))
    _lines(root / "train.dpr.jsonl", map(_example, TOPICS))
    (root / "models").mkdir()
    (root / "models" / "mine").symlink_to(bundled_models()[DEFAULT_MODEL])
    counting_cross(root / "models" / "cross", [*TOPICS.values(), *QUESTIONS.values()], max_tokens=200)
    with Collection.create(root / "my.trilens") as collection:
        collection.ingest(read([root / "docs"]))
    with Collection.create(root / "all.trilens", lenses=ALL_LENSES) as collection:
        collection.ingest(read([root / "docs"]))
    with Collection.create(root / "other.trilens") as collection:
        collection.add([Document(name, text) for name, text in TOPICS.items()])
    return root


@pytest.fixture
def page_folder(world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the world as current folder, with a cache of its own."""
    folder = shutil.copytree(world, tmp_path / "world", symlinks=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def _dataset(folder: Path, doc_id: str) -> None:
    """A dataset in the layout of BEIR; each question has one relevant document, and all splits have the same questions."""
    (folder / "qrels").mkdir(parents=True)
    _lines(folder / "corpus.jsonl", ({"_id": doc_id.format(name), "text": text} for name, text in TOPICS.items()))
    _lines(folder / "queries.jsonl", ({"_id": f"q-{name}", "text": text} for name, text in QUESTIONS.items()))
    judged = (f"q-{name}\t{doc_id.format(name)}\t1\n" for name in QUESTIONS)
    judgements = "query-id\tcorpus-id\tscore\n" + "".join(judged)
    for split in ("train", "dev", "test"):
        (folder / "qrels" / f"{split}.tsv").write_text(judgements)


def _example(name: str) -> dict[str, object]:
    contexts = [{"title": name.title(), "text": TOPICS[name], "passage_id": name}]
    return {"question": QUESTIONS[name], "answers": [name], "positive_ctxs": contexts, "hard_negative_ctxs": []}


def _lines(path: Path, records: Iterable[object]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
