"""A trainable model: its inputs, its head outputs, and its files."""

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")
pytest.importorskip("sentence_transformers", reason="training needs sentence-transformers: pip install trilens[train]")

from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, T5EncoderModel

from tests.train import tiny
from trilens.errors import BadInput, BadModel
from trilens.train.build import build_model
from trilens.train.model import Heads, description_of, load_model, stacks_of

COLBERT = {
    "dim": 8,
    "query_tokens": 10,
    "mask_token": "[MASK]",
    "query_marker": "[unused0]",
    "doc_marker": "[unused1]",
    "skip_special": False,
}
LONG = "the slow owl runs over the river and the tree"
ID = {word: index for index, word in enumerate(tiny.BERT_VOCABULARY)}


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="module")
def model(bert: Path) -> SentenceTransformer:
    return build_model(bert, tiny.ALL, changes={"multi": COLBERT, "doc_prefix": "a : "}).eval()


def words(ids: Any) -> list[str]:
    return [tiny.BERT_VOCABULARY[id_] for id_ in ids.tolist()]


def test_query_tokens(model: SentenceTransformer) -> None:
    features = model.preprocess(["red fox,", LONG], task="query")
    first, second = features["input_ids"]
    assert words(first) == ["[CLS]", "[unused0]", "red", "fox", ",", "[SEP]", *["[MASK]"] * 4, *["[PAD]"] * 3]
    assert features["attention_mask"][0].tolist() == [1] * 6 + [0] * 7
    assert features["kept"][0].tolist() == [True] * 10 + [False] * 3
    assert words(first[features["own"][0]]) == ["red", "fox", ","]
    assert features["attention_mask"][1].tolist() == [1] * 13
    assert words(second[features["own"][1]]) == [*LONG.split()]


def test_document_tokens(model: SentenceTransformer) -> None:
    features = model.preprocess(["red fox, [MASK]"], task="document")
    assert words(features["input_ids"][0]) == ["[CLS]", "[unused1]", "a", ":", "red", "fox", ",", "[MASK]", "[SEP]"]
    assert words(features["input_ids"][0][features["kept"][0]]) == ["[CLS]", "[unused1]", "a", "red", "fox", "[MASK]", "[SEP]"]
    assert words(features["input_ids"][0][features["own"][0]]) == ["red", "fox", ","]  # no prefix, nothing special


def test_shorter_maximum_length(model: SentenceTransformer) -> None:
    assert words(model.preprocess(["red fox runs home"], task="document", max_length=6)["input_ids"][0])[-2:] == [
        "red",
        "[SEP]",
    ]
    assert model.preprocess(["red fox runs home"], task="query", max_length=6)["input_ids"].shape == (1, 6)
    assert model.preprocess(["red fox runs home"], task="query")["input_ids"].shape == (1, 10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({}, "task is None"), ({"task": "doc"}, "task is 'doc'"), ({"task": "query", "prompt": "q: "}, "prompt is 'q: '")],
)
def test_invalid_inputs(model: SentenceTransformer, arguments: dict[str, str], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        model.preprocess(["red"], **arguments)


def test_all_heads_against_plain_torch(model: SentenceTransformer, bert: Path) -> None:
    features = model.preprocess(tiny.TEXTS, task="document")
    actual = model(dict(features))
    plain = AutoModel.from_pretrained(bert, add_pooling_layer=False).eval()
    heads = stacks_of(model)["document"].heads.state_dict()
    vocabulary = plain.embeddings.word_embeddings.weight
    for index in range(len(tiny.TEXTS)):
        length = int(features["attention_mask"][index].sum())
        ids = features["input_ids"][index, :length]
        states = plain(input_ids=ids[None]).last_hidden_state[0]
        mean = states.mean(0)
        torch.testing.assert_close(actual["sentence_embedding"][index], mean / mean.norm())
        vectors = states @ heads["multi.linear.weight"].T
        vectors = vectors / vectors.norm(dim=1, keepdim=True)
        kept = actual["multi_mask"][index]
        torch.testing.assert_close(actual["multi"][index][kept], vectors[kept[:length]])
        assert not actual["multi"][index][~kept].any()
        layered = (
            torch.nn.functional.layer_norm(states, (tiny.HIDDEN,)) * heads["sparse.norm.weight"] + heads["sparse.norm.bias"]
        )
        best = (layered @ vocabulary[tiny.BERT_SHIFT :].T).amax(0)
        torch.testing.assert_close(actual["sparse"][index], torch.where(best > 0, best + 1, best.exp()), atol=1e-5, rtol=1e-5)
        weights = torch.relu(states @ heads["lexical.linear.weight"][0] + heads["lexical.linear.bias"])
        expected, bag = torch.zeros(len(ID)), torch.zeros(len(ID))
        for place in range(length):
            if features["own"][index, place]:
                expected[ids[place]] = max(expected[ids[place]], weights[place])
                bag[ids[place]] = 1
        torch.testing.assert_close(actual["lexical"][index], expected)
        assert torch.equal(actual["bags"][index], bag[tiny.BERT_SHIFT :])


def test_only_wanted_heads_are_computed(model: SentenceTransformer) -> None:
    actual = model(model.preprocess(["red"], task="query") | {"wanted": ["lexical"]})
    assert "lexical" in actual and not actual.keys() & {"sentence_embedding", "multi", "sparse", "bags", "word_embeddings"}
    with pytest.raises(BadInput, match="'colbert' is wanted"):
        model(model.preprocess(["red"], task="query") | {"wanted": ["colbert"]})


def test_gradients_reach_the_tied_embeddings(model: SentenceTransformer) -> None:
    actual = model(model.preprocess(["red fox"], task="query"))
    actual["sparse"].sum().backward()
    gradient = stacks_of(model)["query"].backbone.model.get_input_embeddings().weight.grad
    assert gradient[ID["river"]].any()  # a word that no text has
    model.zero_grad()


@pytest.mark.parametrize("towers", ["shared", "separate"])
def test_save_and_load(bert: Path, tmp_path: Path, towers: Any) -> None:
    made = build_model(bert, tiny.ALL, towers, {"multi": COLBERT, "max_doc_tokens": 20}).eval()
    if towers == "separate":
        with torch.no_grad():
            tiny.heads_of(made).multi.linear.weight *= -1
    made.save_pretrained(str(tmp_path / "saved"), create_model_card=False)
    again = load_model(tmp_path / "saved").eval()
    assert description_of(again) == description_of(made)
    trusted = SentenceTransformer(str(tmp_path / "saved"), trust_remote_code=True).eval()
    for task in ("query", "document"):
        outputs = [each(each.preprocess(tiny.TEXTS, task=task), task=task) for each in (made, again, trusted)]
        for name in ("sentence_embedding", "multi", "sparse", "lexical", "bags"):
            assert torch.equal(outputs[0][name], outputs[1][name])
            assert torch.equal(outputs[0][name], outputs[2][name])
    assert (stacks_of(again)["query"].backbone is stacks_of(again)["document"].backbone) == (towers == "shared")


def test_files_on_disk(model: SentenceTransformer, tmp_path: Path, bert: Path) -> None:
    model.save_pretrained(str(tmp_path), create_model_card=False)
    assert json.loads((tmp_path / "1_Heads" / "config.json").read_text()) == description_of(model).model_dump(
        mode="json", by_alias=True
    )
    shapes = {name: tuple(tensor.shape) for name, tensor in load_file(tmp_path / "1_Heads" / "model.safetensors").items()}
    assert shapes == {
        "multi.linear.weight": (8, tiny.HIDDEN),
        "sparse.norm.weight": (tiny.HIDDEN,),
        "sparse.norm.bias": (tiny.HIDDEN,),
        "lexical.linear.weight": (1, tiny.HIDDEN),
        "lexical.linear.bias": (1,),
    }
    read = {folder: json.loads((folder / "tokenizer.json").read_text()) for folder in (tmp_path, bert)}
    assert read[tmp_path] == read[bert] | {"padding": None, "truncation": None}
    plain = AutoModel.from_pretrained(tmp_path)  # anyone's tools read the backbone
    torch.testing.assert_close(
        plain.embeddings.word_embeddings.weight, stacks_of(model)["query"].backbone.model.get_input_embeddings().weight
    )


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "1_Heads" / "model.safetensors").unlink(), "has no config.json or no model.safetensors"),
        (lambda folder: (folder / "1_Heads" / "config.json").write_text('{"name": "x"}'), "config.json: heads"),
        (lambda folder: (folder / "modules.json").write_text("[]"), "consists of"),
        (lambda folder: (folder / "modules.json").write_text("{"), "cannot be read"),
    ],
)
def test_damaged_folders(model: SentenceTransformer, tmp_path: Path, damage: Any, message: str) -> None:
    model.save_pretrained(str(tmp_path), create_model_card=False)
    damage(tmp_path)
    with pytest.raises(BadModel, match=message):
        load_model(tmp_path)


def test_missing_tensors_are_reported_by_name(bert: Path, tmp_path: Path) -> None:
    from safetensors.torch import save_file

    for file in bert.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    tensors = load_file(bert / "model.safetensors")
    del tensors["encoder.layer.1.output.dense.bias"]
    tensors["embeddings.LayerNorm.weight"] = torch.ones(5)
    save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(BadModel, match=r"LayerNorm.weight \(5,\) for \(32,\), no encoder.layer.1.output.dense.bias"):
        build_model(tmp_path)


def test_t5_and_xlm_roberta(tmp_path: Path) -> None:
    """T5 has more embeddings than tokens and no opening token; XLM-R's positions start at 2."""
    for name in ("t5", "xlm_roberta"):
        made = build_model(getattr(tiny, name)(tmp_path / name), tiny.ALL, changes={"multi": {"dim": 8}}).eval()
        size = stacks_of(made)["query"].backbone.tokens.size
        description = description_of(made)
        assert description.sparse is not None and description.sparse.shift == {"t5": 3, "xlm_roberta": 4}[name]
        assert description.max_doc_tokens == {"t5": 512, "xlm_roberta": tiny.PLACES}[name]
        together = made(made.preprocess(tiny.TEXTS, task="document"))
        assert together["sparse"].shape == together["bags"].shape == (3, size - description.sparse.shift)
        for index, text in enumerate(tiny.TEXTS):
            alone = made(made.preprocess([text], task="document"))
            for output in ("sentence_embedding", "sparse", "lexical"):
                torch.testing.assert_close(alone[output][0], together[output][index], atol=1e-5, rtol=1e-4)
    assert isinstance(stacks_of(build_model(tmp_path / "t5"))["query"].backbone.model, T5EncoderModel)


def test_closing_mean(tmp_path: Path) -> None:
    made = build_model(
        tiny.t5(tmp_path),
        ["multi"],
        changes={
            "multi": {"dim": 8, "normalised": False, "skip_special": False, "skip_punctuation": False, "closing_mean": True}
        },
    ).eval()
    features = made.preprocess(tiny.TEXTS, task="document")
    actual = made(dict(features))
    linear = tiny.heads_of(made).multi.linear
    plain = T5EncoderModel.from_pretrained(tmp_path).eval()
    for index in range(len(tiny.TEXTS)):
        length = int(features["attention_mask"][index].sum())
        vectors = linear(plain(input_ids=features["input_ids"][index : index + 1, :length]).last_hidden_state[0])
        torch.testing.assert_close(actual["multi"][index, : length - 1], vectors[:-1], atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(actual["multi"][index, length - 1], vectors.mean(0), atol=1e-5, rtol=1e-4)


def test_models_with_other_modules() -> None:
    from sentence_transformers.sentence_transformer.modules import Pooling

    with pytest.raises(BadModel, match="consists of \\['Pooling'\\]"):
        stacks_of(SentenceTransformer(modules=[Pooling(4)]))


def test_heads_do_not_own_backbone_parameters(model: SentenceTransformer) -> None:
    heads = tiny.heads_of(model)
    assert isinstance(heads, Heads)
    assert not any("word" in name for name, _ in heads.named_parameters())
