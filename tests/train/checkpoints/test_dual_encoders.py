"""VDR and DPR of vsearch and Facebook against plain transformers."""

import json
import shutil
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")
pytest.importorskip("sentence_transformers", reason="training needs sentence-transformers: pip install trilens[train]")

from safetensors.torch import load_file, save_file
from transformers import AutoModel

from tests.train import tiny
from trilens.errors import BadModel
from trilens.train.checkpoints import load_checkpoint
from trilens.train.model import description_of

from .published import attended, dpr_halves, edit_json, outputs, same, states_of, vsearch


@pytest.mark.parametrize("shared", [False, True])
def test_vdr_of_vsearch(tmp_path: Path, shared: bool) -> None:
    folder, tensors = vsearch(tmp_path, "vdr", shared)
    model = load_checkpoint(folder)
    description = description_of(model)
    assert description.sparse is not None and description.sparse.top == 6
    assert (description.max_query_tokens, description.max_doc_tokens) == (20, 30)
    for task, at_tower in (("query", 0), ("document", -1)):
        actual, tower = outputs(model, task), tensors[at_tower]
        plain = AutoModel.from_pretrained(tmp_path / f"base{0 if shared or task == 'query' else 1}")
        for index in range(3):
            states = states_of(plain, attended(actual, index))
            states = torch.nn.functional.layer_norm(states, (tiny.HIDDEN,), tower["ln.weight"], tower["ln.bias"])
            words = tower["bert_model.embeddings.word_embeddings.weight"][tiny.BERT_SHIFT :]
            same(actual["sparse"][index], (torch.nn.functional.elu(states @ words.T) + 1).amax(0))


def test_vsearch_file(tmp_path: Path) -> None:
    folder, _ = vsearch(tmp_path, "vdr", False)
    settings = json.loads((folder / "config.json").read_text())
    tensors = load_file(folder / "model.safetensors")
    torch.save({"model_dict": tensors, "epoch": 3, "encoder_params": settings}, tmp_path / "vdr_3.pt")
    same(outputs(load_checkpoint(tmp_path / "vdr_3.pt"))["sparse"], outputs(load_checkpoint(folder))["sparse"])


def test_dpr_of_vsearch(tmp_path: Path) -> None:
    folder, _ = vsearch(tmp_path, "dpr", False)
    model = load_checkpoint(folder)
    for task, base in (("query", "base0"), ("document", "base1")):
        actual, plain = outputs(model, task), AutoModel.from_pretrained(tmp_path / base)
        for index in range(3):
            same(actual["sentence_embedding"][index], states_of(plain, attended(actual, index))[0])


def test_incomplete_vsearch_folders(tmp_path: Path) -> None:
    folder, _ = vsearch(tmp_path, "vdr", False)
    tensors = load_file(folder / "model.safetensors")
    del tensors["encoder_p.ln.bias"], tensors["encoder_q.bert_model.encoder.layer.1.attention.self.key.weight"]
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(BadModel, match=r"no encoder.layer.1.attention.self.key.weight"):
        load_checkpoint(folder)
    shutil.rmtree(tmp_path / "base0")
    with pytest.raises(BadModel, match=r"has no tokenizer.json, and .*base0 cannot be found"):
        load_checkpoint(folder)
    config = json.loads((folder / "config.json").read_text())
    edit_json(folder / "config.json", encoder_q=config["encoder_q"] | {"type": "vdr_crossmodal_text"})
    with pytest.raises(BadModel, match="type vdr_crossmodal_text and vdr"):
        load_checkpoint(folder)


@pytest.mark.parametrize("projection", [0, 6])
def test_dpr_of_facebook(tmp_path: Path, projection: int) -> None:
    published = dpr_halves(tmp_path, projection)
    questions, passages = (tmp_path / f"dpr-{name}-tiny" for name in published)
    assert any(name.startswith("question_encoder.bert_model.") for name in load_file(questions / "model.safetensors"))
    for model in (load_checkpoint(questions), load_checkpoint(questions, passages)):
        for task, name in (("query", "question_encoder"), ("document", "ctx_encoder")):
            actual = outputs(model, task)
            for index in range(3):
                with torch.no_grad():
                    expected = published[name](input_ids=attended(actual, index)[None]).pooler_output[0]
                same(actual["sentence_embedding"][index], expected)
    with pytest.raises(BadModel, match="expected the question encoder first"):
        load_checkpoint(passages, questions)
    with pytest.raises(BadModel, match="and no other are not the two encoders of a DPR"):
        load_checkpoint(passages)


def test_dpr_file(tmp_path: Path) -> None:
    bases = [tiny.bert(tmp_path / f"base{seed}", seed) for seed in range(2)]
    tensors = {
        f"{name}.{key}": tensor
        for name, base in zip(("question_model", "ctx_model"), bases, strict=True)
        for key, tensor in load_file(base / "model.safetensors").items()
    }
    settings = {"pretrained_model_cfg": str(bases[0]), "sequence_length": 30, "projection_dim": 0}
    torch.save({"model_dict": tensors, "optimizer_dict": {}, "encoder_params": settings}, tmp_path / "dpr_biencoder.37")
    model = load_checkpoint(tmp_path / "dpr_biencoder.37")
    for task, base in (("query", bases[0]), ("document", bases[1])):
        actual, plain = outputs(model, task), AutoModel.from_pretrained(base)
        for index in range(3):
            same(actual["sentence_embedding"][index], states_of(plain, attended(actual, index))[0])
