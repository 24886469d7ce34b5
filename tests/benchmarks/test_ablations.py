"""Building blocks of the ablations against results by hand."""

import numpy as np

from benchmarks.ablations import cut, dots, is_own, kept, maxsim, quality
from trilens.represent import Multi, Sparse


def sparse(*texts: dict[int, float], dim: int = 10) -> Sparse:
    indptr = np.cumsum([0, *(len(text) for text in texts)])
    terms = np.array([term for text in texts for term in text], np.int32)
    return Sparse(indptr, terms, np.array([weight for text in texts for weight in text.values()], np.float32), dim)


def as_dicts(rows: Sparse) -> list[dict[int, float]]:
    spans = [slice(*rows.indptr[row : row + 2]) for row in range(len(rows))]
    return [dict(zip(rows.terms[span].tolist(), rows.weights[span].tolist(), strict=True)) for span in spans]


def test_the_highest_weights_and_own_terms_are_kept() -> None:
    rows = sparse({1: 5.0, 2: 1.0, 3: 3.0, 4: 4.0}, {2: 2.0, 5: 1.0})
    bag = sparse({2: 1.0, 9: 1.0}, {5: 1.0})
    assert is_own(rows, bag).tolist() == [False, True, False, False, False, True]
    assert as_dicts(cut(rows, 2, bag)) == [{1: 5.0, 2: 1.0, 4: 4.0}, {2: 2.0, 5: 1.0}]
    assert as_dicts(kept(rows, ~is_own(rows, bag))) == [{1: 5.0, 3: 3.0, 4: 4.0}, {2: 2.0}]


def test_scores_are_inner_products_and_maxsim() -> None:
    docs = sparse({1: 2.0, 3: 1.0}, {2: 4.0})
    assert dots(sparse({1: 3.0, 2: 1.0}), docs).tolist() == [[6.0, 4.0]]
    vectors = np.array([[1, 0], [0, 1], [0.5, 0.5]], np.float32)
    tokens = np.zeros(3, np.int32)
    texts = Multi(np.array([0, 2, 2, 3]), vectors, tokens)
    query = Multi(np.array([0, 2]), np.array([[1, 0], [1, 1]], np.float32), tokens[:2])
    assert maxsim(query, texts).tolist() == [[2.0, -np.inf, 1.5]]  # 1 + 1; no tokens; 0.5 + 1


def test_documents_that_were_not_retrieved_do_not_count() -> None:
    qrels = {"q": {"a": 1}}
    assert quality(np.array([[1.0, 2.0]], np.float32), ["q"], ["a", "b"], qrels) > 0.6
    assert quality(np.array([[-np.inf, 2.0]], np.float32), ["q"], ["a", "b"], qrels) == 0.0
