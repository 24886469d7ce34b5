"""Vectors of the pairs of `mini_data.py` by dense teachers, for `mini_distil.py`.

    python -m recipes.mini_teachers --pairs runs/mini/pairs.jsonl --to runs/mini/teachers \\
        thenlper/gte-small:mean sentence-transformers/all-mpnet-base-v2:mean ibm-granite/granite-embedding-30m-english:cls

Computes in bfloat16 on one thread, which takes a core about 25 minutes per 12,000 pairs; a run that was interrupted goes on
where it ended, and several processes share the work with `--first` and `--last`. Needs `pip install 'trilens[train]'`.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize
from transformers import AutoModel, AutoTokenizer

from trilens.encode.onnx import batches_by_length
from trilens.kernels.array_types import Float32s

BLOCK = 3000  # pairs per file
LONGEST_PASSAGE = 600  # characters, of which teachers and student read the same
LONGEST = {"question": 64, "passage": 256}  # tokens
BATCH_TOKENS, BATCH_TEXTS = 4096, 256


def main() -> None:
    """Encode the blocks that are missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL:POOLING", help="folder or hub id, and mean or cls")
    parser.add_argument("--pairs", type=Path, required=True, help="output of mini_data.py")
    parser.add_argument("--to", type=Path, required=True, help="output folder")
    parser.add_argument("--first", type=int, default=0, help="first pair, a multiple of the block size")
    parser.add_argument("--last", type=int, help="end of the pairs; all by default")
    options = parser.parse_args()
    torch.set_num_threads(1)
    pairs = read_pairs(options.pairs)
    options.to.mkdir(parents=True, exist_ok=True)
    for model in options.models:
        name, _, pooling = model.rpartition(":")
        if pooling not in ("mean", "cls") or options.first % BLOCK:
            sys.exit(f"error: {model} from pair {options.first}; expected MODEL:mean or MODEL:cls, from a multiple of {BLOCK}")
        teacher = DenseTeacher(name, pooling)
        for start in range(options.first, len(pairs) if options.last is None else options.last, BLOCK):
            for side in LONGEST:
                file = options.to / block_name(name, side, start)
                if not file.exists():
                    vectors = teacher.encode([pair[side] for pair in pairs[start : start + BLOCK]], LONGEST[side])
                    unfinished = file.with_suffix(".part")
                    with unfinished.open("wb") as stream:
                        np.save(stream, vectors.astype(np.float16))
                    unfinished.rename(file)
                    print(f"{file.name}: {len(vectors):,} vectors", flush=True)  # noqa: T201  it is a script


def read_pairs(file: Path) -> list[dict[str, str]]:
    """The rows of `pairs.jsonl`, with the starts of their passages."""
    with file.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [row | {"passage": row["passage"][:LONGEST_PASSAGE]} for row in rows]


def block_name(model: str, side: str, start: int) -> str:
    """The file name of a block of vectors."""
    return f"{Path(model).name}.{side}.{start}.npy"


def read_vectors(folder: Path, model: str, side: str) -> Float32s:
    """The vectors of all complete blocks of a teacher, from the first pair on."""
    blocks, start = [], 0
    while (file := folder / block_name(model, side, start)).exists():
        blocks.append(np.load(file).astype(np.float32))
        start += BLOCK
    if not blocks:
        sys.exit(f"error: {folder} has no vectors of {model}; run recipes.mini_teachers first")
    return np.concatenate(blocks)


class DenseTeacher:
    """A bi-encoder with one vector per text."""

    def __init__(self, name: str, pooling: str) -> None:
        self._tokenizer: Any = AutoTokenizer.from_pretrained(name)
        self._model: Any = AutoModel.from_pretrained(name).eval().to(torch.bfloat16)
        self._pooling = pooling

    @torch.inference_mode()
    def encode(self, texts: list[str], longest: int) -> Float32s:
        """Unit vectors of texts."""
        ids = self._tokenizer(texts, truncation=True, max_length=longest)["input_ids"]
        vectors = np.zeros((len(texts), self._model.config.hidden_size), np.float32)
        for batch in batches_by_length([len(row) for row in ids], BATCH_TOKENS, BATCH_TEXTS):
            padded = self._tokenizer.pad({"input_ids": [ids[row] for row in batch]}, return_tensors="pt")
            mask = padded["attention_mask"]
            states: Tensor = self._model(padded["input_ids"], attention_mask=mask).last_hidden_state.float()
            weights = mask[:, :, None].float()
            pooled = states[:, 0] if self._pooling == "cls" else (states * weights).sum(1) / weights.sum(1)
            vectors[batch] = normalize(pooled, dim=-1).numpy()
        return vectors


if __name__ == "__main__":
    main()
