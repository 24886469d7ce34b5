"""Reader of DPR's format: question, answers, and lists of contexts, which are passages or passage ids of a corpus.

Two fields extend DPR: the question's `id`, and `teacher_scores` for the positives followed by the hard negatives. The `score`
of each context in DPR's own files is a BM25 score and is not used as a teacher score.
"""

from pathlib import Path
from typing import Any, Literal

from trilens.errors import BadInput
from trilens.read.records import Record
from trilens.read.values import a_list, a_string, an_id, an_object, kind_of, scores, strings
from trilens.train.data.raw_example import InlinePassage, Item, Items, RawExample, Reference
from trilens.train.data.record_files import read_records

Negatives = Literal["hard", "other", "both", "none"]
FIELDS: dict[Negatives, tuple[str, ...]] = {
    "hard": ("hard_negative_ctxs",),
    "other": ("negative_ctxs",),
    "both": ("hard_negative_ctxs", "negative_ctxs"),
    "none": (),
}
ID_FIELDS = ("passage_id", "psg_id", "_id", "id")
SCORES = "teacher_scores"


def read_dpr(path: Path, negatives: Negatives = "hard") -> Items:
    """Read the examples of a JSON or JSONL file."""
    return (_item(record, negatives) for record in read_records(path))


def _item(record: Record | BadInput, negatives: Negatives) -> Item:
    if isinstance(record, BadInput):
        return record
    place, value = record
    try:
        return place, _example(an_object(value), negatives)
    except BadInput as error:
        return BadInput(f"{place}: {error}")


def _example(value: dict[str, Any], negatives: Negatives) -> RawExample:
    negative_contexts = [context for name in FIELDS[negatives] for context in a_list(value, name)]
    teacher = scores(value, SCORES) if negatives == "hard" else None
    return RawExample(
        query=a_string(value, "question", "query"),
        positives=[_reference(context) for context in a_list(value, "positive_ctxs")],
        negatives=[_reference(context) for context in negative_contexts],
        answers=strings(value, "answers"),
        teacher=teacher,
        query_id=an_id(value["id"], "the id") if value.get("id") is not None else "",
    )


def _reference(context: object) -> Reference:
    if not isinstance(context, dict):
        if isinstance(context, str | int) and not isinstance(context, bool):
            return an_id(context, "the id of a passage")
        raise BadInput(f"a context is {kind_of(context)}; expected an object with title and text, or a passage id")
    raw_id = next((context[name] for name in ID_FIELDS if context.get(name) not in (None, "")), None)
    passage_id = None if raw_id is None else an_id(raw_id, "the id of a passage")
    if context.get("text") is None and passage_id is not None:
        return passage_id
    title = "" if context.get("title") is None else a_string(context, "title")
    return InlinePassage(passage_id, title, a_string(context, "text"))
