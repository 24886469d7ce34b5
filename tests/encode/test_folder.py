import json
import shutil
from pathlib import Path

import pytest

from trilens.encode.folder import ModelConfig, ModelFolder, MultiHead, SparseHead, fingerprint_model, read_config
from trilens.encode.models import bundled_models
from trilens.errors import BadModel

NAME, BUNDLED = next(iter(bundled_models().items()))
SPARSE = {"dim": 8, "shift": 4, "normalised": False}
MULTI = {"dim": 8, "normalised": True, "skip_punctuation": True, "skip_special": True}


def small_copy(target: Path, **changes: object) -> Path:
    """A folder with the bundled configuration, without fusions, and stand-ins for the large files."""
    target.mkdir(exist_ok=True)
    config = json.loads((BUNDLED / "trilens.json").read_text())
    config.pop("fusion")
    (target / "trilens.json").write_text(json.dumps(config | changes, indent=2) + "\n")
    (target / "tokenizer.json").write_text("{}")
    (target / "model.onnx").write_bytes(b"weights")
    (target / "sparse.onnx").write_bytes(b"head")
    return target


def test_bundled_model_is_complete_and_small() -> None:
    folder = ModelFolder.open(BUNDLED)
    assert folder.config.name == NAME
    assert folder.config.heads == ["dense", "multi", "sparse", "lexical"]
    assert folder.config.dims == {"dense": 384, "multi": 128, "sparse": 29_523, "lexical": 30_522}
    assert folder.weights.name == "model.int8.onnx"
    assert {"LICENSE", "README.md"} <= {file.name for file in BUNDLED.iterdir()}
    assert sum(file.stat().st_size for file in BUNDLED.iterdir()) < 36e6


@pytest.mark.parametrize("file", ["trilens.json", "tokenizer.json", "model.onnx", "sparse.onnx"])
def test_a_missing_file_is_named(tmp_path: Path, file: str) -> None:
    folder = small_copy(tmp_path)
    (folder / file).unlink()
    with pytest.raises(BadModel, match=file):
        ModelFolder.open(folder)


FILLED = {"query_tokens": 32, "mask_token": "[MASK]", "attend_to_mask": True}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"dims": 3}, "option .dims. is not known"),
        ({"dim": "384"}, "dim"),
        ({"dim": 0}, "dim"),
        ({"heads": []}, "heads"),
        ({"heads": ["colour"]}, "heads"),
        ({"precision": "int3"}, "precision"),
        ({"fusion": {"dense+bm25": "rrf"}}, r"fusion is given for 'dense\+bm25'; expected lenses in alphabetical order"),
        ({"fusion": {"dense": "rrf"}}, "fusion is given for 'dense'; expected lenses"),
        ({"fusion": {"bm25+dense": 3}}, "fusion.bm25.dense is 3"),
        ({"multi": None}, r"multi is missing, but heads is \['dense', 'multi', 'sparse', 'lexical'\]; .* when 'multi' is"),
        ({"heads": ["dense"]}, r"multi is given, but heads is \['dense'\]"),
        ({"sparse": None}, "sparse is missing, but heads is .* when 'sparse' is one"),
        ({"heads": ["dense", "multi", "lexical"]}, "sparse is given, but heads is"),
        ({"lexical": None}, "lexical is missing, but heads is .* when 'lexical' is one"),
        ({"heads": ["dense", "multi", "sparse"]}, "lexical is given, but heads is"),
        ({"sparse": {**SPARSE, "dims": 3}}, r"option .sparse\.dims. is not known"),
        ({"sparse": {**SPARSE, "dim": 0}}, r"sparse\.dim"),
        ({"sparse": {**SPARSE, "shift": -1}}, r"sparse\.shift"),
        ({"sparse": {**SPARSE, "top": 0}}, r"sparse\.top"),
        ({"sparse": {**SPARSE, "normalised": None}}, r"sparse\.normalised"),
        ({"lexical": {"dim": "8"}}, r"lexical\.dim"),
        ({"multi": {**MULTI, "dims": 3}}, r"option .multi\.dims. is not known"),
        ({"multi": {**MULTI, "dim": 0}}, r"multi\.dim"),
        ({"multi": {**MULTI, "normalised": 1}}, r"multi\.normalised"),
        ({"multi": {**MULTI, "query_tokens": 32}}, r"multi\.mask_token is missing, but query_tokens is 32"),
        ({"multi": {**MULTI, "query_tokens": 257, "mask_token": "[MASK]"}}, "multi: query_tokens is 257; .* 128"),
        ({"multi": {**MULTI, **FILLED, "closing_mean": True}}, r"multi\.closing_mean is given with attend_to_mask"),
        ({"dense": {"length": 1}}, r"option .dense\.length. is not known"),
    ],
)
def test_a_bad_configuration_names_file_and_field(tmp_path: Path, changes: dict[str, object], named: str) -> None:
    with pytest.raises(BadModel, match=rf"trilens\.json: {named}"):
        ModelFolder.open(small_copy(tmp_path, **changes))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe"])
def test_a_damaged_configuration_is_named(tmp_path: Path, content: bytes) -> None:
    file = small_copy(tmp_path) / "trilens.json"
    file.write_bytes(content)
    with pytest.raises(BadModel, match=r"trilens\.json"):
        read_config(file)


def test_a_missing_field_is_named(tmp_path: Path) -> None:
    file = small_copy(tmp_path) / "trilens.json"
    config = json.loads(file.read_text())
    del config["licence"]
    file.write_text(json.dumps(config))
    with pytest.raises(BadModel, match="licence"):
        read_config(file)


def test_configuration_survives_writing_and_reading(tmp_path: Path) -> None:
    config = ModelFolder.open(BUNDLED).config
    (tmp_path / "trilens.json").write_text(config.model_dump_json(by_alias=True))
    assert read_config(tmp_path / "trilens.json") == config
    assert isinstance(config, ModelConfig)


def test_a_head_that_a_model_has_not_need_not_be_mentioned(tmp_path: Path) -> None:
    file = small_copy(tmp_path, heads=["dense"]) / "trilens.json"
    config = json.loads(file.read_text())
    for head in ("multi", "sparse", "lexical"):
        del config[head]
    file.write_text(json.dumps(config))
    found = read_config(file)
    assert (found.multi, found.sparse, found.lexical) == (None, None, None)


def test_a_full_multi_head_survives_writing_and_reading(tmp_path: Path) -> None:
    head = MultiHead(
        dim=8,
        normalised=False,
        query_tokens=32,
        mask_token="[MASK]",
        attend_to_mask=True,
        query_marker="[unused0]",
        doc_marker="[unused1]",
        skip_punctuation=False,
        skip_special=False,
        skip_first=True,
    )
    assert read_config(small_copy(tmp_path, multi=head.model_dump()) / "trilens.json").multi == head


def test_the_sparse_head_keeps_768_weights_unless_told(tmp_path: Path) -> None:
    sparse = read_config(small_copy(tmp_path, sparse=SPARSE) / "trilens.json").sparse
    assert sparse == SparseHead(dim=8, shift=4, top=768, normalised=False)


def test_a_model_without_sparse_head_has_no_graph_of_it(tmp_path: Path) -> None:
    folder = small_copy(tmp_path, heads=["dense", "multi", "lexical"], sparse=None)
    (folder / "sparse.onnx").unlink()
    assert ModelFolder.open(folder).config.dims.keys() == {"dense", "multi", "lexical"}


def test_the_fingerprint_starts_with_the_name_and_depends_on_content_only(tmp_path: Path) -> None:
    first, second = small_copy(tmp_path / "a"), small_copy(tmp_path / "b")
    assert fingerprint_model(first) == fingerprint_model(second)
    assert fingerprint_model(first).startswith(f"{NAME}-")


@pytest.mark.parametrize("file", ["trilens.json", "tokenizer.json", "model.onnx", "sparse.onnx"])
def test_any_changed_file_changes_the_fingerprint(tmp_path: Path, file: str) -> None:
    folder = small_copy(tmp_path / "a")
    changed = Path(shutil.copytree(folder, tmp_path / "b"))
    (changed / file).write_bytes((changed / file).read_bytes() + b" ")
    assert fingerprint_model(changed) != fingerprint_model(folder)


def test_other_fusions_do_not_change_the_fingerprint(tmp_path: Path) -> None:
    fused = {"bm25+dense": "zscore:bm25=0.2,dense=0.8,damp=true"}
    plain, first, second = (
        small_copy(tmp_path / "a"),
        small_copy(tmp_path / "b", fusion=fused),
        small_copy(tmp_path / "c", fusion={}),
    )
    assert fingerprint_model(plain) == fingerprint_model(first) == fingerprint_model(second)
    assert ModelFolder.open(first).config.fusion == fused
    assert fingerprint_model(small_copy(tmp_path / "d", fusion=fused, query_prefix="q: ")) != fingerprint_model(first)


def test_content_moved_between_files_changes_the_fingerprint(tmp_path: Path) -> None:
    first, second = small_copy(tmp_path / "a"), small_copy(tmp_path / "b")
    (first / "tokenizer.json").write_bytes(b"xy")
    (first / "model.onnx").write_bytes(b"z")
    (second / "tokenizer.json").write_bytes(b"x")
    (second / "model.onnx").write_bytes(b"yz")
    assert fingerprint_model(first) != fingerprint_model(second)
