"""The query side of a multi search: centroid scores and the forms of the token vectors."""

import numpy as np
import pytest

from trilens.index.codebook import Codebook
from trilens.index.multi_query import padded_columns, probe
from trilens.kernels.lanes import WIDTH

from .token_index import QUERIES, TokenIndex, tokens_of


@pytest.mark.parametrize("query", [0, 2, 4])
def test_the_best_centroids_are_probed(index: TokenIndex, query: int) -> None:
    vectors, codebook = np.ascontiguousarray(tokens_of(QUERIES, query)), Codebook(index.pages)
    probed = probe(vectors, codebook, reach=10_000, probes=5).centroids
    scores = vectors @ codebook.centroids.T
    np.testing.assert_allclose(probed.probed_scores, -np.sort(-scores, axis=1)[:, :5], atol=1e-5)
    np.testing.assert_allclose(np.take_along_axis(scores, probed.probed.astype(np.int64), 1), probed.probed_scores, atol=1e-5)


def test_no_more_centroids_are_probed_than_there_are(index: TokenIndex) -> None:
    codebook = Codebook(index.pages)
    probed = probe(np.ascontiguousarray(tokens_of(QUERIES, 0)), codebook, 10_000, 100_000).centroids
    assert sorted(probed.probed[0].tolist()) == list(range(len(codebook.centroids)))


@pytest.mark.parametrize("tokens", [1, WIDTH, WIDTH + 1])
def test_columns_are_padded_with_zeros(tokens: int) -> None:
    vectors = np.random.default_rng(tokens).normal(size=(tokens, 4)).astype(np.float32)
    columns = padded_columns(vectors)
    assert columns.shape[0] == 4 and columns.shape[1] % WIDTH == 0
    assert columns[:, :tokens].tolist() == vectors.T.tolist() and not columns[:, tokens:].any()
