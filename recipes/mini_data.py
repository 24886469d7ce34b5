"""Training data of trilens-mini: questions and titles, each with a passage that answers it.

    pip download --no-deps --only-binary :all: -r recipes/mini_wheels.txt -d runs/mini/wheels
    (mkdir -p runs/mini/debs && cd runs/mini/debs && apt-get download $(cat ../../../recipes/mini_debs.txt))
    python -m recipes.mini_data --data /data --wheels runs/mini/wheels --debs runs/mini/debs --to runs/mini

Reads squad-retrieval (training questions), medquad, ni-qa and debian-en.jsonl.xz in `--data`, docstrings in `--wheels`, and
manual pages and WordNet's glosses in `--debs`. Of ni-qa, only rows whose licences allow commercial use are used. Writes
`pairs.jsonl`, the same pairs in DPR's format as `questions.jsonl`, and `calibration.jsonl`, a sample of the passages with which
`trilens export` calibrates 8-bit ranges.
"""

import argparse
import json
import lzma
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from recipes.package_texts import Pair, docstring_pairs, gloss_pairs, manual_pairs

SEED = 11
# Pairs per source, and at most this many candidates that they are drawn from.
PAIRS = {"docstring": 8500, "debian": 5500, "squad": 3500, "ni-qa": 2200, "medquad": 1500, "manual": 1199, "wordnet": 1600}
DRAWN = {"debian": 11000, "squad": 8000, "ni-qa": 5000, "medquad": 4000, "wordnet": 6000}
LONGEST_QUESTION, LONGEST_PASSAGE = 300, 1500  # characters
SHORTEST_TITLE, SHORTEST_TEXT = 15, 120
NO_PROGRAM = re.compile("debug symbols|development files|transitional|dummy package|header files")
SENTENCE_END = re.compile(r"(?<=[.!?])\s")
CALIBRATION = 250  # passages
NOT_FREE = ("NC", "unknown", "custom")

Row = dict[str, Any]


def main() -> None:
    """Write the pairs and the calibration passages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the source collections")
    parser.add_argument("--wheels", type=Path, required=True, help="folder with Python wheels")
    parser.add_argument("--debs", type=Path, required=True, help="folder with Debian packages")
    parser.add_argument("--to", type=Path, required=True, help="output folder")
    options = parser.parse_args()
    draw = random.Random(SEED)
    pairs = [
        (source, question, passage)
        for source, found in sources(options.data, options.wheels, options.debs, draw)
        for question, passage in islice(found, DRAWN.get(source))
    ]
    draw.shuffle(pairs)
    rows = [row for pair in pairs if all((row := trimmed(*pair)).values())]
    sample = sampled(rows)
    options.to.mkdir(parents=True, exist_ok=True)
    write(options.to / "pairs.jsonl", sample)
    write(options.to / "questions.jsonl", [{"question": row["question"], "positive_ctxs": [passage(row)]} for row in sample])
    calibration = [passage(row) for row in sample[:: len(sample) // CALIBRATION]]
    write(options.to / "calibration.jsonl", calibration)
    print(Counter(row["source"] for row in sample))  # noqa: T201  it is a script


def sources(data: Path, wheels: Path, debs: Path, draw: random.Random) -> Iterator[tuple[str, Iterable[Pair]]]:
    """The pairs of each source; each must be read before the next, because they share the random numbers."""
    yield "docstring", docstring_pairs(wheels, draw)
    yield "debian", descriptions(data / "debian-en.jsonl.xz", draw)
    yield "squad", squad(data / "squad-retrieval", draw)
    yield "medquad", answers([*rows_of(data / "medquad" / "train.jsonl")], draw)
    yield "ni-qa", answers([row for row in rows_of(data / "ni-qa" / "train.jsonl") if free(row)], draw)
    yield "manual", manual_pairs(debs, draw)
    yield "wordnet", gloss_pairs(debs, draw)


def descriptions(file: Path, draw: random.Random) -> Iterator[Pair]:
    """Debian's package descriptions, asked for by their title or first sentence."""
    with lzma.open(file, "rt", encoding="utf-8") as lines:
        packages = [json.loads(line) for line in lines]
    draw.shuffle(packages)
    for package in packages:
        title, text = package["title"].strip(), package["text"].strip()
        if len(title) < SHORTEST_TITLE or len(text) < SHORTEST_TEXT or NO_PROGRAM.search(title + text):
            continue
        question = title if draw.random() < 0.7 else SENTENCE_END.split(text)[0][:160]
        yield question, f"{title}\n{text}" if draw.random() < 0.7 else text


def squad(folder: Path, draw: random.Random) -> Iterator[Pair]:
    """Training questions with their paragraph, one for each paragraph."""
    passages = {row["_id"]: joined(row) for row in rows_of(folder / "corpus.jsonl")}
    questions, used = [*rows_of(folder / "train.dpr.jsonl")], set()
    draw.shuffle(questions)
    for row in questions:
        passage_id = row["positive_ctxs"][0]
        if passage_id not in used:
            used.add(passage_id)
            yield row["question"], passages[passage_id]


def answers(rows: list[Row], draw: random.Random) -> Iterator[Pair]:
    """Questions with their first passage, in random order."""
    answered = [row for row in rows if row["positive_ctxs"]]
    draw.shuffle(answered)
    return ((row["question"], joined(row["positive_ctxs"][0])) for row in answered)


def rows_of(file: Path) -> Iterator[Row]:
    """The rows of a JSON lines file."""
    with file.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def joined(passage: Row) -> str:
    """Title and text of a passage."""
    return f"{passage.get('title') or ''}\n{passage['text']}".strip()


def free(row: Row) -> bool:
    """Whether the licences of a row are known and allow commercial use."""
    return bool(row["licence"]) and not any(word in licence for licence in row["licence"] for word in NOT_FREE)


def trimmed(source: str, question: str, passage: str) -> Row:
    """A row with its texts cut, so that vectors of teachers take little time."""
    return {
        "source": source,
        "question": " ".join(question.split())[:LONGEST_QUESTION],
        "passage": passage.strip()[:LONGEST_PASSAGE],
    }


def sampled(rows: list[Row]) -> list[Row]:
    """The first rows of each source, up to its number of pairs, in random order."""
    by_source = {source: [row for row in rows if row["source"] == source][:most] for source, most in PAIRS.items()}
    sample = [row for chosen in by_source.values() for row in chosen]
    random.Random(5).shuffle(sample)
    return sample


def passage(row: Row) -> Row:
    """The passage of a pair in DPR's format."""
    return {"title": "", "text": row["passage"]}


def write(file: Path, rows: Iterable[Row]) -> None:
    """Write JSON lines."""
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
