from pathlib import Path

import pytest

from trilens.encode.folder import ModelFolder
from trilens.encode.reading import ModelInputs, Reading, Side
from trilens.encode.tokens import Tokens
from trilens.errors import BadModel

from .echo_model import WORDS, echo_model

COLBERT = {
    "query_tokens": 8,
    "mask_token": "[MASK]",
    "query_marker": "[Q]",
    "doc_marker": "[D]",
    "skip_punctuation": True,
    "skip_special": False,
}


def reading(folder: Path, side: Side, *, fill: bool = True, special: bool = True, **changes: object) -> Reading:
    model = ModelFolder.open(echo_model(folder / "model", special=special, **changes))
    return Reading(Tokens(model.tokenizer), model.config, side, fill)


def words(inputs: ModelInputs) -> list[str]:
    return [" ".join(WORDS[id_] for id_ in row) for row in inputs.ids]


def kept_words(how: Reading, texts: list[str]) -> list[str]:
    kept = how.kept(how.read(texts))
    shown = [WORDS[id_] for id_ in kept.tokens]
    for text in range(len(texts)):
        assert kept.row(text).sum() == kept.offsets[text + 1] - kept.offsets[text]
    return [" ".join(shown[kept.offsets[text] : kept.offsets[text + 1]]) for text in range(len(texts))]


def test_a_plain_model_reads_special_tokens_and_words(tmp_path: Path) -> None:
    inputs = reading(tmp_path, "doc").read(["red fox, runs.", ""])
    assert words(inputs) == ["[CLS] red fox , runs . [SEP]", "[CLS] [SEP]"]
    assert inputs.lengths == inputs.attended == [7, 2]
    assert inputs.truncated == 0


def test_the_marker_follows_the_opening_token(tmp_path: Path) -> None:
    assert words(reading(tmp_path / "a", "doc", multi=COLBERT).read(["red", ""])) == [
        "[CLS] [D] red [SEP]",
        "[CLS] [D] [SEP]",
    ]
    assert words(reading(tmp_path / "b", "query", fill=False, multi=COLBERT).read(["red"])) == ["[CLS] [Q] red [SEP]"]


def test_without_special_tokens_the_marker_comes_first(tmp_path: Path) -> None:
    assert words(reading(tmp_path, "doc", special=False, multi=COLBERT).read(["red fox", ""])) == ["[D] red fox", "[D]"]


def test_short_queries_are_filled_and_long_ones_kept(tmp_path: Path) -> None:
    inputs = reading(tmp_path, "query", multi=COLBERT).read(["red", "red fox runs home", "red " * 5, "fox " * 6, "fox " * 10])
    assert words(inputs) == [
        "[CLS] [Q] red [SEP] [MASK] [MASK] [MASK] [MASK]",
        "[CLS] [Q] red fox runs home [SEP] [MASK]",
        "[CLS] [Q] red red red red red [SEP]",
        "[CLS] [Q] fox fox fox fox fox fox [SEP]",  # longer than query_tokens, shorter than max_query_tokens
        "[CLS] [Q] fox fox fox fox fox fox fox fox fox [SEP]",
    ]
    assert inputs.lengths == inputs.attended == [4, 7, 8, 9, 12]
    assert inputs.truncated == 1


def test_filling_can_be_attended_to(tmp_path: Path) -> None:
    attended = {**COLBERT, "attend_to_mask": True}
    inputs = reading(tmp_path / "a", "query", multi=attended).read(["red", "fox " * 7])
    assert (inputs.lengths, inputs.attended) == ([4, 10], [8, 10])
    # It changes what the other tokens become, so it is there for every head.
    assert reading(tmp_path / "b", "query", fill=False, multi=attended).read(["red"]).attended == [8]


def test_documents_are_not_filled(tmp_path: Path) -> None:
    assert words(reading(tmp_path, "doc", multi=COLBERT).read(["red"])) == ["[CLS] [D] red [SEP]"]


def test_lengths_count_special_tokens_and_markers(tmp_path: Path) -> None:
    how = reading(tmp_path, "doc", max_doc_tokens=6, multi=COLBERT)
    inputs = how.read(["red fox runs", "red fox runs home"])
    assert words(inputs) == ["[CLS] [D] red fox runs [SEP]"] * 2
    assert inputs.truncated == 1


def test_prefixes_come_after_the_marker(tmp_path: Path) -> None:
    assert words(reading(tmp_path, "doc", doc_prefix="home ", multi=COLBERT).read(["red"])) == ["[CLS] [D] home red [SEP]"]


@pytest.mark.parametrize(
    ("side", "changes", "expected"),
    [
        ("doc", {}, "[CLS] red , fox [SEP]"),
        ("doc", {"skip_punctuation": True}, "[CLS] red fox [SEP]"),
        ("doc", {"skip_special": True}, "red , fox"),
        ("doc", {"skip_first": True}, "red , fox [SEP]"),
        ("doc", {"skip_first": True, "skip_special": True}, "red , fox"),
        ("doc", {"skip_special": True, "doc_marker": "[D]"}, "[D] red , fox"),
        ("doc", {"skip_punctuation": True, "doc_marker": "."}, "[CLS] . red fox [SEP]"),
        ("query", {"skip_punctuation": True}, "[CLS] red , fox [SEP]"),
        ("query", {"skip_special": True, "query_tokens": 7, "mask_token": "[MASK]"}, "red , fox [MASK] [MASK]"),
        ("query", {"skip_first": True, "query_tokens": 7, "mask_token": "[MASK]"}, "red , fox [SEP] [MASK] [MASK]"),
        (
            "query",
            {"skip_special": True, "query_tokens": 7, "mask_token": "[MASK]", "attend_to_mask": True},
            "red , fox [MASK] [MASK]",
        ),
    ],
)
def test_which_tokens_get_a_vector(tmp_path: Path, side: Side, changes: dict[str, object], expected: str) -> None:
    how = reading(tmp_path, side, multi=changes)
    assert kept_words(how, ["red, fox"]) == [expected]
    assert kept_words(how, ["runs", "red, fox", ""])[1] == expected


def test_special_tokens_that_stand_in_the_text_are_kept(tmp_path: Path) -> None:
    """Only their places make tokens special: a query may well be about [SEP]."""
    how = reading(tmp_path, "doc", multi={"skip_special": True})
    inputs = ModelInputs(ids=[[1, 10, 2, 11, 2]], lengths=[5], attended=[5], truncated=0)
    assert how.kept(inputs).row(0).tolist() == [False, True, True, True, False]


def test_a_text_may_keep_no_token(tmp_path: Path) -> None:
    how = reading(tmp_path, "doc", multi={"skip_punctuation": True, "skip_special": True})
    assert kept_words(how, [",.", "red", "", "$ — ,"]) == ["", "red", "", ""]
    assert how.kept(how.read([])).offsets.tolist() == [0]


@pytest.mark.parametrize(("field", "side"), [("query_marker", "query"), ("doc_marker", "doc"), ("mask_token", "query")])
def test_a_token_that_the_vocabulary_lacks_is_named(tmp_path: Path, field: str, side: Side) -> None:
    with pytest.raises(BadModel, match=rf"no token '\[X\]', which multi\.{field} names"):
        reading(tmp_path, side, multi={**COLBERT, field: "[X]"})
