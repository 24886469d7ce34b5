"""Own-term boost, term frequency saturation and length normalisation against arithmetic by hand."""

import numpy as np
import pytest

from trilens.encode.encoder import Encoded
from trilens.encode.folder import TermWeighting
from trilens.index.term_weighting import PLAIN, bag_scales, weight_docs, weight_queries

from ..lenses.term_rows import sparse

# Three documents over five terms, and the terms that they contain themselves.
DOCS = sparse([{0: 3.0, 1: 4.0}, {1: 2.0, 2: 1.0, 4: 2.0}, {}], dim=5)
OWN = sparse([{0: 1.0, 3: 3.0}, {4: 1.0}, {2: 2.0}], dim=5)
QUERY = sparse([{0: 1.0, 1: 2.0, 4: 5.0}], dim=5)
QUERY_BAG = sparse([{1: 1.0}], dim=5)


def test_a_part_of_the_bag_is_added_at_length_1() -> None:
    weighted = weight_docs(
        Encoded(sparse=DOCS, bag=OWN), "sparse", TermWeighting(repeats=1.0, sparse_length=1.0, bag_added=0.5)
    )
    assert weighted.weights == pytest.approx([3 / 5 + 0.5, 4 / 5, 0.75, 2 / 3, 1 / 3, 2 / 3 + 0.5, 2 / 3])
    assert (weighted.terms.tolist(), weighted.indptr.tolist()) == ([0, 1, 3, 1, 2, 4, 2], [0, 3, 6, 7])


def test_repeated_tokens_of_a_bag_count_more_but_never_twice() -> None:
    docs = Encoded(bag=sparse([{0: 1.0, 1: 2.0, 2: 9.0}, {}], dim=5))
    assert weight_docs(docs, "bag", TermWeighting(repeats=1.0)).weights == pytest.approx([1, 4 / 3, 1.8])
    assert weight_docs(docs, "bag", PLAIN).weights.tolist() == [1, 1, 1]


def test_a_length_may_count_in_part() -> None:
    weighted = weight_docs(Encoded(lexical=DOCS), "lexical", TermWeighting(repeats=9.0, bag_added=9.0, lexical_length=0.5))
    assert weighted.weights == pytest.approx([3 / 5**0.5, 4 / 5**0.5, 2 / 3**0.5, 1 / 3**0.5, 2 / 3**0.5])


def test_queries_keep_their_length() -> None:
    assert weight_queries(QUERY, QUERY_BAG, TermWeighting(own_query=4.0, sparse_length=1.0)).weights.tolist() == [1, 8, 5]


def test_plain_weighting_changes_nothing() -> None:
    assert weight_docs(Encoded(sparse=DOCS, bag=OWN), "sparse", PLAIN) is DOCS
    assert weight_queries(QUERY, QUERY_BAG, PLAIN) is QUERY
    assert bag_scales(np.array([0, 1, 16]), PLAIN).tolist() == [1, 1, 1]


def test_bags_of_many_terms_count_less() -> None:
    assert bag_scales(np.array([0, 1, 16, 81]), TermWeighting(bag_length=0.5)) == pytest.approx([1, 1, 1 / 2, 1 / 3])
