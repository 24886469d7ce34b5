"""Scores of pairs: what the model receives, batches, truncation, and folders that are none."""

import json
from pathlib import Path

import numpy as np
import pytest

from trilens.cancellation import stop_when
from trilens.encode.cross_encoder import CrossEncoder
from trilens.encode.cross_folder import CrossFolder
from trilens.encode.folder import ModelFolder
from trilens.encode.pair_reading import PairReading
from trilens.encode.tokens import Tokens
from trilens.errors import BadInput, BadModel, Stopped

from .counting_cross import counting_cross, write_tokenizer
from .echo_model import echo_model

TEXTS = ["red fox runs home", "the fox sees the red fox", "a stone"]
CLS, SEP, UNKNOWN, RED, FOX, RUNS, HOME = 1, 2, 3, 4, 5, 6, 7


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return counting_cross(tmp_path / "cross", TEXTS)


def test_scores_by_hand(folder: Path) -> None:
    """fox occurs twice, red once; the closing tokens of query and passage are equal."""
    scores = CrossEncoder(folder).score(["red fox", "stone", "zebra"], [[TEXTS[1], TEXTS[2]], [], [TEXTS[2]]])
    assert [single.tolist() for single in scores] == [[4.0, 1.0], [], [1.0]]


def test_nothing_to_score(folder: Path) -> None:
    encoder = CrossEncoder(folder)
    assert encoder.score([], []) == []
    assert [len(scores) for scores in encoder.score(["red", "fox"], [[], []])] == [0, 0]
    assert len(encoder.score_pairs([])) == 0


def test_a_pair_as_the_model_receives_it(folder: Path) -> None:
    reading = PairReading.of(Tokens(folder / "tokenizer.json"), CrossFolder.open(folder).config)
    inputs = reading.read([("red fox", "fox runs"), ("red fox", "")])
    assert inputs.ids == [[CLS, RED, FOX, SEP, FOX, RUNS, SEP], [CLS, RED, FOX, SEP, SEP]]
    assert inputs.types == [[0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 1]]
    padded = inputs.padded(np.array([1, 0]))
    assert padded["attention_mask"].tolist() == [[1, 1, 1, 1, 1, 0, 0], [1] * 7]
    assert padded["token_type_ids"].tolist() == [[0, 0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 1, 1, 1]]


def test_the_passage_is_truncated_and_a_long_query_as_well(tmp_path: Path) -> None:
    path = counting_cross(tmp_path / "short", TEXTS, max_tokens=9, max_query_tokens=3)
    reading = PairReading.of(Tokens(path / "tokenizer.json"), CrossFolder.open(path).config)
    inputs = reading.read([("red", "red fox runs home red fox runs"), ("red fox runs home", "red fox runs home")])
    assert inputs.ids[0] == [CLS, RED, SEP, RED, FOX, RUNS, HOME, RED, SEP]
    assert inputs.ids[1] == [CLS, RED, FOX, RUNS, SEP, RED, FOX, RUNS, SEP]
    assert CrossEncoder(path).score(["red"], [["red fox runs home red fox runs"]])[0].tolist() == [3.0]


@pytest.mark.parametrize("threads", [1, 3])
def test_a_score_does_not_depend_on_the_batch(tmp_path: Path, threads: int) -> None:
    path = counting_cross(tmp_path / "cross", TEXTS, max_tokens=200)
    rng = np.random.default_rng(0)
    words = ["red", "fox", "runs", "home", "the", "sees", "a", "stone"]
    passages = [" ".join(rng.choice(words, size)) for size in rng.integers(0, 190, 120)]
    encoder = CrossEncoder(path, threads=threads)
    together = encoder.score(["red fox"], [passages])[0]
    expected = [1 + passage.split().count("red") + passage.split().count("fox") for passage in passages]
    assert together.tolist() == expected
    assert [encoder.score(["red fox"], [[passage]])[0][0] for passage in passages[:5]] == expected[:5]


def test_it_stops_between_batches(tmp_path: Path) -> None:
    encoder = CrossEncoder(counting_cross(tmp_path / "cross", TEXTS), threads=1)
    pairs = [("red", "fox " * 60)] * 64
    encoder.score_pairs(pairs)
    left = iter([False])
    with stop_when(lambda: next(left, True)), pytest.raises(Stopped):
        encoder.score_pairs(pairs)


def test_the_fingerprint_changes_with_every_file(folder: Path) -> None:
    before = CrossEncoder(folder).name
    assert before.startswith("counting-") and before == CrossEncoder(folder).name
    description = json.loads((folder / "trilens.json").read_text())
    (folder / "trilens.json").write_text(json.dumps(description | {"max_tokens": 32}))
    assert CrossEncoder(folder).name != before


def test_wrong_folders(tmp_path: Path, folder: Path) -> None:
    encoder = echo_model(tmp_path / "encoder")
    with pytest.raises(BadModel, match="is no cross-encoder; expected a folder that `trilens export` made of one"):
        CrossEncoder(encoder)
    with pytest.raises(BadModel, match="is a cross-encoder, which scores pairs of texts; expected an encoder"):
        ModelFolder.open(folder)
    with pytest.raises(BadModel, match="is not a model folder"):
        CrossEncoder(tmp_path)
    (folder / "model.onnx").unlink()
    with pytest.raises(BadModel, match=r"model.onnx is missing"):
        CrossEncoder(folder)
    description = json.loads((folder / "trilens.json").read_text())
    (folder / "trilens.json").write_text(json.dumps(description | {"heads": ["dense"]}))
    with pytest.raises(BadModel, match="'heads'"):
        CrossEncoder(folder)
    with pytest.raises(BadInput, match="threads is 0"):
        CrossEncoder(folder, threads=0)


def test_a_tokenizer_that_does_not_join_texts(folder: Path) -> None:
    write_tokenizer(folder / "tokenizer.json", TEXTS, types=False)
    form = Tokens(folder / "tokenizer.json")
    with pytest.raises(BadModel, match="does not join two texts"):
        _ = form.pair
