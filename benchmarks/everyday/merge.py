"""Merges two independent passes over the answers of questions into a questions file.

    python -m benchmarks.everyday.merge

`passes` has two files for each collection, with a line `{"text": …, "answers": [id, …]}` for each question: `NAME.first.jsonl`
by the writer of the questions, before seeing the collection, and `NAME.second.jsonl` by an annotator who saw only the
questions and the collection. A document is an answer if both passes name it; a question without such a document is dropped.
Equal questions count once. The agreement of the passes is recorded.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.everyday.build import COLLECTIONS
from benchmarks.everyday.questions import QUESTIONS, SEED, SPLITS, Question, read_questions, same, write_rows
from benchmarks.record import file_hash, record
from trilens.errors import BadInput, TrilensError

PASSES = Path(__file__).parent / "passes"


def by_text(questions: Sequence[Question]) -> dict[str, Question]:
    """Questions by what equal questions have in common; the first of equal ones."""
    unique: dict[str, Question] = {}
    for question in questions:
        unique.setdefault(same(question.text), question)
    return unique


def merge(first: Sequence[Question], second: Sequence[Question]) -> tuple[list[Question], dict[str, Any]]:
    """The questions with the answers that both passes name, in the order of the first pass; and the agreement of the passes.

    `kept` is the number of questions with a common answer, `agreed` their share, `overlap` the mean over all questions of the
    documents named by both passes divided by those named by either. A question that neither pass answers counts as no overlap.
    """
    unique, annotated = by_text(first), by_text(second)
    if not unique:
        raise BadInput("the first pass has no questions; expected a line for each question")
    if missing := [question.text for text, question in unique.items() if text not in annotated]:
        raise BadInput(
            f"the second pass lacks {len(missing)} questions, such as {missing[0]!r}; expected a line for each question"
        )
    merged, overlaps = [], []
    for text, question in unique.items():
        others = set(annotated[text].answers)
        common = [answer for answer in dict.fromkeys(question.answers) if answer in others]
        either = {*question.answers, *others}
        overlaps.append(len(common) / len(either) if either else 0.0)
        if common:
            merged.append(Question(question.text, common))
    return merged, {
        "written": len(first),
        "questions": len(unique),
        "kept": len(merged),
        "agreed": round(len(merged) / len(unique), 4),
        "overlap": round(mean(overlaps), 4),
        "answers_first": round(mean(len(set(question.answers)) for question in unique.values()), 2),
        "answers_second": round(mean(len(set(annotated[text].answers)) for text in unique), 2),
        "answers_kept": round(mean(len(question.answers) for question in merged), 2) if merged else 0.0,
    }


def merge_files(passes: Path, to: Path, name: str) -> None:
    """Write the questions file of a collection and record how its passes agree."""
    files = [passes / f"{name}.{which}.jsonl" for which in ("first", "second")]
    questions, agreement = merge(*map(read_questions, files))
    write_rows(to / f"{name}.jsonl", (question.row() for question in questions))
    halves = {f"{split}_questions": sum(question.split == split for question in questions) for split in SPLITS}
    known = {"data": file_hash(*files), "threads": 1, "seed": SEED, "repeats": 1}
    record("everyday-agreement", collection=name, **agreement, **halves, **known)


def main() -> None:
    """Merge the passes of each collection."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collections", nargs="*", default=list(COLLECTIONS), metavar="COLLECTION")
    parser.add_argument("--passes", type=Path, default=PASSES, help="folder of the passes")
    parser.add_argument("--to", type=Path, default=QUESTIONS, help="folder of the questions files")
    options = parser.parse_args()
    try:
        for name in options.collections:
            merge_files(options.passes, options.to, name)
    except TrilensError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
