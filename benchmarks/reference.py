"""Dense vectors of the checkpoint behind the bundled model: float32 in torch and transformers, exact search.

    ./scripts/bench reference --data /data --model /path/to/gte-small

A document is its title, a line break and its text, truncated at the model's maximum length instead of split into passages.
Except for the prefixes of the model family, no code of trilens is used, so this is an independent reference for its quality.
"""

import argparse
import csv
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import torch
from ir_measures import R, nDCG
from numpy.typing import NDArray
from transformers import AutoModel, AutoTokenizer

from benchmarks.judged import AVERAGED
from benchmarks.record import add_checkpoint, add_data, file_hash, record
from trilens.encode.families import Family, family_of

MEASURES = (nDCG @ 10, R @ 100)
SPLIT, DEPTH = "test", 100
BATCH_TOKENS = 4096

Vectors = NDArray[np.float32]


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Read the objects of a JSON lines file."""
    with path.open(encoding="utf-8") as lines:
        yield from (json.loads(line) for line in lines)


def read_qrels(path: Path) -> Iterator[ir_measures.Qrel]:
    """Read the qrels of a BEIR `qrels/*.tsv` file."""
    with path.open(encoding="utf-8") as lines:
        for query_id, doc_id, score in list(csv.reader(lines, delimiter="\t"))[1:]:
            yield ir_measures.Qrel(query_id, doc_id, int(score))


def batches(lengths: list[int]) -> Iterator[list[int]]:
    """Batches of positions, longest texts first; each batch has texts of similar length within the token budget."""
    batch: list[int] = []
    for position in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(position)
    if batch:
        yield batch


class Reference:
    """A Hugging Face encoder in float32 with the pooling of its family."""

    def __init__(self, folder: str, family: Family) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
        self.family = family

    def encode(self, texts: list[str], max_tokens: int) -> Vectors:
        """L2-normalised vectors (texts, dims)."""
        encoded = self.tokenizer(texts, truncation=True, max_length=max_tokens)
        vectors = np.empty((len(texts), self.model.config.hidden_size), np.float32)
        for batch in batches([len(ids) for ids in encoded["input_ids"]]):
            rows = [{"input_ids": encoded["input_ids"][position]} for position in batch]
            padded = self.tokenizer.pad(rows, return_tensors="pt")
            with torch.inference_mode():
                states = self.model(**padded).last_hidden_state
            mask = padded["attention_mask"].unsqueeze(-1).float()
            pooled = states[:, 0] if self.family.pooling == "cls" else (states * mask).sum(1) / mask.sum(1)
            vectors[batch] = torch.nn.functional.normalize(pooled, dim=-1).numpy()
        return vectors


def rank(query_ids: list[str], queries: Vectors, doc_ids: list[str], docs: Vectors) -> Iterator[ir_measures.ScoredDoc]:
    """Top documents of each query by exact inner product; ties keep corpus order."""
    for query_id, query in zip(query_ids, queries, strict=True):
        scores = docs @ query
        for row in np.argsort(-scores, kind="stable")[:DEPTH]:
            yield ir_measures.ScoredDoc(query_id, doc_ids[row], float(scores[row]))


def measure(folder: Path, reference: Reference) -> dict[str, float]:
    """Encode, search and measure one dataset."""
    family = reference.family
    qrels = list(read_qrels(folder / "qrels" / f"{SPLIT}.tsv"))
    judged = {qrel.query_id for qrel in qrels}
    docs = list(read_lines(folder / "corpus.jsonl"))
    queries = [query for query in read_lines(folder / "queries.jsonl") if query["_id"] in judged]
    doc_texts = [family.doc_prefix + f"{doc.get('title') or ''}\n{doc['text']}".strip() for doc in docs]
    query_texts = [family.query_prefix + query["text"] for query in queries]
    run = rank(
        [query["_id"] for query in queries],
        reference.encode(query_texts, family.max_query_tokens),
        [doc["_id"] for doc in docs],
        reference.encode(doc_texts, family.max_doc_tokens),
    )
    scores = ir_measures.calc_aggregate(MEASURES, qrels, run)
    return {str(name): round(score, 4) for name, score in scores.items()}


def main() -> None:
    """Record one row per dataset."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data(parser, "--data", "", "folder of the judged collections")
    add_checkpoint(parser)
    parser.add_argument("--sets", nargs="+", default=list(AVERAGED), metavar="NAME", help="dataset folders in the BEIR layout")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    options = parser.parse_args()
    if not options.model:
        parser.error("--model is missing; expected a checkpoint: a folder or hub id, or $TRILENS_CHECKPOINT")
    torch.set_num_threads(options.threads)
    name = options.model.rstrip("/").rsplit("/", 1)[-1]
    reference = Reference(options.model, family_of(name))
    for folder in (options.data / dataset for dataset in options.sets):
        data = file_hash(folder / "corpus.jsonl", folder / "queries.jsonl", folder / "qrels" / f"{SPLIT}.tsv")
        facts = {"dataset": folder.name, "split": SPLIT, "model": name, **measure(folder, reference)}
        record("reference", **facts, data=data, threads=options.threads, seed=None, repeats=1)


if __name__ == "__main__":
    main()
