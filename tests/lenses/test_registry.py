"""The registry of lens types, and plug-ins as installed packages offer them."""

import os
import re
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from trilens.errors import BadInput
from trilens.lenses.bm25 import BM25
from trilens.lenses.registry import (
    BUILT_IN,
    GROUP,
    RESERVED,
    _require_free_names,
    lens_type,
    lens_types,
    needed_heads,
    stored_names,
)
from trilens.search.fusion import FUSION, POLICIES, Fusion
from trilens.search.fusion_presets import PLAIN, PRESETS
from trilens.search.rerank import CROSS
from trilens.store.config import CollectionConfig

PLUG_IN = """
from trilens.lenses.bm25 import BM25, Bm25Lens
from trilens.lenses.lens import Colour, LensType


class SmellLens(Bm25Lens):
    name = "smell"


SMELL = LensType("smell", "how it smells", Colour("#123456", "#654321"), lambda setup: SmellLens())
TAKEN = BM25
NO_LENS = "a string"
"""
SHOW = """
from trilens.errors import TrilensError
from trilens.lenses.registry import lens_types
try:
    print(*lens_types())
except TrilensError as error:
    print(type(error).__name__, error)
"""
SEARCH = """
import sys
from trilens import Collection, Document
with Collection.create(sys.argv[1], lenses=["bm25", "smell"]) as made:
    made.add([Document("a", "a red fox"), Document("b", "a blue owl")])
    made.commit()
    print(*(hit.doc_id for hit in made.search(["fox"], lenses=["smell"])[0]), made.lenses, repr(made.config.of_lens("smell")))
"""


def install(folder: Path, value: str, content: str = PLUG_IN, name: str = "smell") -> Path:
    """An installed package `smelling` with one entry point."""
    info = folder / "smelling-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: smelling\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = {value}\n")
    (folder / "smelling.py").write_text(content)
    return folder


def run(folder: Path, code: str, *arguments: str) -> str:
    """The output of a process that finds the packages in the folder."""
    path = os.pathsep.join([str(folder), *(entry for entry in sys.path if entry)])
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": path})
    return done.stdout.strip()


def test_names() -> None:
    names = ["bm25", "dense", "sparse", "tokens", "lexical", "multi", "external"]
    assert [known.name for known in BUILT_IN] == names
    assert list(lens_types())[: len(names)] == names
    assert all(lens_type(name).name == name for name in names)


def test_heads() -> None:
    heads = {known.name: known.heads for known in BUILT_IN}
    assert heads == {
        "bm25": (),
        "dense": ("dense",),
        "sparse": ("sparse",),
        "tokens": ("sparse",),
        "lexical": ("lexical",),
        "multi": ("multi",),
        "external": (),
    }
    assert needed_heads(["tokens", "bm25", "multi", "sparse"]) == ("sparse", "multi")
    assert needed_heads(["bm25"]) == ()


def test_names_on_disk() -> None:
    assert {known.name: known.stored_as for known in BUILT_IN if known.stored_as != known.name} == {"external": "vectors"}
    assert {stored: name for stored, name in stored_names().items() if stored != name} == {"vectors": "external"}
    assert len(stored_names()) == len(lens_types())


def test_configurations() -> None:
    keys = {known.name: known.config_key for known in BUILT_IN}
    assert keys == {
        "bm25": "bm25",
        "dense": "dense",
        "sparse": "sparse",
        "tokens": "sparse",
        "lexical": "sparse",
        "multi": "multi",
        "external": "sparse",
    }
    by_key = {known.config_key: known.config for known in BUILT_IN}
    assert all(known.config is by_key[known.config_key] for known in BUILT_IN)  # lenses with one key share one kind


def test_colours_are_unique() -> None:
    for ground in ("light", "dark"):
        colours = [getattr(known.colour, ground) for known in lens_types().values()]
        assert len(set(colours)) == len(colours)
        assert all(re.fullmatch("#[0-9a-f]{6}", colour) for colour in colours)


def test_an_unknown_name() -> None:
    with pytest.raises(BadInput, match=r"lens 'smell' is not known; expected one of bm25, dense, .*, or install its plug-in"):
        lens_type("smell")


def test_the_registry_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        lens_types()["smell"] = BUILT_IN[0]  # type: ignore[index]


def test_a_plug_in_is_a_lens_like_any_other(tmp_path: Path) -> None:
    folder = install(tmp_path, "smelling:SMELL")
    assert run(folder, SHOW).split() == [*(known.name for known in BUILT_IN), "smell"]
    assert run(folder, SEARCH, str(tmp_path / "c")) == "a ['bm25', 'smell'] LensConfig()"


def test_a_collection_whose_plug_in_is_not_installed(tmp_path: Path) -> None:
    run(install(tmp_path, "smelling:SMELL"), SEARCH, str(tmp_path / "c"))
    code = f"""
from trilens import Collection, TrilensError
try:
    Collection.open({str(tmp_path / "c")!r})
except TrilensError as error:
    print(type(error).__name__, error)
"""
    empty = tmp_path / "empty"
    empty.mkdir()
    message = run(empty, code)
    assert re.fullmatch("UnknownFormat .*lens 'smell', which is not installed; install its plug-in", message)


@pytest.mark.parametrize(
    ("value", "content", "message"),
    [
        ("smelling:SMELL", "raise ZeroDivisionError('no nose')", r"cannot be loaded \(no nose\); repair or uninstall it"),
        ("smelling:SMELL", "", "cannot be loaded .*no attribute 'SMELL'.*; repair or uninstall it"),
        ("smelling.nose:SMELL", PLUG_IN, "cannot be loaded .*smelling.*; repair or uninstall it"),
        ("smelling:NO_LENS", PLUG_IN, "is str; expected a LensType"),
        ("smelling:SmellLens", PLUG_IN, "is .*; expected a LensType"),
        ("smelling:TAKEN", PLUG_IN, "is named 'bm25' like another lens; expected another name"),
    ],
)
def test_a_plug_in_that_cannot_be_used_is_named_in_one_line(tmp_path: Path, value: str, content: str, message: str) -> None:
    output = run(install(tmp_path, value, content), SHOW)
    assert "\n" not in output
    assert re.fullmatch(f"BadInput {re.escape(GROUP)} plug-in {re.escape(value)} {message}", output)


def test_reserved_words_cover_every_option_that_lens_names_meet() -> None:
    fusion_fields = {field.name for field in fields(Fusion)}
    assert fusion_fields | set(POLICIES) | set(PRESETS) | {PLAIN} | set(CollectionConfig.model_fields) <= RESERVED
    assert {"weighing", "rows", FUSION, CROSS} <= RESERVED
    assert not RESERVED & {name for known in BUILT_IN for name in (known.name, known.stored_as, known.config_key)}


@pytest.mark.parametrize("change", [{"name": "vectors"}, {"name": "model"}, {"name": "Big lens"}, {"config_key": "multi"}])
def test_names_of_plug_ins_must_be_free(change: dict[str, str]) -> None:
    names: dict[str, Any] = {"name": "other", "stored_as": "", "config_key": "", **change}
    plug_in = replace(BM25, **names)
    with pytest.raises(BadInput, match=r"plug-in package:OTHER (is named|has config_key)"):
        _require_free_names("package:OTHER", plug_in, lens_types())
