"""The model of a collection: a folder or an encoder object, and the passes that its lenses share."""

from collections.abc import Sequence

import pytest

from trilens.encode.bm25 import Bm25Encoder
from trilens.encode.encoder import Encoded, Encoder, Progress
from trilens.encode.folder import CONFIG_FILE, Head, read_config
from trilens.encode.model import BagOfTokensEncoder, HeadEncoder, ModelEncoder, TokenReader, joint_passes
from trilens.encode.models import bundled_models, resolve_model
from trilens.encode.onnx import OnnxEncoder
from trilens.errors import BadInput, BadModel
from trilens.store.config import DEFAULT_MODEL

from ..store.tiny import TinyEncoder, tiny_model

TEXTS = ["a red fox", "", "the river"]


class BareEncoder:
    """Only the methods that every encoder has."""

    heads: tuple[Head, ...] = ("dense",)
    fingerprint = "bare"

    def encode_docs(
        self, texts: Sequence[str], progress: Progress | None = None, heads: Sequence[Head] | None = None
    ) -> Encoded:
        return TinyEncoder().encode_docs(texts, progress, heads)

    def encode_queries(self, texts: Sequence[str], heads: Sequence[Head] | None = None) -> Encoded:
        return self.encode_docs(texts, heads=heads)


def test_a_model_folder_is_loaded_on_first_use() -> None:
    missing = ModelEncoder("/nowhere/to/be/found", ("dense",))
    with pytest.raises(BadModel, match="/nowhere/to/be/found"):
        _ = missing.encoder


@pytest.mark.skipif(DEFAULT_MODEL not in bundled_models(), reason="the bundled model is missing")
def test_a_model_folder_is_loaded_with_the_needed_heads() -> None:
    model = ModelEncoder(DEFAULT_MODEL, ("dense", "multi"), threads=1)
    assert model.encoder is model.encoder
    assert model.encoder.heads == model.heads == ("dense", "multi")
    assert [name for name in ("dense", "multi", "sparse") if getattr(model.encoder.encode_queries(TEXTS), name)] == [
        "dense",
        "multi",
    ]
    assert isinstance(model.tokens, TokenReader)
    wrong = ModelEncoder(DEFAULT_MODEL, ("dense",), fingerprint="another")
    with pytest.raises(BadModel, match=f"model {DEFAULT_MODEL} is {model.encoder.fingerprint}, .* made with another"):
        _ = wrong.encoder


def test_an_encoder_object_is_used_as_it_is() -> None:
    encoder = TinyEncoder()
    model = ModelEncoder("", encoder.heads, "tiny", encoder=encoder)
    assert model.encoder is encoder
    assert model.tokens is encoder
    assert ModelEncoder("", encoder.heads, encoder=encoder).encoder is encoder  # any fingerprint
    with pytest.raises(BadModel, match="model given as an object is tiny, but the collection was made with other"):
        _ = ModelEncoder("", encoder.heads, "other", encoder=encoder).encoder


def test_default_fusions_are_those_of_the_model() -> None:
    folder = resolve_model(DEFAULT_MODEL)
    model = ModelEncoder(DEFAULT_MODEL, ("dense",))
    assert model.fusions == read_config(folder / CONFIG_FILE).fusion == OnnxEncoder(folder).fusions
    assert "bm25+dense" in model.fusions
    assert "encoder" not in vars(model)  # it is not loaded
    assert ModelEncoder("no such model", ()).fusions == {}  # no lens uses it
    encoder = TinyEncoder()
    assert ModelEncoder("", encoder.heads, encoder=encoder).fusions == {}
    encoder.fusions = {"bm25+dense": "rrf"}  # type: ignore[attr-defined]
    assert ModelEncoder("", encoder.heads, encoder=encoder).fusions == {"bm25+dense": "rrf"}


def test_a_collection_of_an_encoder_object_is_not_searched_without_it() -> None:
    with pytest.raises(
        BadModel, match=r"made with an encoder object \(tiny\); open it with Collection\.open\(path, encoder=…\)"
    ):
        _ = ModelEncoder("", ("dense",), "tiny").encoder


def test_an_encoder_without_tokens_or_bags() -> None:
    model = ModelEncoder("", ("dense",), encoder=BareEncoder())
    assert not isinstance(BareEncoder(), TokenReader)
    with pytest.raises(BadInput, match=r"encoder bare does not implement TokenReader; expected .*TokenReader"):
        _ = model.tokens
    for call in (model.bags.encode_docs, model.bags.encode_queries):
        with pytest.raises(BadInput, match="encoder bare has no attribute `bags`"):
            call(TEXTS)


def test_some_heads_of_a_model() -> None:
    dense = tiny_model(TinyEncoder()).heads_encoder("dense")
    docs, queries = dense.encode_docs(TEXTS), dense.encode_queries(TEXTS)
    assert dense.fingerprint == "tiny"
    for encoded in (docs, queries):
        assert encoded.dense is not None and len(encoded.dense) == 3
        others = (encoded.multi, encoded.sparse, encoded.lexical, encoded.bag)
        assert others == (None, None, None, None)


def test_progress_is_reported() -> None:
    model, done = tiny_model(TinyEncoder()), list[int]()
    model.heads_encoder("dense").encode_docs(TEXTS, done.append)
    model.bags.encode_docs(TEXTS, done.append)
    assert done == [3, 3]


def test_bags_of_tokens() -> None:
    model = tiny_model(TinyEncoder())
    assert isinstance(model.bags, BagOfTokensEncoder) and model.bags is model.bags
    assert model.bags.fingerprint == "tiny"
    bag = model.bags.encode_docs(TEXTS).bag
    assert bag is not None and bag.indptr.tolist() == [0, 3, 3, 5]
    queries = model.bags.encode_queries(TEXTS).bag
    assert queries is not None and queries.terms.tolist() == bag.terms.tolist()


def test_one_pass_serves_all_heads_of_a_model_and_comes_last() -> None:
    model, words = tiny_model(TinyEncoder()), Bm25Encoder()
    encoders: dict[str, Encoder] = {
        "multi": model.heads_encoder("multi"),
        "bm25": words,
        "dense": model.heads_encoder("dense"),
        "also dense": model.heads_encoder("dense"),
        "tokens": model.bags,
        "also tokens": model.bags,
    }
    (first, first_users), (second, second_users), (last, last_users) = (
        (encoder, names) for names, encoder in joint_passes(encoders)
    )
    assert (first, first_users) == (words, ["bm25"])
    assert (second, second_users) == (model.bags, ["tokens", "also tokens"])
    assert last == HeadEncoder(model, ("multi", "dense"))
    assert last_users == ["multi", "dense", "also dense"]


def test_models_do_not_share_passes() -> None:
    models = [tiny_model(TinyEncoder()) for _ in range(2)]
    passes = joint_passes({str(number): model.heads_encoder("dense") for number, model in enumerate(models)})
    assert [names for names, _ in passes] == [["0"], ["1"]]
    assert joint_passes({}) == []
