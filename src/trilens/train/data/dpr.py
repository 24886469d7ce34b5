"""DPR's format: question, answers, and lists of contexts, which are passages or ids of passages in a corpus.

Two fields go beyond DPR: `id` of the question, and `teacher_scores`, of the positives and then of the hard negatives. The
`score` that DPR's own files give each context is a BM25 score, so it is not taken for one of a teacher.
"""

from pathlib import Path
from typing import Any, Literal

from trilens.errors import BadInput
from trilens.text.records import Record
from trilens.text.values import a_list, a_string, an_id, an_object, kind_of, scores, strings
from trilens.train.data.example import Example, InlinePassage, Item, Items, Reference
from trilens.train.data.rows import read_rows

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
    """The examples of a file in JSON or JSONL."""
    return (_item(record, negatives) for record in read_rows(path))


def _item(record: Record | BadInput, negatives: Negatives) -> Item:
    if isinstance(record, BadInput):
        return record
    place, value = record
    try:
        return place, _example(an_object(value), negatives)
    except BadInput as error:
        return BadInput(f"{place}: {error}")


def _example(value: dict[str, Any], negatives: Negatives) -> Example:
    chosen = [context for name in FIELDS[negatives] for context in a_list(value, name)]
    teacher = scores(value, SCORES) if negatives == "hard" else None
    return Example(
        query=a_string(value, "question", "query"),
        positives=[_reference(context) for context in a_list(value, "positive_ctxs")],
        negatives=[_reference(context) for context in chosen],
        answers=strings(value, "answers"),
        teacher=teacher,
        query_id=an_id(value["id"], "the id") if value.get("id") is not None else "",
    )


def _reference(context: object) -> Reference:
    if not isinstance(context, dict):
        if isinstance(context, str | int) and not isinstance(context, bool):
            return an_id(context, "the id of a passage")
        raise BadInput(f"a context is {kind_of(context)}; expected an object with title and text, or the id of a passage")
    named = next((context[name] for name in ID_FIELDS if context.get(name) not in (None, "")), None)
    passage_id = None if named is None else an_id(named, "the id of a passage")
    if context.get("text") is None and passage_id is not None:
        return passage_id
    title = "" if context.get("title") is None else a_string(context, "title")
    return InlinePassage(passage_id, title, a_string(context, "text"))
