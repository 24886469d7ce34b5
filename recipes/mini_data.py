"""The training data of trilens-mini: questions and titles with the passages that answer them, in DPR's format.

    python recipes/mini_data.py --data /data --to runs/mini

Reads squad-retrieval, medquad, ni-qa and debian-en.jsonl.xz in `--data`, and the docstrings of the Python that runs it. Of
ni-qa only rows whose licences allow commercial use are taken. Writes `questions.jsonl`, to which `trilens mine` adds hard
negatives, and `calibration.jsonl`, some of the passages, to which `trilens export` fits the ranges of 8 bits.
"""

import argparse
import json
import lzma
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from trilens.text.python_docs import standard_library

SEED = 7
# Of each source. Passages are encoded once, at about 2,000 tokens a second on two cores.
QUESTIONS = {"squad": 5000, "medquad": 1800, "ni-qa": 2000, "debian": 1200, "docstrings": 800}
BLOCK = {"squad": 200}
WORDS = 90
SHORTEST_TITLE, SHORTEST_TEXT = 15, 150
CALIBRATION = 50  # passages of each source
NOT_FREE = ("NC", "unknown", "custom")

Row = dict[str, Any]


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the collections")
    parser.add_argument("--to", type=Path, required=True, help="folder of the files")
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
            every = [row for row in rows if row["positive_ctxs"] and row["question"].strip()]
            chosen = [shortened(row) for row in in_blocks(every, BLOCK.get(name, 1), draw)[: QUESTIONS[name]]]
            questions.writelines(map(as_line, chosen))
            calibration.writelines(as_line(row["positive_ctxs"][0]) for row in chosen[:: len(chosen) // CALIBRATION])
            print(f"{name}: {len(chosen):,} of {len(every):,} rows")  # noqa: T201  it is a script


def as_line(row: Row) -> str:
    """A row of a file."""
    return json.dumps(row, ensure_ascii=False) + "\n"


def squad(folder: Path) -> Iterator[Row]:
    """Questions with their paragraph in place of its id, two for each paragraph."""
    with (folder / "corpus.jsonl").open(encoding="utf-8") as file:
        passages = {row["_id"]: {"title": row.get("title") or "", "text": row["text"]} for row in map(json.loads, file)}
    asked: Counter[str] = Counter()
    for row in rows_of(folder / "train.dpr.jsonl"):
        name = row["positive_ctxs"][0]
        asked[name] += 1
        if asked[name] <= 2:
            yield {"question": row["question"], "answers": row["answers"], "positive_ctxs": [passages[name]]}


def rows_of(file: Path) -> Iterator[Row]:
    """Rows that are in DPR's format already."""
    with file.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def free(row: Row) -> bool:
    """Whether the licences of a row are known, and allow commercial use."""
    return bool(row["licence"]) and not any(word in licence for licence in row["licence"] for word in NOT_FREE)


def titles(records: Iterable[Row]) -> Iterator[Row]:
    """Titles as questions to their texts, where both say something."""
    for record in records:
        title, text = record["title"].strip(), record["text"].strip()
        if len(title) >= SHORTEST_TITLE and len(text) >= SHORTEST_TEXT:
            yield {"question": title, "answers": [], "positive_ctxs": [{"title": "", "text": text}]}


def shortened(row: Row) -> Row:
    """A row with the first words of its passage, so that states take little room and time."""
    first = row["positive_ctxs"][0]
    passage = {"title": first.get("title") or "", "text": " ".join(first["text"].split()[:WORDS])}
    return {"question": row["question"], "answers": row["answers"], "positive_ctxs": [passage]}


def first_line(docstring: str) -> Row:
    """What a docstring says in short, and the rest."""
    short, _, rest = docstring.partition("\n")
    return {"title": short, "text": rest}


def in_blocks(rows: list[Row], size: int, draw: random.Random) -> list[Row]:
    """Shuffled, but so that neighbours stay together: paragraphs of one article are hard negatives for each other."""
    blocks = [rows[start : start + size] for start in range(0, len(rows), size)]
    draw.shuffle(blocks)
    return [row for block in blocks for row in block]


if __name__ == "__main__":
    main()
