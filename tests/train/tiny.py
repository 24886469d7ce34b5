"""Small Hugging Face encoders with random weights and tokenizers of few words."""

import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, T5Config, T5EncoderModel, XLMRobertaConfig, XLMRobertaModel

from trilens.encode.folder import Head
from trilens.train.model import stacks_of

ALL: list[Head] = ["dense", "multi", "sparse", "lexical"]
TALE = "red green fox owl dog runs sleeps home over lazy river stone the a quick slow and under tree night"
WORDS = TALE.split()
SPECIAL = ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
BERT_VOCABULARY = [*SPECIAL, ",", ".", *WORDS, "##s", "##ing", ":"]
BERT_SHIFT = BERT_VOCABULARY.index(",")
HIDDEN, LAYERS, PLACES = 32, 2, 40
TEXTS = ["the quick red fox, runs over the lazy dog.", "a stone", "owl sleeps under the tree and the river. the night"]


def bert(folder: Path, seed: int = 0) -> Path:
    """Write a BERT and its tokenizer; texts are enclosed in [CLS] and [SEP]."""
    torch.manual_seed(seed)
    BertModel(bert_config()).save_pretrained(folder)
    ids = {word: index for index, word in enumerate(BERT_VOCABULARY)}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [(token, ids[token]) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ends
    )
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    return save_tokenizer(folder, tokenizer, pad_token="[PAD]", unk_token="[UNK]", mask_token="[MASK]", cls_token="[CLS]")


def bert_config(**changes: Any) -> BertConfig:
    """Weights have a large variance, so that errors in using them show."""
    usual = {
        "vocab_size": len(BERT_VOCABULARY),
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": 2,
        "intermediate_size": 48,
        "max_position_embeddings": PLACES,
        "initializer_range": 0.3,
    }
    return BertConfig(**usual | changes)


def xlm_roberta(folder: Path) -> Path:
    """Write an XLM-R; its positions start after the padding id, 1."""
    vocabulary = ["<s>", "<pad>", "</s>", "<unk>", *pieces(), "<mask>"]
    torch.manual_seed(1)
    config = XLMRobertaConfig(**bert_config(vocab_size=len(vocabulary), max_position_embeddings=PLACES + 2).to_diff_dict())
    config.pad_token_id = 1
    XLMRobertaModel(config).save_pretrained(folder)
    tokenizer = unigram(vocabulary, 3)
    ends = [("<s>", 0), ("</s>", 2)]
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=ends)
    tokenizer.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    return save_tokenizer(folder, tokenizer, pad_token="<pad>", unk_token="<unk>", mask_token="<mask>")


def t5(folder: Path) -> Path:
    """Write a T5 encoder with a cased tokenizer and more embeddings than tokens."""
    vocabulary = ["<pad>", "</s>", "<unk>", *pieces(), "▁Query", "▁Document", "▁Fox"]
    torch.manual_seed(2)
    config = T5Config(vocab_size=len(vocabulary) + 4, d_model=HIDDEN, d_kv=8, d_ff=48, num_layers=LAYERS, num_heads=4)
    T5EncoderModel(config).save_pretrained(folder)
    tokenizer = unigram(vocabulary, 2)
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    tokenizer.add_special_tokens(["<pad>", "</s>", "<unk>"])
    return save_tokenizer(folder, tokenizer, pad_token="<pad>", unk_token="<unk>", eos_token="</s>")


def heads_of(model: Any, task: str = "query") -> Any:
    """The heads of a tower."""
    return stacks_of(model)[task].heads


def pieces() -> list[str]:
    """Sentencepiece pieces of the words, and punctuation."""
    return [f"▁{word}" for word in WORDS] + [",", ".", ":", "s"]


def unigram(vocabulary: list[str], unknown: int) -> Tokenizer:
    """A unigram tokenizer, as of XLM-R and T5."""
    tokenizer = Tokenizer(models.Unigram([(word, -1.0) for word in vocabulary], unk_id=unknown))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    return tokenizer


def save_tokenizer(folder: Path, tokenizer: Tokenizer, **special: str) -> Path:
    """Write `tokenizer.json` and the config that transformers needs."""
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 512, **special}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder
