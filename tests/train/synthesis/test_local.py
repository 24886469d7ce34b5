"""Language models that run in this process: a tiny one with random weights."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="local models need torch: pip install trilens[llm]")

from transformers import LlamaConfig, LlamaForCausalLM

from tests.train import tiny
from trilens import Collection, Document
from trilens.errors import BadModel
from trilens.language.local import load
from trilens.language.model import LanguageModel, ask
from trilens.train.synthesis.synthesize import SynthesisConfig, synthesize

TEMPLATE = (
    "{% for message in messages %}the quick {{ message.content }}{% endfor %}{% if add_generation_prompt %} fox{% endif %}"
)


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tiny.bert(tmp_path_factory.mktemp("writer"))
    torch.manual_seed(0)
    sizes = {"vocab_size": len(tiny.BERT_VOCABULARY), "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1}
    config = LlamaConfig(**sizes, num_attention_heads=2, max_position_embeddings=200, eos_token_id=None, bos_token_id=None)
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def test_a_folder_writes(writer: Path) -> None:
    model = LanguageModel(url=f"local:{writer}")
    model.require_reachable()
    answer = ask(model, "the lazy dog", 7)
    assert answer == ask(model, "the lazy dog", 7)
    assert 0 < len(answer.split()) <= 7
    assert set(answer.split()) <= {*tiny.BERT_VOCABULARY}


def test_the_template_of_a_chat_is_used(writer: Path, tmp_path: Path) -> None:
    for file in writer.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "chat_template.jinja").write_text(TEMPLATE)
    # The template encloses the prompt, and its texts have no further special tokens.
    inside = ask(LanguageModel(url=f"local:{tmp_path}"), "lazy dog", 7)
    tokenizer, model = load(tmp_path)
    ids = tokenizer("the quick lazy dog fox", add_special_tokens=False, return_tensors="pt")["input_ids"]
    made = model.generate(ids, max_new_tokens=7, do_sample=False)
    assert inside == tokenizer.decode(made[0, ids.shape[1] :], skip_special_tokens=True).strip()


def test_what_cannot_be_used(writer: Path, tmp_path: Path) -> None:
    with pytest.raises(BadModel, match=r"cannot be loaded .*; expected a causal language model: a folder or a GGUF file"):
        LanguageModel(url=f"local:{tmp_path}").require_reachable()
    with pytest.raises(BadModel, match=r"the prompt has \d+ tokens and .* takes 193; expected a shorter text"):
        ask(LanguageModel(url=f"local:{writer}"), "dog " * 200, 7)


def test_questions_without_a_service(writer: Path, tmp_path: Path) -> None:
    with Collection.create(tmp_path / "c", lenses=["bm25"], threads=1) as collection:
        collection.add(Document(str(number), text) for number, text in enumerate(tiny.TEXTS))
        collection.commit()
        config = SynthesisConfig(found_in=0, max_tokens=5, max_characters=12)
        report = synthesize(collection, LanguageModel(url=f"local:{writer}"), config, tmp_path / "out.jsonl", parallel=1)
    assert report.passages == len(tiny.TEXTS)
