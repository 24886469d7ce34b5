"""The codebook of the multi lens: when a batch trains it or adds a page, and the figures that tell how well it fits."""

from pathlib import Path

import numpy as np
import pytest

from trilens.encode.encoder import Encoded
from trilens.index.codebook import Codebook, Page, centroid_count
from trilens.represent import Multi

from ..index.token_index import CLUSTERS, DIMS, LENS, TokenIndex, build, lens_of, ragged, share, texts, unit


def flat(seed: int, tokens: int, centres: int = 0) -> Multi:
    """Texts of ten tokens."""
    random = np.random.default_rng(seed)
    middle = np.random.default_rng(centres).normal(size=(CLUSTERS, DIMS))
    vectors = middle[random.integers(0, CLUSTERS, tokens)] + 0.5 * random.normal(size=(tokens, DIMS))
    return ragged(unit(vectors), [10] * (tokens // 10))


def test_the_first_tokens_train_the_codebook(tmp_path: Path) -> None:
    assert not LENS.share(Encoded(multi=ragged(np.zeros((0, DIMS)), [0, 0])), [], tmp_path / "none")
    assert not (tmp_path / "none").exists()
    pages = share(flat(1, 1000), [], tmp_path / "first")
    assert len(pages) == 1
    wanted = centroid_count(1000)
    assert wanted == 128 and 0.9 * wanted <= len(pages[0].centroids) <= 1.1 * wanted
    chosen = share(flat(1, 1000), [], tmp_path / "chosen", lens_of(centroids=10))
    assert len(chosen[0].centroids) in (9, 10, 11)


@pytest.mark.parametrize("centroids", [64, None])
@pytest.mark.parametrize("tokens", [500, 4000])
def test_a_batch_like_the_first_adds_nothing(tmp_path: Path, centroids: int | None, tokens: int) -> None:
    some = lens_of(centroids=centroids)
    pages = share(flat(1, 4000), [], tmp_path / "first", some)
    for seed in (2, 3, 4):
        assert not some.share(Encoded(multi=flat(seed, tokens)), pages, tmp_path / str(seed))
        assert not (tmp_path / str(seed)).exists()


def test_a_batch_without_tokens_adds_nothing(index: TokenIndex, tmp_path: Path) -> None:
    assert not LENS.share(Encoded(multi=ragged(np.zeros((0, DIMS)), [0])), index.pages, tmp_path / "more")


def test_a_much_larger_batch_adds_a_page(tmp_path: Path) -> None:
    pages = share(flat(1, 400), [], tmp_path / "first")
    before = len(pages[0].centroids)
    pages = share(flat(2, 10_000), pages, tmp_path / "second")
    assert len(pages) == 2
    assert before + len(pages[1].centroids) == pytest.approx(centroid_count(10_000), rel=0.1)
    assert Codebook(pages).encode(flat(3, 1000).vectors)[1].mean() < Codebook(pages[:1]).encode(flat(3, 1000).vectors)[1].mean()
    # a configured number of centroids does not grow with the batch
    chosen = lens_of(centroids=64)
    first = share(flat(1, 4000), [], tmp_path / "chosen", chosen)
    assert not chosen.share(Encoded(multi=flat(2, 20_000)), first, tmp_path / "no more")


@pytest.mark.parametrize("centroids", [64, None])
def test_a_quite_different_batch_adds_a_page(tmp_path: Path, centroids: int | None) -> None:
    some = lens_of(centroids=centroids)
    pages = share(flat(1, 4000), [], tmp_path / "first", some)
    strange = flat(2, 4000, centres=9)
    both = share(strange, pages, tmp_path / "second", some)
    assert len(both) == 2
    before, after = (Codebook(some_pages).encode(strange.vectors)[1].mean() for some_pages in (pages, both))
    assert after < 0.8 * before
    used = Codebook(both).nearest(strange.vectors)
    assert (used >= len(pages[0].centroids)).mean() > 0.5


def test_pages_come_to_an_end(tmp_path: Path) -> None:
    # Two kinds of documents in turn: after a while the codebook knows both.
    some = lens_of(centroids=128)
    pages: list[Page] = []
    for seed in range(12):
        pages = share(flat(seed, 2000, centres=seed % 2), pages, tmp_path / str(seed), some)
    assert len(pages) <= 6
    assert not some.share(Encoded(multi=flat(99, 2000, centres=1)), pages, tmp_path / "last")


def test_one_zero_vector_does_not_make_a_page_of_another_kind(tmp_path: Path) -> None:
    some = lens_of(centroids=64)
    pages = share(flat(1, 4000), [], tmp_path / "first", some)
    assert pages[0].normalised
    strange = flat(2, 4000, centres=9)
    strange.vectors[17] = 0
    both = share(strange, pages, tmp_path / "second", some)
    # Centroids of both pages are compared with the same tokens, so they must have the same length.
    np.testing.assert_allclose(np.linalg.norm(both[1].centroids, axis=1), 1, atol=1e-4)


def test_a_tiny_first_batch_is_made_up_for(tmp_path: Path) -> None:
    pages = share(texts(1, [3]), [], tmp_path / "tiny")
    for seed in range(4):
        pages = share(flat(seed, 3000), pages, tmp_path / str(seed))
    fresh = share(flat(0, 3000), [], tmp_path / "fresh")
    other = flat(50, 2000).vectors
    assert Codebook(pages).encode(other)[1].mean() < 2 * Codebook(fresh).encode(other)[1].mean()
    assert len(pages) <= 3


def test_drift_tells_that_later_tokens_fit_worse(tmp_path: Path) -> None:
    docs, strange = flat(1, 4000), flat(2, 4000, centres=9)
    some = lens_of(centroids=64)
    pages = share(docs, [], tmp_path / "page", some)
    parts = [build(docs, pages, tmp_path / "docs", some)]
    figures = some.figures(parts, pages)
    assert figures["tokens"] == 4000 and figures["dimensions"] == DIMS and figures["bits"] == 4
    assert figures["centroids"] == len(pages[0].centroids) and figures["centroids of a fresh codebook"] == 64
    assert figures["drift"] == pytest.approx(1, abs=0.1)
    assert figures["drift"] == pytest.approx(figures["error"] / figures["error at training"], rel=0.01)
    assert "advice" not in figures
    drifts = [figures["drift"]]
    for batch in range(3):
        parts.append(build(strange, pages, tmp_path / str(batch), some))
        drifts.append(some.figures(parts, pages)["drift"])
    assert drifts == sorted(drifts) and drifts[1] > 1.5 and drifts[3] > drifts[1] + 0.5
    assert "--retrain" in some.figures(parts, pages)["advice"]
    # with their own page they fit
    both = share(strange, pages, tmp_path / "second", some)
    mended = [parts[0], build(strange, both, tmp_path / "mended", some)]
    assert some.figures(mended, both)["drift"] < some.figures(parts[:2], pages)["drift"] - 0.3


def test_figures_of_nothing(index: TokenIndex, tmp_path: Path) -> None:
    assert LENS.figures([], []) == {"tokens": 0}
    blank = build(ragged(np.zeros((0, DIMS)), [0, 0]), [], tmp_path)
    assert LENS.figures([blank], []) == {"tokens": 0}
    assert LENS.figures([blank], index.pages) == {"tokens": 0}
