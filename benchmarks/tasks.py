"""Search tasks of the speed chapters: documents in a fixed order, queries, and judgements if there are any."""

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.record import file_hash
from trilens.datasets.beir import Beir
from trilens.read.readers import read
from trilens.text.document import Document

SEED, SPLIT, K = 1, "test", 10
SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")


@dataclass(frozen=True, slots=True)
class Task:
    """Documents in the order in which they are used; `grades[i]` maps documents to the grades of query i."""

    name: str
    data: str
    doc_ids: list[str]
    docs: list[str]
    queries: list[str]
    grades: list[dict[str, int]] | None


def read_task(path: Path) -> Task:
    """Read a BEIR folder, or a file of documents."""
    return read_judged(Beir(path)) if path.is_dir() else read_unjudged(path)


def read_judged(dataset: Beir) -> Task:
    """Queries in random order; documents judged for the first queries come first, unjudged documents last."""
    rng = random.Random(SEED)
    qrels, queries = dataset.qrels(SPLIT), dataset.queries(SPLIT)
    query_ids = rng.sample(sorted(queries), len(queries))
    texts = {document.doc_id: whole(document) for document in read([dataset.corpus_path], on_skip=lambda error: None)}
    judged = dict.fromkeys(doc_id for query_id in query_ids for doc_id in qrels[query_id] if doc_id in texts)
    others = [doc_id for doc_id in texts if doc_id not in judged]
    order = [*judged, *rng.sample(others, len(others))]
    grades = [qrels[query_id] for query_id in query_ids]
    data = file_hash(dataset.corpus_path)
    return Task(dataset.name, data, order, [texts[i] for i in order], [queries[i] for i in query_ids], grades)


def read_unjudged(path: Path) -> Task:
    """Documents in random order; their titles or first sentences are the queries."""
    documents = list(read([path], on_skip=lambda error: None))
    documents = random.Random(SEED).sample(documents, len(documents))
    doc_ids, texts = [document.doc_id for document in documents], [whole(document) for document in documents]
    queries = [document.title.strip() or SENTENCE_END.split(document.text.strip())[0] for document in documents]
    return Task(path.name.partition(".")[0], file_hash(path), doc_ids, texts, queries, None)


def whole(document: Document) -> str:
    """Title and text of a document as one string."""
    return f"{document.title}\n{document.text}".strip()


def ndcg(task: Task, rankings: Sequence[Sequence[int]]) -> float | None:
    """nDCG@10 with grades as gains; `rankings` are the positions of the retrieved documents. None without judgements."""
    if task.grades is None:
        return None
    discounts = 1 / np.log2(np.arange(K) + 2)
    values = []
    for grades, positions in zip(task.grades, rankings, strict=False):
        ideal = sorted((max(0, grade) for grade in grades.values()), reverse=True)[:K]
        gains = [max(0, grades.get(task.doc_ids[position], 0)) for position in positions[:K]]
        best = float(discounts[: len(ideal)] @ ideal)
        values.append(float(discounts[: len(gains)] @ gains) / best if best else 0.0)
    return round(float(np.mean(values)), 4)


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write a text file."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
