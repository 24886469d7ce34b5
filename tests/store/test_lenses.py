"""Which lenses a collection can have, and what they ask of its model."""

from pathlib import Path
from typing import Any

import pytest

from trilens.collection import Collection
from trilens.encode.folder import Head
from trilens.errors import BadInput
from trilens.store import lenses
from trilens.store.config import DEFAULT_LENSES, HEADS, LENSES, CollectionConfig, PassageConfig
from trilens.store.lenses import Lenses
from trilens.text.document import Document

from . import tiny

DOCUMENTS = [Document("a", "A red fox crosses the frozen river."), Document("b", "The river is wide.")]


@pytest.fixture(autouse=True)
def tiny_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lenses, "OnnxEncoder", tiny.encoder_of)


@pytest.mark.parametrize("name", LENSES)
def test_every_lens_can_be_made_and_knows_its_name(name: str) -> None:
    passages = PassageConfig(words=0, overlap=0)  # given vectors are not cut
    assert Lenses(CollectionConfig(lenses=(name,), passages=passages))[name].name == name


def test_some_lenses_are_there_unless_others_are_chosen() -> None:
    assert CollectionConfig().lenses == DEFAULT_LENSES == ("bm25", "dense")
    assert set(DEFAULT_LENSES) < set(LENSES) == set(HEADS)


@pytest.mark.parametrize(
    ("chosen", "heads"),
    [
        (("bm25",), ()),
        (("dense", "bm25"), ("dense",)),
        (("bm25", "multi"), ("multi",)),
        (("bm25", "dense", "multi"), ("dense", "multi")),
        (("sparse", "tokens", "lexical"), ("sparse", "lexical")),
    ],
)
def test_the_model_is_run_for_the_heads_that_are_needed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, chosen: tuple[str, ...], heads: tuple[Head, ...]
) -> None:
    asked: list[tuple[Head, ...]] = []

    def asking(path: Path, threads: int | None, heads: tuple[Head, ...]) -> Any:
        asked.append(heads)
        return tiny.encoder_of(path, threads, heads)

    monkeypatch.setattr(lenses, "OnnxEncoder", asking)
    assert CollectionConfig(lenses=chosen).heads == heads
    with Collection.create(folder / "c", lenses=chosen, model=tiny.make_model(folder)) as collection:
        collection.add(DOCUMENTS)
        collection.commit()
        assert len(collection.search(["river"])[0]) == 2
        assert asked == ([heads] if heads else [])
        assert (collection.info()["model"] is None) == (not heads)
        assert bool(collection.config.model_fingerprint) == bool(heads)


@pytest.mark.parametrize(
    ("has", "chosen"), [("dense", "multi"), ("multi", "dense"), ("sparse", "lexical"), ("lexical", "sparse")]
)
def test_a_model_without_the_head_is_refused_and_leaves_nothing_behind(folder: Path, has: str, chosen: str) -> None:
    others = {head: None for head in ("sparse", "lexical", "multi") if head != has}
    model = tiny.make_model(folder, heads=[has], **others)
    with pytest.raises(BadInput) as caught:
        Collection.create(folder / "c", lenses=["bm25", chosen], model=model)
    message = str(caught.value)
    assert model in message
    assert f"heads {has}" in message
    assert f"need {chosen}" in message
    assert "\n" not in message
    assert not (folder / "c").exists()
    Collection.create(folder / "c", lenses=["bm25", has], model=model).close()


def test_info_counts_what_is_shared_and_asks_the_lenses_for_figures(folder: Path) -> None:
    with Collection.create(folder / "c", lenses=tiny.LENSES, model=tiny.make_model(folder)) as collection:
        assert collection.info()["segment_bytes"] == dict.fromkeys(["rows", *tiny.LENSES], 0)
        collection.add(DOCUMENTS)
        collection.commit()
        info = collection.info()
        for name in ["rows", *tiny.LENSES]:
            files = [path for path in (folder / "c" / "segments").glob(f"*/{name}/**/*") if path.is_file()]
            assert info["segment_bytes"][name] == sum(path.stat().st_size for path in files) > 0
        assert collection.snapshot.shared.of("multi")
        assert list(info["figures"]) == ["sparse", "tokens", "lexical", "multi"]
        assert all(info["figures"].values())
