"""Checkpoints in the formats of those who publish them, each against plain transformers and torch."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")
pytest.importorskip("sentence_transformers", reason="training needs sentence-transformers: pip install trilens[train]")

from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer
from torch import Tensor
from torch.nn.functional import normalize
from transformers import AutoModel, DPRConfig, DPRContextEncoder, DPRQuestionEncoder, T5EncoderModel

from tests.train import tiny
from trilens.errors import BadInput, BadModel
from trilens.train.build import build_model
from trilens.train.checkpoints import load_checkpoint
from trilens.train.model import description_of, stacks_of

DIM = 8
ID = {word: at for at, word in enumerate(tiny.BERT_VOCABULARY)}


def outputs(model: SentenceTransformer, task: str = "document", texts: list[str] | None = None) -> dict[str, Any]:
    model.eval()
    with torch.no_grad():
        features = model.preprocess(texts or tiny.TEXTS, task=task)
        return dict(model(features, task=task))


def states_of(encoder: Any, ids: Tensor) -> Tensor:
    """The states of one text alone."""
    with torch.no_grad():
        return encoder.eval()(input_ids=ids[None]).last_hidden_state[0]


def attended(found: Mapping[str, Any], at: int) -> Tensor:
    ids: Tensor = found["input_ids"][at][found["attention_mask"][at].bool()]
    return ids


def same(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


def rename(folder: Path, change: Any, extra: Mapping[str, Tensor] | None = None, binary: bool = False) -> None:
    """Write the tensors of a folder again under other names, with others beside them."""
    tensors = {change(name): tensor for name, tensor in load_file(folder / "model.safetensors").items()} | dict(extra or {})
    (folder / "model.safetensors").unlink()
    if binary:
        torch.save(tensors, folder / "pytorch_model.bin")
    else:
        save_file(
            {name: tensor.contiguous() for name, tensor in tensors.items()}, folder / "model.safetensors", {"format": "pt"}
        )


def edit_json(file: Path, **changes: Any) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def test_a_model_of_our_own(tmp_path: Path) -> None:
    made = build_model(tiny.bert(tmp_path / "bert"), ["dense", "multi"], changes={"multi": {"dim": DIM}})
    made.save_pretrained(str(tmp_path / "saved"), create_model_card=False)
    again = load_checkpoint(tmp_path / "saved")
    assert torch.equal(outputs(made)["multi"], outputs(again)["multi"])
    shorter = load_checkpoint(tmp_path / "saved", changes={"max_doc_tokens": 5})
    assert outputs(shorter)["multi"].shape[1] == 5
    with pytest.raises(BadInput, match="changes has \\['dim'\\]"):
        load_checkpoint(tmp_path / "saved", changes={"dim": 5})


@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("projected", [False, True])
@pytest.mark.parametrize("normalised", [False, True])
def test_sentence_transformers(tmp_path: Path, pooling: Any, projected: bool, normalised: bool) -> None:
    modules: list[Any] = [Transformer(str(tiny.bert(tmp_path / "bert")), max_seq_length=20), Pooling(tiny.HIDDEN, pooling)]
    modules += [Dense(tiny.HIDDEN, 6, bias=pooling == "cls")] if projected else []
    modules += [Normalize()] if normalised else []
    published = SentenceTransformer(modules=modules, prompts={"query": "the quick ", "document": ""})
    published.save_pretrained(str(tmp_path / "published"), create_model_card=False)
    model = load_checkpoint(tmp_path / "published")
    description = description_of(model)
    assert (description.pooling, description.max_doc_tokens, description.query_prefix) == (pooling, 20, "the quick ")
    for task, encode in (("document", published.encode_document), ("query", published.encode_query)):
        same(outputs(model, task)["sentence_embedding"], encode(tiny.TEXTS, convert_to_tensor=True).cpu())
    model.save_pretrained(str(tmp_path / "saved"), create_model_card=False)
    same(outputs(load_checkpoint(tmp_path / "saved"))["sentence_embedding"], outputs(model)["sentence_embedding"])


def test_sentence_transformers_that_do_something_else(tmp_path: Path) -> None:
    published = SentenceTransformer(modules=[Transformer(str(tiny.bert(tmp_path / "bert"))), Pooling(tiny.HIDDEN, "max")])
    published.save_pretrained(str(tmp_path / "max"), create_model_card=False)
    with pytest.raises(BadModel, match="pools by max"):
        load_checkpoint(tmp_path / "max")
    modules = json.loads((tmp_path / "max" / "modules.json").read_text())
    modules[1]["type"] = "sentence_transformers.models.CNN"
    (tmp_path / "max" / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(BadModel, match="names the module CNN"):
        load_checkpoint(tmp_path / "max")


def test_a_plain_encoder(tmp_path: Path) -> None:
    found = outputs(load_checkpoint(tiny.bert(tmp_path)))
    plain = AutoModel.from_pretrained(tmp_path)
    for at in range(3):
        same(found["sentence_embedding"][at], normalize(states_of(plain, attended(found, at)).mean(0), dim=0))


def bge_m3(folder: Path) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    tiny.xlm_roberta(folder)
    multi = {"weight": drawn(DIM, tiny.HIDDEN), "bias": drawn(DIM)}
    lexical = {"weight": drawn(1, tiny.HIDDEN), "bias": torch.tensor([0.2])}
    torch.save(multi, folder / "colbert_linear.pt")
    torch.save(lexical, folder / "sparse_linear.pt")
    return multi, lexical


def test_bge_m3(tmp_path: Path) -> None:
    multi, lexical = bge_m3(tmp_path)
    found = outputs(load_checkpoint(tmp_path))
    plain = AutoModel.from_pretrained(tmp_path)
    for at in range(3):
        ids = attended(found, at)
        states = states_of(plain, ids)
        same(found["sentence_embedding"][at], normalize(states[0], dim=0))
        vectors = normalize(states[1:] @ multi["weight"].T + multi["bias"], dim=1)
        same(found["multi"][at][found["multi_mask"][at]], vectors)
        weights = torch.relu(states @ lexical["weight"][0] + lexical["bias"])
        expected = torch.zeros(found["lexical"].shape[1])
        for id_, weight in zip(ids.tolist(), weights, strict=True):
            if id_ > 3:  # <s> <pad> </s> <unk>
                expected[id_] = max(expected[id_], weight)
        same(found["lexical"][at], expected)


def test_half_a_bge_m3(tmp_path: Path) -> None:
    bge_m3(tmp_path)
    torch.save({"weight": drawn(DIM, tiny.HIDDEN)}, tmp_path / "colbert_linear.pt")
    with pytest.raises(BadModel, match=r"colbert_linear.pt has no bias; expected weight, bias"):
        load_checkpoint(tmp_path)
    torch.save({"weight": drawn(DIM, 5), "bias": drawn(DIM)}, tmp_path / "colbert_linear.pt")
    with pytest.raises(BadModel, match=r"multi.linear.weight \(8, 5\) for \(8, 32\)"):
        load_checkpoint(tmp_path)
    (tmp_path / "colbert_linear.pt").unlink()
    with pytest.raises(BadModel, match=r"has no colbert_linear.pt; expected both"):
        load_checkpoint(tmp_path)


def test_a_pickle_that_runs_code_is_refused(tmp_path: Path) -> None:
    bge_m3(tmp_path)
    torch.save({"weight": Path("x"), "bias": Path("y")}, tmp_path / "colbert_linear.pt")
    with pytest.raises(BadModel, match="cannot be read as plain tensors") as refused:
        load_checkpoint(tmp_path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("binary", [False, True])
def test_colbert(tmp_path: Path, binary: bool) -> None:
    plain, linear = AutoModel.from_pretrained(tiny.bert(tmp_path)), drawn(DIM, tiny.HIDDEN)
    rename(tmp_path, lambda name: f"bert.{name}", {"linear.weight": linear}, binary)
    edit_json(tmp_path / "config.json", architectures=["HF_ColBERT"])
    metadata = {
        "query_maxlen": 12,
        "doc_maxlen": 20,
        "dim": DIM,
        "mask_punctuation": True,
        "attend_to_mask_tokens": False,
        "query_token_id": "[unused0]",
        "doc_token_id": "[unused1]",
        "query_token": "[Q]",
        "similarity": "cosine",
    }
    (tmp_path / "artifact.metadata").write_text(json.dumps(metadata))
    model = load_checkpoint(tmp_path)
    found = outputs(model, "query", ["red fox."])
    ids = [ID[word] for word in ["[CLS]", "[unused0]", "red", "fox", ".", "[SEP]"] + ["[MASK]"] * 6]
    assert found["input_ids"].tolist() == [ids]
    mask = torch.tensor([[1] * 6 + [0] * 6])
    with torch.no_grad():
        states = plain.eval()(input_ids=torch.tensor([ids]), attention_mask=mask).last_hidden_state
    same(found["multi"], normalize(states @ linear.T, dim=-1))
    found = outputs(model)
    for at in range(3):
        ids_of = attended(found, at)
        assert ids_of[:2].tolist() == [ID["[CLS]"], ID["[unused1]"]]
        kept = ~torch.isin(ids_of, torch.tensor([ID[","], ID["."]]))
        same(found["multi"][at][found["multi_mask"][at]], normalize(states_of(plain, ids_of) @ linear.T, dim=1)[kept])
    edit_json(tmp_path / "artifact.metadata", dim=4)
    with pytest.raises(BadModel, match=r"linear.weight for 8 dimensions; artifact.metadata says 4"):
        load_checkpoint(tmp_path)


@pytest.mark.parametrize("layout", ["inside", "beside", "beside and pooled"])
def test_xtr(tmp_path: Path, layout: str) -> None:
    """As google/xtr-base-en has it, the linear layer lies in 2_Dense; PyLate and others keep it among the tensors."""
    folder = tiny.t5(tmp_path / "xtr-tiny-en")
    plain, linear = T5EncoderModel.from_pretrained(folder), drawn(DIM, tiny.HIDDEN)
    if layout == "inside":
        rename(folder, str, {"linear.weight": linear})
    else:
        (folder / "2_Dense").mkdir()
        torch.save({"linear.weight": linear}, folder / "2_Dense" / "pytorch_model.bin")
    if layout == "beside and pooled":
        (folder / "1_Pooling").mkdir()
    model = load_checkpoint(folder)
    found = outputs(model, texts=["The QUICK Fox."])
    tokens = stacks_of(model)["query"].backbone.tokens
    assert tokens.texts(found["input_ids"][0].tolist()) == ["the", "quick", "fox", ".", "</s>"]  # not Fox, which it has too
    same(found["multi"][0], normalize(states_of(plain, found["input_ids"][0]) @ linear.T, dim=1))
    model.save_pretrained(str(tmp_path / "saved"), create_model_card=False)
    assert torch.equal(outputs(load_checkpoint(tmp_path / "saved"), texts=["The QUICK Fox."])["multi"], found["multi"])


def test_colxtr(tmp_path: Path) -> None:
    plain, linear = T5EncoderModel.from_pretrained(tiny.t5(tmp_path)), drawn(DIM, tiny.HIDDEN)
    rename(tmp_path, str, {"bottleneck.weight": linear})
    edit_json(tmp_path / "config.json", architectures=["XTR"], dim=DIM)
    found = outputs(load_checkpoint(tmp_path), texts=["red Fox", "a stone under the tree"])
    for at, first in ((0, "▁Document"), (1, "▁Document")):
        ids = attended(found, at)
        vectors = states_of(plain, ids) @ linear.T
        expected = torch.cat([vectors[:-1], vectors.mean(0, keepdim=True)])
        same(found["multi"][at][found["multi_mask"][at]], expected)
        assert first == json.loads((tmp_path / "tokenizer.json").read_text())["model"]["vocab"][int(ids[0])][0]


def vsearch(folder: Path, kind: str, shared: bool) -> tuple[Path, list[dict[str, Tensor]]]:
    """A folder as `Retriever.save_pretrained` leaves it; the tokenizer is that of the model it began with."""
    bases = [tiny.bert(folder / f"base{seed}", seed) for seed in range(1 if shared else 2)]
    tensors = [
        {f"bert_model.{name}": tensor for name, tensor in load_file(base / "model.safetensors").items() if "pooler" not in name}
        for base in bases
    ]
    for at, tower in enumerate(tensors if kind == "vdr" else []):
        tower |= {"ln.weight": 1 + drawn(tiny.HIDDEN + at).abs(), "ln.bias": drawn(tiny.HIDDEN + at)[: tiny.HIDDEN]}
        tower["ln.weight"] = tower["ln.weight"][: tiny.HIDDEN].contiguous()
    encoder = {"type": kind, "model_id": str(bases[0]), "max_len": 20}
    if kind == "vdr":
        encoder |= {"norm": False, "shift_vocab_num": tiny.BERT_SHIFT, "topk": 6, "pooling": "max", "pooling_topk": None}
    config = {
        "architectures": ["Retriever"],
        "encoder_q": encoder,
        "encoder_p": encoder | {"max_len": 30},
        "max_length": 512,
        "shared_encoder": shared,
    }
    target = folder / "retriever"
    target.mkdir()
    (target / "config.json").write_text(json.dumps(config))
    both = {f"encoder_q.{name}": tensor for name, tensor in tensors[0].items()}
    both |= {f"encoder_p.{name}": tensor for name, tensor in tensors[-1].items()}
    if shared:
        torch.save(both, target / "pytorch_model.bin")
    else:
        save_file(both, target / "model.safetensors")
    return target, tensors


@pytest.mark.parametrize("shared", [False, True])
def test_vdr_of_vsearch(tmp_path: Path, shared: bool) -> None:
    folder, tensors = vsearch(tmp_path, "vdr", shared)
    model = load_checkpoint(folder)
    description = description_of(model)
    assert description.sparse is not None and description.sparse.top == 6
    assert (description.max_query_tokens, description.max_doc_tokens) == (20, 30)
    for task, at_tower in (("query", 0), ("document", -1)):
        found, tower = outputs(model, task), tensors[at_tower]
        plain = AutoModel.from_pretrained(tmp_path / f"base{0 if shared or task == 'query' else 1}")
        for at in range(3):
            states = states_of(plain, attended(found, at))
            states = torch.nn.functional.layer_norm(states, (tiny.HIDDEN,), tower["ln.weight"], tower["ln.bias"])
            words = tower["bert_model.embeddings.word_embeddings.weight"][tiny.BERT_SHIFT :]
            same(found["sparse"][at], (torch.nn.functional.elu(states @ words.T) + 1).amax(0))


def test_a_file_of_vsearch(tmp_path: Path) -> None:
    folder, _ = vsearch(tmp_path, "vdr", False)
    settings = json.loads((folder / "config.json").read_text())
    tensors = load_file(folder / "model.safetensors")
    torch.save({"model_dict": tensors, "epoch": 3, "encoder_params": settings}, tmp_path / "vdr_3.pt")
    same(outputs(load_checkpoint(tmp_path / "vdr_3.pt"))["sparse"], outputs(load_checkpoint(folder))["sparse"])


def test_dpr_of_vsearch(tmp_path: Path) -> None:
    folder, _ = vsearch(tmp_path, "dpr", False)
    model = load_checkpoint(folder)
    for task, base in (("query", "base0"), ("document", "base1")):
        found, plain = outputs(model, task), AutoModel.from_pretrained(tmp_path / base)
        for at in range(3):
            same(found["sentence_embedding"][at], states_of(plain, attended(found, at))[0])


def test_vsearch_without_what_it_needs(tmp_path: Path) -> None:
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
    config = DPRConfig(**tiny.bert_config().to_diff_dict(), projection_dim=projection)
    halves = {"question_encoder": DPRQuestionEncoder, "ctx_encoder": DPRContextEncoder}
    published = {}
    for seed, (name, kind) in enumerate(halves.items()):
        torch.manual_seed(seed)
        published[name] = kind(config).eval()
        folder = tmp_path / f"dpr-{name}-tiny"
        published[name].save_pretrained(folder)
        base = tiny.bert(tmp_path / "base")
        for file in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copy(base / file, folder / file)
    questions, passages = (tmp_path / f"dpr-{name}-tiny" for name in halves)
    assert any(name.startswith("question_encoder.bert_model.") for name in load_file(questions / "model.safetensors"))
    for model in (load_checkpoint(questions), load_checkpoint(questions, passages)):
        for task, name in (("query", "question_encoder"), ("document", "ctx_encoder")):
            found = outputs(model, task)
            for at in range(3):
                with torch.no_grad():
                    expected = published[name](input_ids=attended(found, at)[None]).pooler_output[0]
                same(found["sentence_embedding"][at], expected)
    with pytest.raises(BadModel, match="expected first the encoder of questions"):
        load_checkpoint(passages, questions)
    with pytest.raises(BadModel, match="and no other are not the two encoders of a DPR"):
        load_checkpoint(passages)


def test_a_file_of_dpr(tmp_path: Path) -> None:
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
        found, plain = outputs(model, task), AutoModel.from_pretrained(base)
        for at in range(3):
            same(found["sentence_embedding"][at], states_of(plain, attended(found, at))[0])


def test_what_is_no_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadModel, match=r"has no config.json with a model_type"):
        load_checkpoint(tmp_path)
    torch.save({"state": drawn(3)}, tmp_path / "x.pt")
    with pytest.raises(BadModel, match=r"holds \['state'\]; expected model_dict"):
        load_checkpoint(tmp_path / "x.pt")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(BadModel, match=r"there is no folder .*nowhere/at/all"):
        load_checkpoint(tmp_path / "nowhere/at/all")
