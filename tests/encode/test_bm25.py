import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trilens.encode.bm25 import Bm25Encoder
from trilens.errors import BadInput
from trilens.represent.counts import Counts
from trilens.text.analysis import AnalysisConfig


def encode(texts: list[str], encoder: Bm25Encoder) -> Counts:
    counts = encoder.encode_docs(texts).counts
    assert counts is not None
    return counts


def bags(counts: Counts) -> list[dict[str, float]]:
    """Words with their counts, in the order in which they are kept."""
    sparse = counts.sparse
    spans = [slice(sparse.indptr[i], sparse.indptr[i + 1]) for i in range(len(counts))]
    return [
        {
            counts.vocabulary.word(term): count
            for term, count in zip(sparse.terms[span], sparse.weights[span].tolist(), strict=True)
        }
        for span in spans
    ]


def test_counts_by_hand() -> None:
    counts = encode(["The dog's dogs saw a cat", "", "the", "Cat, cat: CATS!"], Bm25Encoder())
    assert bags(counts) == [{"cat": 1, "dog": 2, "saw": 1}, {}, {}, {"cat": 3}]
    assert counts.lengths.tolist() == [4, 0, 0, 3]  # stop words do not count
    assert [counts.vocabulary.word(i) for i in range(3)] == ["cat", "dog", "saw"]
    assert (len(counts), counts.sparse.dim, len(counts.vocabulary)) == (4, 3, 3)


def test_an_empty_batch_has_no_rows() -> None:
    counts = encode([], Bm25Encoder())
    assert (len(counts), counts.sparse.dim, len(counts.lengths)) == (0, 0, 0)


@settings(deadline=None)
@given(st.lists(st.text("ab é東京'") | st.text(), max_size=5))
def test_a_batch_is_its_texts_one_by_one(texts: list[str]) -> None:
    encoder = Bm25Encoder(AnalysisConfig(language="none"))
    counts = encode(texts, encoder)
    assert bags(counts) == [bags(encode([text], encoder))[0] for text in texts]
    for i in range(len(texts)):
        terms = counts.sparse.terms[counts.sparse.indptr[i] : counts.sparse.indptr[i + 1]].tolist()
        assert terms == sorted(set(terms))


def test_queries_are_counted_as_documents_are() -> None:
    encoder = Bm25Encoder()
    queries = encoder.encode_queries(["dogs dog"]).counts
    assert queries is not None
    assert bags(queries) == bags(encode(["dogs dog"], encoder)) == [{"dog": 2}]


def test_progress_tells_how_many_texts_are_done() -> None:
    done: list[int] = []
    Bm25Encoder().encode_docs(["a", "b", "c"], done.append)
    assert sum(done) == 3


def test_the_fingerprint_tells_analyses_apart() -> None:
    configs = [
        AnalysisConfig(),
        AnalysisConfig(stem=False),
        AnalysisConfig(stop_words=False),
        AnalysisConfig(language="none"),
    ]
    assert len({Bm25Encoder(config).fingerprint for config in configs}) == 4
    assert Bm25Encoder().fingerprint == Bm25Encoder(AnalysisConfig(language="english")).fingerprint


def test_one_string_is_not_a_batch() -> None:
    with pytest.raises(BadInput, match="put it into a list"):
        Bm25Encoder().encode_queries("a text")
