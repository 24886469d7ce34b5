"""`sparse`, `lexical` and `bag`: of the echo model by hand, and of the bundled model."""

from math import exp
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from trilens.encode import onnx
from trilens.encode.encoder import Encoded
from trilens.encode.folder import ModelFolder
from trilens.encode.models import bundled_models
from trilens.encode.onnx import OnnxEncoder
from trilens.encode.terms import SparseMode, TermSpace
from trilens.encode.tokens import Tokens
from trilens.errors import BadInput, BadModel
from trilens.represent import Sparse

from .echo_model import ID, SHIFT, WORDS, echo_model

HEADS = ["dense", "multi", "sparse", "lexical"]
BUNDLED = next(iter(bundled_models().values()))
TEXTS = [
    "The cat sat on the mat.",
    "",
    "Boundary layers on a flat plate at supersonic speed, " * 3,
    "naïve café — Ωmega 数据 🙂",
    "?!",
    "How do I copy a file in Python?",
    "aspirin lowers the risk of a heart attack " * 6,
]


def echo(folder: Path, mode: SparseMode | None = None, *, special: bool = True, **changes: object) -> OnnxEncoder:
    changes.setdefault("heads", HEADS)
    return OnnxEncoder(echo_model(folder / "echo", special=special, **changes), mode=mode)


def rows(sparse: Sparse | None, shift: int = SHIFT) -> list[dict[str, float]]:
    """Words with weights."""
    assert sparse is not None
    pairs = [(WORDS[term + shift], weight) for term, weight in zip(sparse.terms, sparse.weights.tolist(), strict=True)]
    return [dict(pairs[sparse.indptr[i] : sparse.indptr[i + 1]]) for i in range(len(sparse))]


# "red home" is read as [CLS] red home [SEP], ids 1, 10, 13 and 2; products with `SPARSE_WEIGHTS`, the best of each word:
RED_HOME = {
    ",": exp(-1),  # −1 at every token
    ".": exp(-2),
    "—": 2.3,  # 0.1 × 13, then elu(x) + 1 = x + 1 above zero
    "red": 4.5,  # 0.5 × 13 − 3
    "fox": 1.5,  # −0.5 × 1 + 1, by [CLS]
    "runs": 1.5,
    "home": 2.25,  # 0.25 × 13 − 2
    "##ing": 1.5,
    "$": exp(-1),  # −1 × 1, by [CLS]
}
BEST = ["—", "red", "home"]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (None, BEST),  # the folder keeps three
        (SparseMode(2, own=False), ["—", "red"]),
        (SparseMode(2), BEST),  # and home, because the text has it
        (SparseMode(1, own=False), ["red"]),
        (SparseMode(1), ["red", "home"]),
        (SparseMode(4, own=False), ["—", "red", "fox", "home"]),  # fox, runs and ##ing are equal: the first of them
        (SparseMode(0), ["red", "home"]),
        (SparseMode(None), list(RED_HOME)),
        (SparseMode(None, own=False), list(RED_HOME)),
        (SparseMode(99), list(RED_HOME)),
    ],
)
def test_modes_by_hand(tmp_path: Path, mode: SparseMode | None, expected: list[str]) -> None:
    found = echo(tmp_path, mode).encode_docs(["red home"])
    assert rows(found.sparse) == [pytest.approx({word: RED_HOME[word] for word in expected}, abs=1e-6)]
    assert rows(found.bag) == [{"red": 1, "home": 1}]


def test_own_words_are_kept_however_low(tmp_path: Path) -> None:
    (found,) = rows(echo(tmp_path, SparseMode(1)).encode_docs(["red . $"]).sparse)
    assert found == pytest.approx({".": exp(-2), "red": 5.5, "$": exp(-1)}, abs=1e-6)  # 0.5 × 15 − 3 by $


def test_padding_has_no_part(tmp_path: Path) -> None:
    """A padding would give `$` its highest product, 0, and `fox` too, 1 less than what an attended one gives."""
    encoder = echo(tmp_path, SparseMode(None))
    (alone,) = rows(encoder.encode_docs(["red home"]).sparse)
    beside = rows(encoder.encode_docs(["red home", "red fox runs home , . $"]).sparse)
    assert beside[0] == alone
    assert alone["$"] == pytest.approx(exp(-1), abs=1e-6)


def test_filling_that_is_not_attended_to_has_no_part(tmp_path: Path) -> None:
    filled = {"query_tokens": 9, "mask_token": "$"}  # a mask token that would win nearly everything
    plain = rows(echo(tmp_path / "a", SparseMode(None)).encode_queries(["red home"]).sparse)
    assert rows(echo(tmp_path / "b", SparseMode(None), multi=filled).encode_queries(["red home"]).sparse) == plain
    attended = echo(tmp_path / "c", SparseMode(None), multi={**filled, "attend_to_mask": True}).encode_queries(["red home"])
    assert rows(attended.sparse)[0]["red"] == pytest.approx(5.5)
    assert rows(attended.bag) == [{"red": 1, "home": 1}]  # it is no word of the text all the same


def test_lexical_weights_by_hand(tmp_path: Path) -> None:
    """ReLU(id + place − 13), place 1 being [CLS]: the highest of a word counts, and what is zero is left out."""
    encoder = echo(tmp_path)
    found = encoder.encode_docs(["red fox red runs red", "red", "", "fox unknown"])
    assert rows(found.lexical, 0) == [{"red": 10 + 6 - 13, "fox": 11 + 3 - 13, "runs": 12 + 5 - 13}, {}, {}, {}]
    assert found.lexical is not None
    assert found.lexical.dim == len(WORDS)
    assert encoder.token_texts(found.lexical.terms.tolist()) == ["red", "fox", "runs"]


def test_tokens_of_one_stem_are_one_lexical_term(tmp_path: Path) -> None:
    """The first of them stands for all, with the highest weight of any; pieces, bags and `sparse` stay as they are."""
    plain, stemmed = (echo(tmp_path / name, lexical={"stems": language}) for name, language in (("a", None), ("b", "english")))
    words = Tokens(stemmed.folder.tokenizer)
    assert words.same_stems("english").tolist() == list(range(len(WORDS)))  # no two of these words share a stem
    bundled = Tokens(bundled_models()["trilens-mini"] / "tokenizer.json")
    same = bundled.same_stems("english")
    folded = {word: bundled.raw(same[bundled.id_of(word, "")]) for word in ("waves", "waving", "##s", "connected", "red")}
    assert folded == {"waves": "wave", "waving": "wave", "##s": "##s", "connected": "connected", "red": "red"}
    assert (same <= np.arange(len(same))).all() and (same[same] == same).all()
    one, other = (encoder.encode_docs(["red fox runs"]) for encoder in (plain, stemmed))
    assert rows(one.lexical, 0) == rows(other.lexical, 0)
    with pytest.raises(BadModel, match=r"lexical\.stems: language is 'klingon'; expected one of arabic"):
        echo(tmp_path / "c", lexical={"stems": "klingon"})


def test_special_tokens_are_no_terms(tmp_path: Path) -> None:
    """[UNK] has a weight of its own at a late place; so have a marker and the closing token."""
    found = echo(tmp_path, multi={"doc_marker": "$"}).encode_docs(["fox " * 5 + "zebra"])
    assert rows(found.lexical, 0) == [{"fox": 11 + 7 - 13}]
    assert rows(found.bag) == [{"fox": 5}]


def test_repeated_tokens_raise_a_lexical_weight(tmp_path: Path) -> None:
    """By 2 n / (n + 1) for n times with a weight above zero, which the first `red` has not."""
    found = echo(tmp_path, lexical={"repeats": 1.0}).encode_docs(["red fox red runs red"])
    assert rows(found.lexical, 0) == [{"red": (10 + 6 - 13) * 4 / 3, "fox": 11 + 3 - 13, "runs": 12 + 5 - 13}]


def test_ids_below_the_shift_are_no_terms(tmp_path: Path) -> None:
    encoder = echo(tmp_path, sparse={"shift": ID["fox"], "dim": len(WORDS) - ID["fox"]}, heads=["dense", "sparse"])
    with pytest.raises(BadModel, match=r"sparse.onnx gives sparse 9 dimensions; expected 5"):
        encoder.encode_docs(["red fox"])
    assert encoder.term_texts([0, 1]) == ["fox", "runs"]


def test_texts_of_nothing(tmp_path: Path) -> None:
    """Without special tokens there is no position at all; alone, among others, and at every mode."""
    for mode in (None, SparseMode(None), SparseMode(0)):
        encoder = echo(tmp_path / str(mode), mode, special=False)
        for texts in ([""], ["", ""], ["", "red home", ""]):
            found = encoder.encode_docs(texts)
            for sparse in (found.sparse, found.bag, found.lexical):
                assert [len(row) for row, text in zip(rows(sparse, 0), texts, strict=True) if not text] == [0] * texts.count("")
            assert np.isfinite(found.sparse.weights).all() if found.sparse else False


def test_an_empty_list_gives_no_rows(tmp_path: Path) -> None:
    found = echo(tmp_path).encode_docs([])
    for sparse, dim in ((found.sparse, 9), (found.bag, 9), (found.lexical, 16)):
        assert sparse is not None
        assert (len(sparse), sparse.dim, sparse.indptr.tolist()) == (0, dim, [0])


def test_many_windows_and_batches_give_what_one_text_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx, "WINDOW_TEXTS", 7)
    monkeypatch.setattr(onnx, "BATCH_TOKENS", 24)
    monkeypatch.setattr(onnx, "BATCH_WEIGHTS", 9 * 3)
    rng = np.random.default_rng(5)
    texts = [" ".join(WORDS[word] for word in rng.integers(SHIFT, len(WORDS), length)) for length in rng.integers(0, 8, 40)]
    encoder = echo(tmp_path)
    together, alone = encoder.encode_docs(texts), [encoder.encode_docs([text]) for text in texts]
    assert rows(together.sparse) == [rows(one.sparse)[0] for one in alone]
    assert rows(together.lexical, 0) == [rows(one.lexical, 0)[0] for one in alone]
    assert rows(together.bag) == [rows(one.bag)[0] for one in alone]


def test_only_what_is_asked_for_is_given(tmp_path: Path) -> None:
    encoder = echo(tmp_path)
    found = encoder.encode_queries(["red"], ["dense"])
    assert (found.sparse, found.bag, found.lexical, found.multi) == (None, None, None, None)
    found = encoder.encode_queries(["red"], ["sparse"])
    assert found.sparse is not None and found.bag is not None
    assert (found.dense, found.lexical, found.multi) == (None, None, None)
    assert encoder.encode_queries(["red"], ["lexical"]).bag is None


def test_words_of_terms(tmp_path: Path) -> None:
    encoder = echo(tmp_path)
    assert encoder.term_texts(list(range(9))) == WORDS[SHIFT:]
    assert encoder.term_texts([]) == []
    for wrong in (9, -1):
        with pytest.raises(BadInput, match=f"no term {wrong} in .*; expected 0 to 8"):
            encoder.term_texts([0, wrong])


@pytest.mark.parametrize(("top", "own", "told"), [(-1, True, "top is -1"), (0, False, "which keeps no weights")])
def test_modes_that_make_no_sense(top: int, own: bool, told: str) -> None:
    with pytest.raises(BadInput, match=told):
        SparseMode(top, own)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_refused(tmp_path: Path, wrong: float) -> None:
    folder = ModelFolder.open(echo_model(tmp_path / "echo", heads=HEADS))
    terms = TermSpace(Tokens(folder.tokenizer), folder.config)
    bag = Sparse(np.zeros(2, np.int64), np.empty(0, np.int32), np.empty(0, np.float32), 9)
    weights = np.zeros((1, 9), np.float32)
    weights[0, 4] = wrong
    with pytest.raises(BadModel, match="the sparse head of the model gave weights that are not finite"):
        terms.sparse(weights, bag, SparseMode())


def test_a_head_of_another_vocabulary_is_refused(tmp_path: Path) -> None:
    for head, encoder in (
        ("sparse", echo(tmp_path / "a", sparse={"dim": 8})),
        ("lexical", echo(tmp_path / "b", lexical={"dim": 15})),
    ):
        with pytest.raises(BadModel, match=f"has 16 tokens, but the {head} head of echo is made for 15"):
            encoder.encode_docs(["red"])


@pytest.fixture(scope="module")
def encoder() -> OnnxEncoder:
    return OnnxEncoder(BUNDLED, threads=1, heads=["sparse", "lexical"])


def parts(encoded: Encoded) -> list[Sparse]:
    assert encoded.sparse is not None and encoded.lexical is not None and encoded.bag is not None
    return [encoded.sparse, encoded.lexical, encoded.bag]


def assert_same(found: list[Sparse], expected: list[Sparse]) -> None:
    """To the last bit: the bundled model computes in whole numbers."""
    for one, other in zip(found, expected, strict=True):
        for name in ("indptr", "terms", "weights", "dim"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_own_words_rank_high(encoder: OnnxEncoder) -> None:
    sparse, lexical, bag = parts(encoder.encode_docs(["The capital of France is Paris."]))
    assert 768 <= len(sparse.terms) <= 768 + len(bag.terms)
    words = encoder.term_texts(sparse.terms.tolist())
    ranked = [words[at] for at in np.argsort(-sparse.weights)]
    assert {"capital", "france", "paris"} <= set(ranked[:5])
    assert "french" in ranked[:10]  # not in the text
    assert {"the", "of", "is", "."} <= set(words)  # own words are there however low
    weights = dict(zip(encoder.token_texts(lexical.terms.tolist()), lexical.weights.tolist(), strict=True))
    assert min(weights["paris"], weights["capital"]) > max(weights.get(word, 0) for word in ("the", "of", "is", "."))


def test_words_and_weights_stay_in_step(encoder: OnnxEncoder) -> None:
    """Raw ids 999 to 1997 are the terms 0 to 998: adding the shift only to terms above it would lose these words."""
    tokenizer = Tokenizer.from_file(str(BUNDLED / "tokenizer.json"))
    low = list(range(2000))
    assert encoder.term_texts(low) == [tokenizer.id_to_token(term + 999) for term in low]
    everything = OnnxEncoder(BUNDLED, threads=1, heads=["sparse"], mode=SparseMode(None))
    own = OnnxEncoder(BUNDLED, threads=1, heads=["sparse"], mode=SparseMode(0))
    text = ["The a ! of 7 paris"]
    whole, kept = everything.encode_docs(text).sparse, own.encode_docs(text).sparse
    assert whole is not None and kept is not None
    assert len(whole.terms) == whole.dim == 29_523
    words = own.term_texts(kept.terms.tolist())
    assert sorted(words) == sorted(["the", "a", "!", "of", "7", "paris"])
    for word, weight in zip(words, kept.weights, strict=True):
        assert weight == whole.weights[tokenizer.get_vocab()[word] - 999]


def test_pieces_of_words_stay_marked(encoder: OnnxEncoder) -> None:
    _, _, bag = parts(encoder.encode_docs(["aspirin"]))
    assert set(encoder.term_texts(bag.terms.tolist())) == {"as", "##pi", "##rin"}


def test_the_highest_weights_are_those_that_are_kept(encoder: OnnxEncoder) -> None:
    everything = OnnxEncoder(BUNDLED, threads=1, heads=["sparse"], mode=SparseMode(None)).encode_docs(TEXTS).sparse
    sparse, _, bag = parts(encoder.encode_docs(TEXTS))
    assert everything is not None
    for at in range(len(TEXTS)):
        whole = everything.take(np.array([at]))
        weights = np.zeros(29_523, np.float32)  # far below 0, elu(x) + 1 is 0 in 32 bits, and not kept
        weights[whole.terms] = whole.weights
        best = np.lexsort((np.arange(len(weights)), -weights))[:768]
        own = bag.take(np.array([at])).terms
        expected = np.union1d(best, own[weights[own] > 0])
        np.testing.assert_array_equal(sparse.take(np.array([at])).terms, expected)
        np.testing.assert_array_equal(sparse.take(np.array([at])).weights, weights[expected])
    assert (sparse.weights > 0).all()


@pytest.mark.parametrize("side", ["docs", "queries"])
def test_a_batch_equals_texts_one_by_one(encoder: OnnxEncoder, side: str) -> None:
    encode = encoder.encode_docs if side == "docs" else encoder.encode_queries
    together = parts(encode(TEXTS))
    alone = [parts(encode([text])) for text in TEXTS]
    assert_same(together, [Sparse.concat([one[at] for one in alone]) for at in range(3)])
    order = np.arange(len(TEXTS))[::-1]
    assert_same([part.take(order) for part in parts(encode([TEXTS[at] for at in order]))], together)


def test_padding_changes_nothing(encoder: OnnxEncoder) -> None:
    short = "How do I copy a file in Python?"
    alone = parts(encoder.encode_docs([short]))
    for count in (9, 17, 40, 63, 100, 250):
        assert_same([part.take(np.array([0])) for part in parts(encoder.encode_docs([short, "word " * count]))], alone)


def test_more_heads_and_threads_change_nothing(encoder: OnnxEncoder) -> None:
    every = OnnxEncoder(BUNDLED, threads=2)
    found = every.encode_docs(TEXTS)
    assert_same(parts(found), parts(encoder.encode_docs(TEXTS)))
    dense = OnnxEncoder(BUNDLED, threads=2, heads=["dense"]).encode_docs(TEXTS).dense
    assert found.dense is not None and dense is not None
    np.testing.assert_array_equal(found.dense.vectors, dense.vectors)
