"""The lenses of a collection, and the heads of its model that they need."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from trilens.collection import Collection
from trilens.encode.encoder import Encoded, Progress
from trilens.encode.folder import CONFIG_FILE, SPARSE_FILE, TOKENIZER_FILE, WEIGHT_FILES, Head
from trilens.errors import BadInput, BadModel
from trilens.lenses.registry import lens_types
from trilens.store.config import DEFAULT_LENSES, CollectionConfig, PassageConfig
from trilens.store.lens_set import LensSet
from trilens.text.document import Document

from .tiny import DIM, LENSES, WORDS, TinyEncoder

DOCUMENTS = [Document("a", "A red fox crosses the frozen river."), Document("b", "The river is wide.")]


def make_folder(path: Path, head: Head) -> str:
    """A model folder with one head, complete enough to be described but not to be run."""
    descriptions: dict[str, object] = {
        "multi": {"dim": DIM, "normalised": True, "skip_punctuation": True, "skip_special": True},
        "sparse": {"dim": WORDS, "shift": 0, "top": 8, "normalised": False},
        "lexical": {"dim": WORDS},
    }
    config = {
        "name": path.name,
        "heads": [head],
        "dim": DIM,
        "pooling": "mean",
        "query_prefix": "",
        "doc_prefix": "",
        "max_query_tokens": 64,
        "max_doc_tokens": 64,
        "precision": "float32",
        "licence": "none",
        "source": "tests",
    }
    path.mkdir()
    (path / CONFIG_FILE).write_text(json.dumps(config | {head: descriptions[head] for head in [head] if head != "dense"}))
    for name in (TOKENIZER_FILE, WEIGHT_FILES[-1], SPARSE_FILE):
        (path / name).write_text("a folder without this file is refused")
    return str(path)


class HeadRecorder(TinyEncoder):
    """Records the heads of each pass."""

    def __init__(self) -> None:
        super().__init__()
        self.passes: list[tuple[str, tuple[Head, ...]]] = []

    def encode_docs(
        self, texts: Sequence[str], progress: Progress | None = None, heads: Sequence[Head] | None = None
    ) -> Encoded:
        self.passes.append(("docs", tuple(heads or ())))
        return super().encode_docs(texts, progress, heads)

    def encode_queries(self, texts: Sequence[str], heads: Sequence[Head] | None = None) -> Encoded:
        self.passes.append(("queries", tuple(heads or ())))
        return super().encode_docs(texts, None, heads)


@pytest.mark.parametrize("name", lens_types())
def test_every_lens_can_be_made_and_knows_its_name(name: str) -> None:
    passages = PassageConfig(words=0, overlap=0)  # external vectors are not split
    assert LensSet(CollectionConfig(lenses=(name,), passages=passages))[name].name == name


def test_default_lenses() -> None:
    assert CollectionConfig().lenses == DEFAULT_LENSES == ("bm25", "dense", "multi")
    assert set(DEFAULT_LENSES) < set(lens_types())


def test_default_lenses_of_a_model_with_fewer_heads() -> None:
    dense = TinyEncoder(heads=("dense",))
    assert CollectionConfig().with_model(dense).lenses == ("bm25", "dense")
    assert CollectionConfig.of(bm25={"k1": 2.0}).with_model(dense).of_lens("bm25").model_dump()["k1"] == 2.0
    assert CollectionConfig().with_model(TinyEncoder()).lenses == DEFAULT_LENSES
    with pytest.raises(BadInput, match="need multi as well"):
        CollectionConfig(lenses=DEFAULT_LENSES).with_model(dense)
    with pytest.raises(BadInput, match="need dense, multi as well"):
        CollectionConfig().with_model(TinyEncoder(heads=("sparse",)))


@pytest.mark.parametrize(
    ("lenses", "heads", "query_heads"),
    [
        (("bm25",), (), ()),
        (("dense", "bm25"), ("dense",), ("dense",)),
        (("bm25", "multi"), ("multi",), ("multi",)),
        (("bm25", "dense", "multi"), ("dense", "multi"), ("dense", "multi")),
        (("sparse", "tokens", "lexical"), ("sparse", "lexical"), ("sparse", "lexical")),
    ],
)
def test_one_pass_serves_all_heads_that_are_needed(
    folder: Path, lenses: tuple[str, ...], heads: tuple[Head, ...], query_heads: tuple[Head, ...]
) -> None:
    encoder = HeadRecorder()
    assert CollectionConfig(lenses=lenses).heads == heads
    with Collection.create(folder / "c", lenses=lenses, encoder=encoder) as collection:
        collection.add(DOCUMENTS)
        collection.commit()
        assert len(collection.search(["river"])[0]) == 2
        assert encoder.passes == ([("docs", heads), ("queries", query_heads)] if heads else [])
        assert (collection.info()["model"] is None) == (not heads)
        assert bool(collection.config.model_fingerprint) == bool(heads)


@pytest.mark.parametrize(
    ("present", "lens"), [("dense", "multi"), ("multi", "dense"), ("sparse", "lexical"), ("lexical", "sparse")]
)
def test_a_model_without_the_head_is_refused_and_leaves_nothing_behind(folder: Path, present: Head, lens: str) -> None:
    model = make_folder(folder / "model", present)
    with pytest.raises(BadInput) as caught:
        Collection.create(folder / "c", lenses=["bm25", lens], model=model)
    message = str(caught.value)
    assert model in message
    assert f"heads {present}" in message
    assert f"need {lens}" in message
    assert "\n" not in message
    assert not (folder / "c").exists()
    Collection.create(folder / "c", lenses=["bm25", present], model=model).close()


@pytest.mark.parametrize(
    ("present", "lens"), [("dense", "multi"), ("multi", "dense"), ("sparse", "lexical"), ("lexical", "sparse")]
)
def test_an_encoder_without_the_head_is_refused_and_leaves_nothing_behind(folder: Path, present: Head, lens: str) -> None:
    encoder = TinyEncoder(heads=[present])
    with pytest.raises(BadInput, match=f"heads {present}; the lenses bm25, {lens} need {lens}"):
        Collection.create(folder / "c", lenses=["bm25", lens], encoder=encoder)
    assert not (folder / "c").exists()
    Collection.create(folder / "c", lenses=["bm25", present], encoder=encoder).close()


def test_a_collection_of_an_encoder_object_needs_that_encoder(folder: Path) -> None:
    with Collection.create(folder / "c", lenses=["bm25", "dense"], encoder=TinyEncoder()) as collection:
        collection.add(DOCUMENTS)
    assert (collection.config.model, collection.config.model_fingerprint) == ("", "tiny")
    with Collection.open(folder / "c") as collection:
        assert len(collection.search(["river"], lenses=["bm25"])[0]) == 2
        with pytest.raises(BadModel, match=r"encoder object \(tiny\); open it with Collection.open\(path, encoder=…\)"):
            collection.search(["river"], lenses=["dense"])
    with (
        Collection.open(folder / "c", encoder=TinyEncoder(fingerprint="other")) as collection,
        pytest.raises(BadModel, match="is other, but the collection was made with tiny"),
    ):
        collection.search(["river"], lenses=["dense"])
    with Collection.open_or_create(folder / "c", encoder=TinyEncoder(), lenses=["bm25", "dense"]) as collection:
        assert len(collection.search(["river"], lenses=["dense"])[0]) == 2


def test_a_lens_that_the_collection_does_not_have(folder: Path) -> None:
    lenses = LensSet(CollectionConfig(lenses=("bm25", "multi")))
    assert lenses.names == ["bm25", "multi"] and lenses.sharing == ["multi"]
    with pytest.raises(BadInput, match=r"no lens 'dense' in this collection; expected one of bm25, multi"):
        lenses["dense"]


def test_a_lens_scores_texts_late_only_if_the_model_has_its_heads() -> None:
    late = LensSet(CollectionConfig(lenses=("tokens",)), encoder=TinyEncoder()).late("sparse")
    assert late is not None and late.name == "sparse"
    assert LensSet(CollectionConfig(lenses=("dense",))).late("sparse") is None
    assert LensSet(CollectionConfig(lenses=("sparse",))).late("sparse") is None
    assert LensSet(CollectionConfig(lenses=("tokens",))).late("dense") is None
    assert LensSet(CollectionConfig(lenses=("tokens",))).late("smell") is None


def test_names_on_disk() -> None:
    lenses = LensSet(CollectionConfig(lenses=("external",), passages=PassageConfig(words=0, overlap=0)))
    assert (lenses.folder("external"), lenses.of_folder("vectors")) == ("vectors", "external")
    assert (lenses.folder("bm25"), lenses.of_folder("bm25")) == ("bm25", "bm25")


def test_info_counts_what_is_shared_and_asks_the_lenses_for_figures(folder: Path) -> None:
    with Collection.create(folder / "c", lenses=LENSES, encoder=TinyEncoder()) as collection:
        assert collection.info()["segment_bytes"] == dict.fromkeys(["documents", "rows", *LENSES], 0)
        collection.add(DOCUMENTS)
        collection.commit()
        info = collection.info()
        for name in ["documents", "rows", *LENSES]:
            files = [path for path in (folder / "c" / "segments").glob(f"*/{name}/**/*") if path.is_file()]
            assert info["segment_bytes"][name] == sum(path.stat().st_size for path in files) > 0
        assert collection.snapshot.shared.of("multi")
        assert list(info["figures"]) == ["sparse", "tokens", "lexical", "multi"]
        assert all(info["figures"].values())
