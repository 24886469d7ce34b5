"""The everyday questions: their files, their two halves, and judgements for the collections of this machine.

A hash of its text puts a question into the dev half or the test half, so nobody chooses, and further questions move none.
Only the dev half is used to choose anything.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.record import file_hash
from trilens.errors import BadInput

QUESTIONS = Path(__file__).parent / "questions"
SPLITS = ("dev", "test")
SEED = 1
PUNCTUATION = re.compile(r"[^\w+#%/.-]+")


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the ids of the documents that answer it."""

    text: str
    answers: Sequence[str]

    @property
    def question_id(self) -> str:
        """A short hash of the text."""
        return _hash("id", self.text)[:10]

    @property
    def split(self) -> str:
        """The half that the question belongs to."""
        return SPLITS[int(_hash(f"split {SEED}", self.text), 16) % len(SPLITS)]

    def row(self) -> dict[str, Any]:
        """The question as a line of a questions file."""
        return {"_id": self.question_id, "text": self.text, "split": self.split, "answers": list(self.answers)}


def same(text: str) -> str:
    """What equal questions have in common: the words without case, spacing and punctuation."""
    return " ".join(word.strip(".-/") for word in PUNCTUATION.sub(" ", text.casefold()).split()).strip()


def read_questions(path: Path) -> list[Question]:
    """Read a file of questions with answers: JSON lines with `text` and `answers`."""
    if not path.is_file():
        raise BadInput(f"there are no questions at {path}; expected a file of JSON lines")
    questions = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            fields = json.loads(line)
            questions.append(Question(str(fields["text"]).strip(), [str(answer) for answer in fields["answers"]]))
        except (ValueError, TypeError, KeyError) as error:
            raise BadInput(f'{path}, line {number}: {error!r}; expected {{"text": …, "answers": [id, …]}}') from error
    return questions


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def judge(folder: Path, questions: Sequence[Question]) -> int:
    """Complete a built corpus to the BEIR layout: queries.jsonl and the judgements of both halves.

    Other versions of Python or Debian lack some documents: a question without any of its answers is left out. Return how many
    were left out.
    """
    with (folder / "corpus.jsonl").open(encoding="utf-8") as file:
        present = {json.loads(line)["_id"] for line in file}
    answerable = (Question(question.text, [a for a in question.answers if a in present]) for question in questions)
    kept = [question for question in answerable if question.answers]
    write_rows(folder / "queries.jsonl", ({"_id": question.question_id, "text": question.text} for question in kept))
    (folder / "qrels").mkdir(exist_ok=True)
    for split in SPLITS:
        judged = "".join(
            f"{question.question_id}\t{answer}\t1\n"
            for question in kept
            if question.split == split
            for answer in question.answers
        )
        (folder / "qrels" / f"{split}.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}", encoding="utf-8")
    return len(questions) - len(kept)


def judged_hash(folder: Path) -> str:
    """Hash of documents, questions and judgements."""
    return file_hash(folder / "corpus.jsonl", folder / "queries.jsonl", *(folder / "qrels" / f"{name}.tsv" for name in SPLITS))


def _hash(purpose: str, text: str) -> str:
    return hashlib.blake2b(f"{purpose}\n{same(text)}".encode(), digest_size=8).hexdigest()
