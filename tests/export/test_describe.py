"""The `trilens.json` of trained folders and of plain encoders."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="the originals run in torch: pip install trilens[train]")
pytest.importorskip("onnx", reason="part of trilens[export]")

from trilens.encode.folder import ModelConfig
from trilens.encode.tokens import Tokens
from trilens.errors import BadInput, BadModel
from trilens.export.describe import ExportOptions, describe
from trilens.export.source import Source

from .tiny import DESCRIPTION, DIM, SHIFT, WORDS, write_heads, write_tokenizer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tokenizer(tmp_path / "weights")
    return tmp_path / "weights"


def plain(folder: Path, name: str, longest: int | None = 512, source: Source | None = None, **options: Any) -> ModelConfig:
    return describe(ExportOptions(**options), name, source or Source(folder), DIM, longest, Tokens(folder / "tokenizer.json"))


def test_defaults_of_a_known_family(folder: Path) -> None:
    config = plain(folder, "e5-small-v2", precision="float32")
    assert (config.name, config.heads, config.dim, config.pooling) == ("e5-small-v2", ["dense"], DIM, "mean")
    assert (config.query_prefix, config.doc_prefix) == ("query: ", "passage: ")
    assert plain(folder, "bge-small-en").pooling == "cls"
    assert plain(folder, "bge-small-en", pooling="mean", query_prefix="").query_prefix == ""
    assert (config.licence, config.source) == ("not stated", "weights")


def test_family_from_the_source_folder(folder: Path) -> None:
    moved = folder.rename(folder.with_name("bge-small-en"))
    assert plain(moved, "mine").pooling == "cls"


def test_lengths_respect_all_limits(folder: Path) -> None:
    assert plain(folder, "all-MiniLM-L6-v2").max_doc_tokens == 256
    assert plain(folder, "mine", longest=100).max_doc_tokens == 100
    assert plain(folder, "mine", longest=None).max_query_tokens == 512
    assert plain(folder, "mine", source=Source(folder, None, "cls", 77)).max_query_tokens == 77


def test_stored_pooling_overrides_the_family(folder: Path) -> None:
    assert plain(folder, "all-MiniLM-L6-v2", source=Source(folder, None, "cls")).pooling == "cls"
    assert plain(folder, "all-MiniLM-L6-v2", source=Source(folder, None, "cls"), pooling="mean").pooling == "mean"


def test_untrained_heads(folder: Path) -> None:
    config = plain(folder, "mine", multi={"dim": 8, "skip_special": False}, vdr=True, vocabulary_shift=SHIFT, lexical=True)
    assert config.heads == ["dense", "multi", "sparse", "lexical"]
    assert config.multi and (config.multi.dim, config.multi.skip_special, config.multi.normalised) == (8, False, True)
    assert config.sparse and (config.sparse.dim, config.sparse.shift) == (len(WORDS) - SHIFT, SHIFT)
    assert config.lexical and config.lexical.dim == len(WORDS)
    colxtr = plain(folder, "colxtr", multi={"dim": 16})
    assert colxtr.multi and colxtr.multi.closing_mean and not colxtr.multi.normalised


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"multi": {"skip_first": True}}, "skip_first were given without --multi-dims"),
        ({"multi": {"dim": 64}}, "--multi-dims is 64; expected at most 32"),
        ({"multi": {"dim": 8, "colour": 1}}, "the options are inconsistent: option .colour. is not known"),
        ({"multi": {"dim": 8, "query_tokens": 32}}, "mask_token is missing"),
        ({"vocabulary_shift": 3}, "given without --vdr, which adds a sparse head"),
        ({"vdr": True}, "the vocabulary shift is 999; expected less than the 209 tokens"),
    ],
)
def test_inconsistent_options(folder: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        plain(folder, "mine", **options)


def test_unknown_tokens(folder: Path) -> None:
    with pytest.raises(BadModel, match=r"no token '\[unused0\]', which multi.query_marker names"):
        plain(folder, "mine", multi={"dim": 8, "query_marker": "[unused0]"})


def trained(folder: Path, changes: dict[str, Any], longest: int | None = 512, **options: Any) -> ModelConfig:
    write_heads(folder / "1_Heads", **changes)
    tokens = Tokens(folder / "tokenizer.json")
    return describe(ExportOptions(**options), "target", Source(folder, folder / "1_Heads"), DIM, longest, tokens)


def test_trained_folder_keeps_its_description(folder: Path) -> None:
    config = trained(folder, {}, precision="float32", licence="CC0")
    assert config.name == "tiny-trained"
    assert config.model_dump(exclude_unset=True, by_alias=True) == DESCRIPTION | {"precision": "float32", "licence": "CC0"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dim": 16}, "has dim 16; expected 32, the dimension of the backbone"),
        ({"max_doc_tokens": 600}, "texts of 600 tokens; expected at most the 512 positions"),
        ({"sparse": {"dim": 100, "shift": 9, "normalised": False}}, "has 209 tokens, but the sparse head expects 109"),
        ({"lexical": {"dim": 5}}, "has 209 tokens, but the lexical head expects 5"),
        ({"pooling": "max"}, "config.json: pooling"),
        ({"heads": ["dense"]}, "config.json: multi is given"),
    ],
)
def test_inconsistent_trained_folders(folder: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(BadModel, match=message):
        trained(folder, changes)


def test_options_excluded_by_a_trained_folder(folder: Path) -> None:
    with pytest.raises(BadInput, match="has trained heads and its own settings; remove --vdr, --pooling"):
        trained(folder, {}, vdr=True, pooling="cls")
    (folder / "1_Heads" / "config.json").write_text(json.dumps([]))
    with pytest.raises(BadModel, match="holds a list"):
        describe(ExportOptions(), "x", Source(folder, folder / "1_Heads"), DIM, 512, Tokens(folder / "tokenizer.json"))
