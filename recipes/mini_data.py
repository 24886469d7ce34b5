"""Training data of trilens-mini: questions and titles with relevant passages, in DPR's format.

    python recipes/mini_data.py --data /data --to runs/mini

Reads squad-retrieval, medquad, ni-qa and debian-en.jsonl.xz in `--data`, and the docstrings of Python's standard library. Of
ni-qa, only rows whose licences allow commercial use are used. Writes `questions.jsonl`, to which `trilens mine` adds hard
negatives, and `calibration.jsonl`, a sample of the passages with which `trilens export` calibrates 8-bit ranges.
"""

import argparse
import json
import lzma
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from trilens.read.python_docs import standard_library

SEED = 7
# Questions per source. Passages are encoded once, at about 2,000 tokens per second on two cores.
QUESTIONS = {"squad": 5000, "medquad": 1800, "ni-qa": 2000, "debian": 1200, "docstrings": 800}
BLOCK = {"squad": 200}
WORDS = 90
SHORTEST_TITLE, SHORTEST_TEXT = 15, 150
CALIBRATION = 50  # passages per source
NOT_FREE = ("NC", "unknown", "custom")

Row = dict[str, Any]


def main() -> None:
    """Write the training and calibration files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the source collections")
    parser.add_argument("--to", type=Path, required=True, help="output folder")
    options = parser.parse_args()
    draw = random.Random(SEED)
    sources = {
        "squad": squad(options.data / "squad-retrieval"),
        "medquad": rows_of(options.data / "medquad" / "train.jsonl"),
        "ni-qa": (row for row in rows_of(options.data / "ni-qa" / "train.jsonl") if free(row)),
        "debian": titles(map(json.loads, lzma.decompress((options.data / "debian-en.jsonl.xz").read_bytes()).splitlines())),
        "docstrings": titles(first_line(document.text) for document in standard_library()),
    }
    options.to.mkdir(parents=True, exist_ok=True)
    with (
        (options.to / "questions.jsonl").open("w", encoding="utf-8") as questions,
        (options.to / "calibration.jsonl").open("w", encoding="utf-8") as calibration,
    ):
        for name, rows in sources.items():
            usable = [row for row in rows if row["positive_ctxs"] and row["question"].strip()]
            sample = [shortened(row) for row in in_blocks(usable, BLOCK.get(name, 1), draw)[: QUESTIONS[name]]]
            questions.writelines(map(as_line, sample))
            calibration.writelines(as_line(row["positive_ctxs"][0]) for row in sample[:: len(sample) // CALIBRATION])
            print(f"{name}: {len(sample):,} of {len(usable):,} rows")  # noqa: T201  it is a script


def as_line(row: Row) -> str:
    """A row as a JSON line."""
    return json.dumps(row, ensure_ascii=False) + "\n"


def squad(folder: Path) -> Iterator[Row]:
    """Questions with their paragraph instead of its id, at most two per paragraph."""
    with (folder / "corpus.jsonl").open(encoding="utf-8") as file:
        passages = {row["_id"]: {"title": row.get("title") or "", "text": row["text"]} for row in map(json.loads, file)}
    questions: Counter[str] = Counter()
    for row in rows_of(folder / "train.dpr.jsonl"):
        name = row["positive_ctxs"][0]
        questions[name] += 1
        if questions[name] <= 2:
            yield {"question": row["question"], "answers": row["answers"], "positive_ctxs": [passages[name]]}


def rows_of(file: Path) -> Iterator[Row]:
    """Rows of a file in DPR's format."""
    with file.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def free(row: Row) -> bool:
    """Whether the licences of a row are known and allow commercial use."""
    return bool(row["licence"]) and not any(word in licence for licence in row["licence"] for word in NOT_FREE)


def titles(records: Iterable[Row]) -> Iterator[Row]:
    """Pairs of title and text as question and passage; short ones are skipped."""
    for record in records:
        title, text = record["title"].strip(), record["text"].strip()
        if len(title) >= SHORTEST_TITLE and len(text) >= SHORTEST_TEXT:
            yield {"question": title, "answers": [], "positive_ctxs": [{"title": "", "text": text}]}


def shortened(row: Row) -> Row:
    """A row with its passage truncated, so that states take little space and time."""
    first = row["positive_ctxs"][0]
    passage = {"title": first.get("title") or "", "text": " ".join(first["text"].split()[:WORDS])}
    return {"question": row["question"], "answers": row["answers"], "positive_ctxs": [passage]}


def first_line(docstring: str) -> Row:
    """The summary line of a docstring as title, the rest as text."""
    short, _, rest = docstring.partition("\n")
    return {"title": short, "text": rest}


def in_blocks(rows: list[Row], size: int, draw: random.Random) -> list[Row]:
    """Shuffle blocks of neighbouring rows: paragraphs of one article are hard negatives of each other."""
    blocks = [rows[start : start + size] for start in range(0, len(rows), size)]
    draw.shuffle(blocks)
    return [row for block in blocks for row in block]


if __name__ == "__main__":
    main()
