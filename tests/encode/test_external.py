import json

import pytest

from trilens.encode.external import ExternalEncoder
from trilens.errors import BadInput


def test_vectors_are_numbered_by_the_sorted_terms_of_the_batch() -> None:
    finished: list[int] = []
    texts = [json.dumps(vector) for vector in ({"dog": 2.0, "cat": 0.25}, {}, {"cat": 1.5})]
    counts = ExternalEncoder().encode_docs(texts, finished.append).counts
    assert counts is not None
    assert [counts.vocabulary.word(term) for term in range(2)] == ["cat", "dog"]
    assert counts.sparse.indptr.tolist() == [0, 2, 2, 3]
    assert counts.sparse.terms.tolist() == [0, 1, 0]
    assert counts.sparse.weights.tolist() == [0.25, 2.0, 1.5]
    assert counts.lengths.tolist() == [2, 0, 1]
    assert sum(finished) == 3


def test_queries_are_read_as_documents_are() -> None:
    queries = ExternalEncoder().encode_queries(['{"cat": 2.0}']).counts
    assert queries is not None
    assert (queries.vocabulary.word(0), queries.sparse.weights.tolist()) == ("cat", [2.0])


def test_text_that_is_not_a_vector_is_refused() -> None:
    with pytest.raises(BadInput):
        ExternalEncoder().encode_docs(["a plain text"])
