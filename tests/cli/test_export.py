"""The export command."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the originals run in torch: pip install trilens[train]")
pytest.importorskip("onnx", reason="part of trilens[export]")

from ..export.tiny import write_plain, write_texts, write_trained
from .conftest import Trilens


def test_a_trained_folder_becomes_a_model_that_searches(tmp_path: Path, corpus: Path, trilens: Trilens) -> None:
    write_trained(tmp_path / "weights")
    done = trilens("export", tmp_path / "weights", tmp_path / "mine", "--precision", "float32")
    assert done.code == 0, done.err
    assert "dense, multi, sparse, lexical; float32" in done.out and "cosine with the original 1.00000" in done.out
    path = tmp_path / "c.trilens"
    assert trilens("index", corpus, "--to", path, "--lens", "dense", "--model", tmp_path / "mine").code == 0
    assert len(trilens("search", path, "w1 w2", "--json").json["hits"]) == 3


def test_in_json_and_without_a_check(tmp_path: Path, trilens: Trilens) -> None:
    write_plain(tmp_path / "weights")
    file = write_texts(tmp_path / "texts.jsonl")
    arguments = ("export", tmp_path / "weights", tmp_path / "mine", "--texts", file, "--multi-dims", 8, "--json")
    done = trilens(*arguments, "--multi", json.dumps({"skip_special": False}), "--licence", "MIT", "--source", "here")
    found = done.json
    assert found["config"]["multi"]["dim"] == 8 and found["config"]["multi"]["skip_special"] is False
    assert (found["config"]["licence"], found["config"]["source"]) == ("MIT", "here")
    assert [one["head"] for one in found["agreement"]] == ["dense", "multi"]
    assert set(found["bytes"]) == {"model.int8.onnx", "tokenizer.json", "trilens.json"}
    assert trilens(*arguments, "--force", "--no-check").json["agreement"] is None


def test_without_torch_it_says_that_it_was_not_checked(
    tmp_path: Path, trilens: Trilens, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trilens.export.folder.can_check", lambda: False)
    write_plain(tmp_path / "weights")
    done = trilens("export", tmp_path / "weights", tmp_path / "mine", "--precision", "int8-weights")
    assert done.code == 0 and "not checked against the original: that needs torch" in done.err
    assert "Not checked" in (tmp_path / "mine" / "README.md").read_text()


def test_one_head_as_a_model_of_sentence_transformers(tmp_path: Path, trilens: Trilens) -> None:
    write_plain(tmp_path / "weights")
    arguments = ("export", tmp_path / "weights", tmp_path / "plain", "--format", "sentence-transformers")
    done = trilens(*arguments)
    assert done.code == 0 and "plain: dense, for sentence_transformers.SentenceTransformer" in done.out
    kinds = [module["type"] for module in json.loads((tmp_path / "plain" / "modules.json").read_text())]
    assert kinds and all(kind.startswith("sentence_transformers.") for kind in kinds)
    for more, says in (
        ([], "is not empty"),
        (["--head", "sparse", "--force"], "the model has no head 'sparse'; expected one of dense"),
        (["--precision", "int8"], "--precision does not apply to --format sentence-transformers"),
    ):
        refused = trilens(*arguments, *more)
        assert refused.code == 1 and says in refused.err
    assert trilens(*arguments, "--head", "dense", "--force").code == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nothing", "made"], "there is no folder nothing"),
        (["weights", "weights"], "which would be replaced"),
        (["weights", "made", "--head", "dense"], "a model folder of trilens takes --heads"),
        (["weights", "made", "--multi", "3"], "--multi is '3'; expected a JSON object"),
        (["weights", "made", "--multi", "{"], "--multi is '{'; expected a JSON object"),
        (["weights", "made", "--texts", "none.jsonl"], "none.jsonl does not exist"),
        (["weights", "made", "--vdr"], "the vocabulary shift is 999"),
    ],
)
def test_what_is_refused(
    arguments: list[str], says: str, tmp_path: Path, trilens: Trilens, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_plain(tmp_path / "weights")
    outcome = trilens("export", *arguments)
    assert (outcome.code, outcome.out) == (1, "")
    assert says in outcome.err and outcome.err.count("\n") == 1
    assert not (tmp_path / "made").exists()
