"""The codebook: quantisation error, nearest centroids, and pages on disk."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from trilens.index.codebook import (
    CODE_ARRAYS,
    GROUPS_SEARCHED,
    PAGE_ARRAYS,
    STRETCH_REACH,
    Codebook,
    Codes,
    Page,
    centroid_count,
    nearest_centroids,
    train_page,
)
from trilens.kernels.array_types import AnyArray, Float32s

Train = Callable[[Float32s, int, int, bool], Page]

DIMS = {1: 128, 2: 64, 4: 32}  # fewest dimensions by bits
CLUSTERS = 60


def unit(vectors: AnyArray) -> Float32s:
    units: Float32s = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return units


def clustered(seed: int, tokens: int, dims: int = 32, centres: int = 0) -> Float32s:
    """Vectors of length 1 around centres that are the same for every seed."""
    random = np.random.default_rng(seed)
    middle = np.random.default_rng(centres).normal(size=(CLUSTERS, dims))
    return unit(middle[random.integers(0, CLUSTERS, tokens)] + 0.5 * random.normal(size=(tokens, dims)))


def stretched(vectors: Float32s, seed: int = 0) -> Float32s:
    """The same directions with lengths from 0.5 to 3."""
    far: Float32s = (vectors * np.random.default_rng(seed).uniform(0.5, 3, (len(vectors), 1))).astype(np.float32)
    return far


def lengths(vectors: Float32s) -> Float32s:
    norms: Float32s = np.linalg.norm(vectors, axis=1)
    return norms


def same_codes(codes: Codes, other: Codes) -> bool:
    return all(getattr(codes, name).tolist() == getattr(other, name).tolist() for name in CODE_ARRAYS)


def decode(codebook: Codebook, codes: Codes) -> Float32s:
    """Slow reference: stretch · (centroid + size · steps · level)."""
    bits = codebook.bits
    planes = [codes.residuals.astype(np.int64) // 2**shift % 2**bits for shift in range(0, 8, bits)]
    levels = codebook.levels[np.concatenate(planes, axis=1)].astype(np.float32)
    rest = codebook.sizes[codes.sizes][:, None] * codebook.steps * levels
    vectors: Float32s = codebook.stretches[codes.stretches][:, None] * (codebook.centroids[codes.nearest] + rest)
    return vectors


@pytest.fixture(scope="module")
def train() -> Train:
    """Train each page once for all tests."""
    trained_pages: dict[tuple[bytes, int, int, bool], Page] = {}

    def trained(vectors: Float32s, count: int, bits: int, normalised: bool) -> Page:
        key = (vectors.tobytes(), count, bits, normalised)
        if key not in trained_pages:
            trained_pages[key] = train_page(vectors, count, bits, normalised, seed=7)
        return trained_pages[key]

    return trained


@pytest.mark.parametrize(
    "tokens, count",
    [
        (0, 1),
        (1, 1),
        (7, 1),  # a quarter of the tokens is less than 2
        (8, 2),
        (100, 16),  # a quarter is 25; 16 √100 = 160
        (4095, 512),
        (4096, 1024),  # a quarter and 16 √4096 are both 1024
        (10_000, 1024),  # 16 · 100 = 1600
        (16_384, 2048),  # 16 · 128
        (1_000_000, 8192),  # 16 · 1000 = 16,000
        (100_000_000, 131_072),  # 160,000
    ],
)
def test_the_number_of_centroids_by_hand(tokens: int, count: int) -> None:
    assert centroid_count(tokens) == count


@pytest.mark.parametrize("bits", [1, 2, 4])
@pytest.mark.parametrize("normalised", [True, False])
def test_decoding_is_the_formula_and_the_errors_are_its_errors(train: Train, bits: int, normalised: bool) -> None:
    vectors, others = clustered(1, 3000, DIMS[bits]), clustered(2, 500, DIMS[bits])
    if not normalised:
        vectors, others = stretched(vectors), stretched(others)
    page = train(vectors, 64, bits, normalised)
    codebook = Codebook([page])
    assert (codebook.dim, codebook.bits, codebook.normalise) == (DIMS[bits], bits, normalised)
    codes, errors = codebook.encode(others)
    assert (len(codes), codes.residuals.shape) == (500, (500, 16))
    decoded = codebook.decode(codes)
    np.testing.assert_allclose(decoded, decode(codebook, codes), atol=1e-6)
    np.testing.assert_allclose(errors, np.square(decoded - others).sum(axis=1), rtol=1e-4, atol=1e-7)
    # the error of the page is that of held-out tokens
    assert float(page.error) == pytest.approx(float(errors.mean()), rel=0.3)
    assert float(page.error) == pytest.approx(float(codebook.encode(vectors)[1].mean()), rel=0.15)


@pytest.mark.parametrize("normalised", [True, False])
def test_more_bits_have_less_error(train: Train, normalised: bool) -> None:
    vectors = clustered(1, 3000, 128) if normalised else stretched(clustered(1, 3000, 128))
    errors = [float(train(vectors, 64, bits, normalised).error) for bits in (1, 2, 4)]
    assert errors[0] > 2.5 * errors[1] > 2.5 * 2.5 * 2 * errors[2]
    alone = Codebook([train(vectors, 64, 1, normalised)])
    zero_bits = np.square(vectors - alone.centroids[alone.nearest(vectors)]).sum(axis=1).mean()
    assert errors[0] < 0.6 * zero_bits


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_vectors_of_length_one_are_decoded_to_length_one(train: Train, bits: int) -> None:
    codebook = Codebook([train(clustered(1, 3000, DIMS[bits]), 64, bits, True)])
    decoded = codebook.decode(codebook.encode(clustered(2, 1000, DIMS[bits]))[0])
    step = STRETCH_REACH ** (2 / 255)  # from one entry of the table to the next
    assert np.abs(np.log(lengths(decoded))).max() <= np.log(step) / 2 + 1e-6


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_vectors_of_other_lengths_keep_them(train: Train, bits: int) -> None:
    vectors = stretched(clustered(1, 3000, DIMS[bits]))
    codebook = Codebook([train(vectors, 64, bits, False)])
    decoded = codebook.decode(codebook.encode(vectors)[0])
    assert np.corrcoef(lengths(decoded), lengths(vectors))[0, 1] > {1: 0.9, 2: 0.95, 4: 0.99}[bits]
    assert np.abs(lengths(decoded) - lengths(vectors)).mean() < {1: 0.25, 2: 0.1, 4: 0.03}[bits]
    assert lengths(decoded).min() < 0.8 and lengths(decoded).max() > 2.5


def test_centroids_have_length_one_or_the_mean_length_of_their_tokens(train: Train) -> None:
    vectors = clustered(1, 3000)
    np.testing.assert_allclose(lengths(train(vectors, 64, 4, True).centroids), 1, atol=1e-5)
    page = train(stretched(vectors), 64, 4, False)
    codebook = Codebook([page])
    np.testing.assert_allclose(lengths(codebook.directions), 1, atol=1e-5)
    nearest = codebook.nearest(stretched(vectors))
    for centroid in range(0, 64, 9):
        along = stretched(vectors)[nearest == centroid] @ codebook.directions[centroid]
        assert lengths(page.centroids)[centroid] == pytest.approx(along.mean(), rel=0.15)  # they are fitted to a sample


@pytest.mark.parametrize("normalised", [True, False])
def test_a_saved_page_is_the_same_page(train: Train, tmp_path: Path, normalised: bool) -> None:
    vectors = clustered(1, 3000) if normalised else stretched(clustered(1, 3000))
    page = train(vectors, 64, 4, normalised)
    page.save(tmp_path)
    again = Page.open(tmp_path)
    for name in PAGE_ARRAYS:
        first, second = getattr(page, name), getattr(again, name)
        assert (first.dtype, first.shape, first.tobytes()) == (second.dtype, second.shape, second.tobytes())
    others = clustered(2, 300)
    codes, errors = Codebook([page]).encode(others)
    codes_again, errors_again = Codebook([again]).encode(others)
    assert same_codes(codes, codes_again)
    assert errors.tobytes() == errors_again.tobytes()
    assert Codebook([page]).decode(codes).tobytes() == Codebook([again]).decode(codes).tobytes()


def test_the_same_seed_gives_the_same_bytes() -> None:
    vectors = clustered(1, 3000)
    pages = [train_page(vectors.copy(), 128, 4, True, seed) for seed in (5, 5, 6)]
    assert all(getattr(pages[0], name).tobytes() == getattr(pages[1], name).tobytes() for name in PAGE_ARRAYS)
    assert pages[0].centroids.tobytes() != pages[2].centroids.tobytes()


def test_training_does_not_change_its_input() -> None:
    vectors = stretched(clustered(1, 500))
    before = vectors.tobytes()
    page = train_page(vectors, 16, 4, False, 1)
    Codebook([page]).encode(vectors)
    assert vectors.tobytes() == before


@pytest.mark.parametrize("count", [1, 2, 3, 16, 100, 256])
def test_groups_contain_each_centroid_once(count: int) -> None:
    page = train_page(clustered(1, 2000), count, 4, True, 1)
    assert page.group_ptr[0] == 0 and page.group_ptr[-1] == len(page.centroids)
    assert (np.diff(page.group_ptr) > 0).all() and len(page.group_ptr) == len(page.leaders) + 1
    assert 0.8 * count <= len(page.centroids) <= 1.2 * count
    np.testing.assert_allclose(lengths(page.leaders), 1, atol=1e-5)


@pytest.mark.parametrize("count, tokens", [(256, 8000), (1024, 8000)])
@pytest.mark.parametrize("kind", ["clustered", "of other lengths", "noise"])
def test_the_nearest_centroid_is_nearly_always_found(count: int, tokens: int, kind: str) -> None:
    vectors, others = clustered(1, tokens), clustered(2, 2000)
    if kind == "noise":
        random = np.random.default_rng(3)
        vectors, others = (unit(random.normal(size=(size, 32))) for size in (tokens, 2000))
    elif kind == "of other lengths":
        vectors, others = stretched(vectors), stretched(others)
    codebook = Codebook([train_page(vectors, count, 4, kind != "of other lengths", 1)])
    assert len(codebook.leaders) > GROUPS_SEARCHED  # otherwise all groups would be searched
    products = others @ codebook.directions.T
    nearest = codebook.nearest(others)
    lost = products.max(axis=1) - products[np.arange(len(others)), nearest]
    assert (nearest == products.argmax(axis=1)).mean() >= (0.95 if kind == "noise" else 0.99)
    assert lost.mean() <= (0.002 if kind == "noise" else 0.0005)


def test_the_nearest_centroid_by_hand() -> None:
    eye = np.eye(32, dtype=np.float32)
    leaders = unit(np.stack([eye[0] + eye[1], eye[2] + eye[3]]))
    vectors = np.stack([eye[0] + 0.1 * eye[1], 3 * eye[3], eye[1], -eye[2], eye[2] + 0.5 * eye[0]])
    nearest = nearest_centroids(vectors, leaders, np.array([0, 2, 4]), eye[:4])
    assert nearest[[0, 1, 2, 4]].tolist() == [0, 3, 1, 2]
    assert nearest[3] in (0, 1, 3)  # their products are 0, that of centroid 2 is -1


def test_codes_do_not_depend_on_the_block(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    codebook = Codebook([train(clustered(1, 3000), 64, 4, True)])
    vectors = clustered(2, 1000)
    whole = codebook.encode(vectors)[0]
    monkeypatch.setattr("trilens.index.codebook.BLOCK_TOKENS", 77)
    assert same_codes(codebook.encode(vectors)[0], whole)
    parts = [codebook.encode(vectors[start : start + 300])[0] for start in range(0, 1000, 300)]
    joined = Codes(*(np.concatenate([getattr(part, name) for part in parts]) for name in CODE_ARRAYS))
    assert same_codes(joined, whole)


def test_slices_of_codes(train: Train) -> None:
    codebook = Codebook([train(clustered(1, 3000), 64, 4, True)])
    codes = codebook.encode(clustered(2, 100))[0]
    decoded = codebook.decode(codes)
    assert codebook.decode(codes.slice(10, 30)).tolist() == decoded[10:30].tolist()
    assert len(codes.slice(5, 5)) == 0 and codebook.decode(codes.slice(5, 5)).shape == (0, 32)


def test_a_second_page_encodes_tokens_unlike_those_of_the_first(train: Train) -> None:
    known, strange = clustered(1, 3000), clustered(2, 3000, centres=9)
    first = train(known, 64, 4, True)
    alone = Codebook([first])
    second = train_page(strange, 64, 4, True, 8, alone)
    for name in ("spread", "steps", "sizes", "cutoffs", "levels"):
        assert getattr(second, name).tobytes() == getattr(first, name).tobytes()
    both = Codebook([first, second])
    size = len(first.centroids)
    assert len(both.centroids) == size + len(second.centroids)
    assert both.group_ptr.tolist() == [*first.group_ptr.tolist(), *(second.group_ptr[1:] + size).tolist()]
    codes, errors = both.encode(strange)
    assert (codes.nearest >= size).mean() > 0.95
    assert (both.encode(known)[0].nearest < size).mean() > 0.95
    np.testing.assert_allclose(both.decode(codes), decode(both, codes), atol=1e-6)
    assert errors.mean() < 0.5 * alone.encode(strange)[1].mean()
    # codes of the first page are decoded as before
    old = alone.encode(known)[0]
    assert both.decode(old).tolist() == alone.decode(old).tolist()
    assert alone.error == float(first.error) and both.error == min(float(first.error), float(second.error))


def test_many_centroids_need_32_bit_numbers() -> None:
    eye = np.zeros((1, 32), np.float32)
    eye[0, 0] = 1
    tables = (np.ones(32, np.float32), np.ones(32, np.float32), np.ones(256, np.float32), np.zeros(15, np.float32))
    most = 1 << 16
    for centroids, dtype in ((most, np.uint16), (most + 1, np.uint32)):
        vectors = np.zeros((centroids, 32), np.float32)
        vectors[-1] = eye[0]
        flags = (np.zeros(16, np.int8), np.zeros((), np.float32), np.array(True))
        page = Page(eye, np.array([0, centroids]), vectors, *tables, *flags)
        nearest = Codebook([page]).nearest(eye)
        assert nearest.dtype == dtype and nearest.tolist() == [centroids - 1]


@pytest.mark.parametrize("normalised", [True, False])
@pytest.mark.parametrize("tokens, count", [(3, 8), (5, 5), (5, 3), (2, 1), (1, 1), (1, 64)])
def test_a_page_can_be_trained_on_few_tokens(tokens: int, count: int, normalised: bool) -> None:
    vectors = clustered(1, tokens) if normalised else stretched(clustered(1, tokens))
    page = train_page(vectors, count, 4, normalised, 1)
    assert 1 <= len(page.centroids) <= max(tokens, count)
    assert all(np.isfinite(getattr(page, name)).all() for name in PAGE_ARRAYS)
    codebook = Codebook([page])
    codes, errors = codebook.encode(vectors)
    assert (codes.nearest < len(page.centroids)).all()
    if count >= tokens:  # every token is a centroid
        np.testing.assert_allclose(codebook.decode(codes), vectors, atol=2e-3 * lengths(vectors).max())
        assert (errors < 1e-5).all()


def test_tokens_that_are_all_equal(capfd: pytest.CaptureFixture[str]) -> None:
    vectors = np.repeat(clustered(1, 1), 200, axis=0)
    codebook = Codebook([train_page(vectors, 32, 4, True, 1)])
    codes, errors = codebook.encode(vectors)
    np.testing.assert_allclose(codebook.decode(codes), vectors, atol=2e-3)
    assert (errors < 1e-5).all()
    assert tuple(capfd.readouterr()) == ("", "")


def test_a_zero_vector_among_others() -> None:
    vectors = stretched(clustered(1, 1000))
    vectors[[0, 500]] = 0
    page = train_page(vectors, 32, 4, False, 1)
    assert all(np.isfinite(getattr(page, name)).all() for name in PAGE_ARRAYS)
    codebook = Codebook([page])
    codes, errors = codebook.encode(vectors)
    assert np.isfinite(errors).all()
    decoded = codebook.decode(codes)
    assert lengths(decoded)[[0, 500]].max() < 0.5 * lengths(decoded).mean()
    assert errors.mean() == pytest.approx(float(page.error), rel=0.3)


def test_only_zero_vectors() -> None:
    vectors = np.zeros((50, 32), np.float32)
    codebook = Codebook([train_page(vectors, 8, 4, False, 1)])
    codes, errors = codebook.encode(vectors)
    np.testing.assert_allclose(codebook.decode(codes), 0, atol=1e-6)
    assert (errors < 1e-9).all()


def test_no_tokens_have_no_codes(train: Train) -> None:
    codebook = Codebook([train(clustered(1, 3000), 64, 4, True)])
    codes, errors = codebook.encode(np.empty((0, 32), np.float32))
    assert len(codes) == len(errors) == 0
    assert codes.residuals.shape == (0, 16) and codebook.decode(codes).shape == (0, 32)


@pytest.mark.parametrize("first_tokens", [1, 2, 5, 40])
def test_tables_of_a_tiny_first_batch_serve_later_ones(first_tokens: int) -> None:
    # A collection may start with one short document. Later documents get their own pages but the tables of the first, whose
    # error must not be much higher than that of fitted tables.
    later = clustered(2, 4000)
    tiny = Codebook([train_page(clustered(1, first_tokens), centroid_count(first_tokens), 4, True, 1)])
    page = train_page(later, 128, 4, True, 1, tiny)
    fitted = train_page(later, 128, 4, True, 1)
    assert page.centroids.tobytes() == fitted.centroids.tobytes()
    assert float(page.error) <= 2 * float(fitted.error)
