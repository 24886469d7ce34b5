import json
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from trilens.encode.encoder import Encoded, Encoder
from trilens.encode.folder import Head
from trilens.encode.models import bundled_models
from trilens.encode.onnx import BATCH_TOKENS, OnnxEncoder, batches_by_length, run_ahead
from trilens.encode.window import BatchPositions
from trilens.errors import BadInput, BadModel
from trilens.represent import Multi, Sparse

from ..bundled import with_multi
from .echo_model import ID, echo_model

NAME, BUNDLED = next(iter(bundled_models().items()))
TEXTS = [
    "The cat sat on the mat.",
    "",
    "Boundary layers on a flat plate at supersonic speed, " * 3,
    "naïve café — Ωmega 数据 🙂",
    "a",
    "How do I copy a file in Python?",
    "shutil.copy(src, dst) copies the file src to the file or directory dst.",
    "aspirin lowers the risk of a heart attack " * 6,
]


@pytest.fixture(scope="module")
def encoder() -> OnnxEncoder:
    return OnnxEncoder(BUNDLED, threads=2, heads=["dense"])


def vectors(encoded: Encoded) -> NDArray[np.float32]:
    assert encoded.dense is not None
    return encoded.dense.vectors


def token_vectors(encoded: Encoded) -> Multi:
    assert encoded.multi is not None
    return encoded.multi


def edited(target: Path, **changes: object) -> Path:
    """The bundled model with another configuration."""
    target.mkdir()
    for file in ("tokenizer.json", "model.int8.onnx", "sparse.onnx"):
        (target / file).symlink_to(BUNDLED / file)
    config = json.loads((BUNDLED / "trilens.json").read_text()) | changes
    (target / "trilens.json").write_text(json.dumps(config))
    return target


def test_it_is_an_encoder(encoder: OnnxEncoder) -> None:
    as_protocol: Encoder = encoder
    assert as_protocol.fingerprint.startswith(f"{NAME}-")


def test_vectors_have_length_one(encoder: OnnxEncoder) -> None:
    found = vectors(encoder.encode_docs(TEXTS))
    assert found.shape == (len(TEXTS), 384)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)


def test_near_texts_are_nearer_than_far_ones(encoder: OnnxEncoder) -> None:
    query = vectors(encoder.encode_queries(["how to duplicate a file with Python"]))[0]
    scores = vectors(encoder.encode_docs(TEXTS)) @ query
    assert set(np.argsort(-scores)[:2]) == {5, 6}


def test_a_batch_equals_texts_one_by_one_in_the_order_given(encoder: OnnxEncoder) -> None:
    together = vectors(encoder.encode_docs(TEXTS))
    alone = np.concatenate([vectors(encoder.encode_docs([text])) for text in TEXTS])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    backwards = vectors(encoder.encode_docs(TEXTS[::-1]))[::-1]
    np.testing.assert_allclose(together, backwards, atol=1e-5)


def test_the_size_of_a_request_changes_vectors_by_rounding_alone() -> None:
    """At most 1e-6, as ARCHITECTURE.md states; weights of terms and token vectors are equal here."""
    random = np.random.default_rng(0)
    words = np.array(" ".join(TEXTS).split())
    texts = [" ".join(random.choice(words, size)) for size in random.integers(1, 150, 80)]
    every = OnnxEncoder(BUNDLED, threads=2)
    whole = every.encode_docs(texts)
    pieces = [every.encode_docs(texts[start : start + 20]) for start in range(0, len(texts), 20)]
    np.testing.assert_allclose(vectors(whole), np.concatenate([vectors(piece) for piece in pieces]), atol=1e-6, rtol=0)
    token_pieces = np.concatenate([token_vectors(piece).vectors for piece in pieces])
    np.testing.assert_allclose(token_vectors(whole).vectors, token_pieces, atol=1e-6, rtol=0)
    for head in ("sparse", "lexical"):
        joined = Sparse.concat([getattr(piece, head) for piece in pieces])
        np.testing.assert_array_equal(getattr(whole, head).terms, joined.terms)
        np.testing.assert_allclose(getattr(whole, head).weights, joined.weights, atol=1e-6, rtol=0)


def test_padding_changes_nothing(encoder: OnnxEncoder) -> None:
    """Beside a longer text a short one is padded; no amount of that may show."""
    short = "How do I copy a file in Python?"
    alone = vectors(encoder.encode_docs([short]))[0]
    for words in (9, 17, 40, 63, 100):
        padded = vectors(encoder.encode_docs([short, "word " * words]))[0]
        np.testing.assert_allclose(padded, alone, atol=1e-5, err_msg=f"beside {words} words")


def test_more_texts_than_a_batch_holds(encoder: OnnxEncoder) -> None:
    texts = [f"item {number}" for number in range(BATCH_TOKENS // 4 + 20)]
    finished: list[int] = []
    found = vectors(encoder.encode_docs(texts, finished.append))
    assert len(finished) > 1
    assert sum(finished) == len(texts)
    for at in (0, 9, len(texts) - 1):
        np.testing.assert_allclose(found[at], vectors(encoder.encode_docs([texts[at]]))[0], atol=1e-5)


@pytest.mark.parametrize("count", [1, 120], ids=["a batch", "several batches"])
def test_the_number_of_threads_changes_nothing(count: int) -> None:
    texts = [f"{TEXTS[at % len(TEXTS)]} {at}" for at in range(count)]
    single, several = (OnnxEncoder(BUNDLED, threads=threads).encode_docs(texts) for threads in (1, 3))
    np.testing.assert_allclose(vectors(several), vectors(single), atol=1e-5)
    assert single.multi and several.multi
    np.testing.assert_allclose(several.multi.vectors, single.multi.vectors, atol=1e-5)
    for name in ("sparse", "lexical", "bag"):
        one, other = getattr(single, name), getattr(several, name)
        np.testing.assert_array_equal(other.indptr, one.indptr)
        np.testing.assert_array_equal(other.terms, one.terms)
        np.testing.assert_allclose(other.weights, one.weights, atol=1e-5)


def test_batches_behind_one_that_fails_are_not_begun() -> None:
    begun: list[int] = []
    seen = threading.Event()

    def work(batch: BatchPositions) -> int:
        begun.append(len(batch))
        if len(batch) == 2:
            raise BadInput("no")
        if len(batch) > 2:
            seen.wait()
        return len(batch)

    with ThreadPoolExecutor(1) as pool:
        finished = run_ahead(pool, work, [np.arange(size) for size in range(1, 10)])
        assert next(finished) == 1
        with pytest.raises(BadInput):
            next(finished)
        seen.set()
    assert begun in ([1, 2], [1, 2, 3])


def test_many_threads_at_once_give_what_one_gives() -> None:
    """The encoder is fresh, so that loading is raced for as well."""
    encoder = OnnxEncoder(BUNDLED, threads=1, heads=["dense"])
    calls = [encoder.encode_docs, encoder.encode_queries] * 4  # both, as their lengths may differ
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda call: vectors(call(TEXTS)), calls))
    expected = vectors(encoder.encode_docs(TEXTS))
    for answer in answers:
        np.testing.assert_allclose(answer, expected, atol=1e-5)


def test_an_empty_list_gives_no_rows(encoder: OnnxEncoder) -> None:
    assert vectors(encoder.encode_docs([])).shape == (0, 384)
    assert vectors(encoder.encode_queries([])).shape == (0, 384)


def test_truncated_texts_are_counted_and_read_up_to_the_limit(tmp_path: Path) -> None:
    encoder = OnnxEncoder(edited(tmp_path / "short", max_doc_tokens=8, max_query_tokens=6), threads=1, heads=["dense"])
    fits, over = "one two three four five six", "one two three four five six seven"
    assert encoder.encode_docs([fits]).truncated == 0
    cut = encoder.encode_docs([over, fits, over + " eight"])
    assert cut.truncated == 2
    # Six words and two special tokens are all that is read, and the closing token is still the last.
    np.testing.assert_allclose(vectors(cut), np.repeat(vectors(cut)[1:2], 3, axis=0), atol=1e-5)
    assert encoder.encode_queries([fits]).truncated == 1
    np.testing.assert_allclose(
        vectors(encoder.encode_queries([fits])), vectors(encoder.encode_queries(["one two three four"])), atol=1e-5
    )


def test_prefixes_are_put_before_queries_and_docs(tmp_path: Path, encoder: OnnxEncoder) -> None:
    prefixed = OnnxEncoder(edited(tmp_path / "e5", query_prefix="query: ", doc_prefix="passage: "), threads=1, heads=["dense"])
    plain = encoder.encode_docs(["query: red fox", "passage: red fox"])
    np.testing.assert_allclose(vectors(prefixed.encode_queries(["red fox"])), vectors(plain)[:1], atol=1e-5)
    np.testing.assert_allclose(vectors(prefixed.encode_docs(["red fox"])), vectors(plain)[1:], atol=1e-5)


def test_a_bare_string_is_refused(encoder: OnnxEncoder) -> None:
    with pytest.raises(BadInput, match="list of texts"):
        encoder.encode_docs("a single text")
    with pytest.raises(BadInput, match="list of texts"):
        encoder.encode_queries("a single text")


def test_what_is_not_text_is_refused_by_position(encoder: OnnxEncoder) -> None:
    with pytest.raises(BadInput, match="text 1 is int"):
        encoder.encode_docs(["good", 3])  # type: ignore[list-item]
    with pytest.raises(BadInput, match="text 1 holds the lone surrogate"):
        encoder.encode_docs(["good", "bad \ud800"])


def test_opening_is_lazy_and_threads_are_checked() -> None:
    assert OnnxEncoder(BUNDLED).dim == 384
    for wrong in (0, 1_000_000):
        with pytest.raises(BadInput, match=f"threads is {wrong}; expected 1 to 1,024"):
            OnnxEncoder(BUNDLED, threads=wrong)


@pytest.mark.parametrize("file", ["tokenizer.json", "model.int8.onnx"])
def test_a_damaged_file_is_named(tmp_path: Path, file: str) -> None:
    folder = Path(shutil.copytree(BUNDLED, tmp_path / "damaged"))
    content = (folder / file).read_bytes()
    (folder / file).write_bytes(content[: len(content) // 2])
    with pytest.raises(BadModel, match=file.replace(".", r"\.")):
        OnnxEncoder(folder, threads=1).encode_queries(["text"])


def test_batches_cover_all_texts_once_within_the_budget() -> None:
    lengths = [int(length) for length in np.random.default_rng(1).integers(2, 512, 300)]
    batches = list(batches_by_length(lengths, 2048, 100))
    assert sorted(np.concatenate(batches).tolist()) == list(range(300))
    assert all(len(batch) * max(lengths[at] for at in batch) <= 2048 for batch in batches)
    assert [batch.tolist() for batch in batches_by_length([5, 9000, 3], 16, 9)] == [[1], [0, 2]]
    assert list(batches_by_length([], 16, 9)) == []
    assert [batch.tolist() for batch in batches_by_length([0, 0, 0], 16, 2)] == [[0, 1], [2]]
    assert [batch.tolist() for batch in batches_by_length([1, 1], 16, 0)] == [[0], [1]]


def test_heads_are_chosen_among_those_of_the_folder(tmp_path: Path) -> None:
    assert OnnxEncoder(BUNDLED).heads == ("dense", "multi", "sparse", "lexical")
    assert OnnxEncoder(BUNDLED, heads=["multi", "dense"]).heads == ("dense", "multi")
    folder = edited(tmp_path / "dense", heads=["dense"], multi=None, sparse=None, lexical=None)
    with pytest.raises(BadModel, match=r"has the heads \['dense'\], not \['multi'\]; choose"):
        OnnxEncoder(folder, heads=["dense", "multi"])
    assert OnnxEncoder(folder, threads=1).encode_docs(["a"]).multi is None


@pytest.mark.parametrize("heads", [[], "dense"])
def test_heads_must_be_a_list_of_some(heads: list[Head]) -> None:
    with pytest.raises(BadInput, match=r"expected a list of some of \['dense', 'multi', 'sparse', 'lexical'\]"):
        OnnxEncoder(BUNDLED, heads=heads)
    with pytest.raises(BadInput, match=r"expected a list of some of \['multi'\]"):
        OnnxEncoder(BUNDLED, heads=["multi"]).encode_queries(["a"], heads)


def test_a_call_may_ask_for_fewer_heads(tmp_path: Path) -> None:
    marked = {"query_tokens": 6, "mask_token": "[MASK]", "query_marker": "[Q]", "doc_marker": "[D]"}
    encoder = OnnxEncoder(echo_model(tmp_path / "echo", multi=marked))
    assert token_vectors(encoder.encode_queries(["red"], ["multi"])).vectors[:, 1].tolist() == [1, 1, 1, 1, 0, 0]
    found = encoder.encode_docs(["red"], heads=["dense"])
    assert found.multi is None
    assert vectors(found).tolist() == [[ID["[CLS]"] + ID["[D]"] + ID["red"] + ID["[SEP]"], 4]]
    with pytest.raises(BadModel, match=r"has the heads \['dense', 'multi'\], not \['sparse'\]"):
        encoder.encode_queries(["red"], ["sparse"])


def test_queries_are_weighted_and_documents_are_not(tmp_path: Path) -> None:
    encoder = OnnxEncoder(echo_model(tmp_path / "echo", multi={"weighted": True}))
    ids = [ID[word] for word in ("[CLS]", "red", "fox", "[SEP]")]
    for heads in (None, ["multi"]):
        queries = token_vectors(encoder.encode_queries(["red fox", "red"], heads))  # type: ignore[arg-type]
        assert queries.vectors[:4].tolist() == [[place * id_, place] for place, id_ in enumerate(ids, 1)]
        assert queries.vectors[4:, 1].tolist() == [1, 2, 3]
        docs = token_vectors(encoder.encode_docs(["red fox"], heads=heads))  # type: ignore[arg-type]
        assert docs.vectors.tolist() == [[id_, 1] for id_ in ids]
    assert vectors(encoder.encode_queries(["red fox"])).tolist() == [[sum(ids), 4]]


def test_a_graph_without_the_weights_of_a_weighted_head_is_refused(tmp_path: Path) -> None:
    folder = echo_model(tmp_path / "wrong", multi={"weighted": True})
    graph = folder / "model.onnx"
    graph.write_bytes(graph.read_bytes().replace(b"multi_weights", b"other_weights"))
    with pytest.raises(BadModel, match=r"expected \['multi_weights'\] as well"):
        OnnxEncoder(folder, threads=1).encode_docs(["a"])


def test_a_model_of_token_vectors_alone(tmp_path: Path) -> None:
    encoder = OnnxEncoder(echo_model(tmp_path / "echo", heads=["multi"]))
    found = encoder.encode_docs(["red"])
    assert found.dense is None
    assert len(token_vectors(found).tokens) == 3


def test_dimensions_must_be_those_of_the_graph(tmp_path: Path) -> None:
    folder = with_multi(tmp_path / "wrong", dim=64)
    with pytest.raises(BadModel, match=r"model.int8.onnx gives multi 128 dimensions; expected 64"):
        OnnxEncoder(folder, threads=1).encode_docs(["a"])


def test_an_unknown_marker_is_refused_at_the_first_text(tmp_path: Path) -> None:
    encoder = OnnxEncoder(with_multi(tmp_path / "wrong", query_marker="[unused5000]"), threads=1)
    with pytest.raises(BadModel, match=r"no token '\[unused5000\]', which multi.query_marker names"):
        encoder.encode_docs(["a"])


def test_a_damaged_head_is_named_when_it_is_asked_for(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(BUNDLED, tmp_path / "damaged"))
    (folder / "sparse.onnx").write_bytes((folder / "sparse.onnx").read_bytes()[:5000])
    encoder = OnnxEncoder(folder, threads=1)
    assert encoder.encode_queries(["text"], ["dense"]).dense is not None
    with pytest.raises(BadModel, match=r"sparse\.onnx cannot be opened"):
        encoder.encode_queries(["text"])


def test_a_folder_may_be_reached_by_a_link(tmp_path: Path) -> None:
    """The sparse head reads its word embeddings from the file beside it, wherever the folder is."""
    (tmp_path / "link").symlink_to(BUNDLED)
    folders = (tmp_path / "link", BUNDLED)
    linked, direct = (
        OnnxEncoder(folder, threads=1, heads=["sparse", "lexical"]).encode_queries(TEXTS[:1]) for folder in folders
    )
    for name in ("sparse", "lexical", "bag"):
        for array in ("indptr", "terms", "weights", "dim"):
            np.testing.assert_array_equal(getattr(getattr(linked, name), array), getattr(getattr(direct, name), array))


def test_a_graph_without_states_is_refused(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(BUNDLED, tmp_path / "stateless"))
    weights = (folder / "model.int8.onnx").read_bytes()
    (folder / "model.int8.onnx").write_bytes(weights.replace(b"\x06states", b"\x06stated"))
    with pytest.raises(BadModel, match=r"model\.int8\.onnx has the outputs .*; expected \['states'\] as well"):
        OnnxEncoder(folder, threads=1).encode_queries(["text"], ["dense"])
