"""Quantised token vectors: the codes by hand and against numpy, and the decoded vectors."""

import numpy as np
import pytest

from trilens.kernels.array_types import Float32s, Float64s, Int64s, Integers, UInt8s, UInt16s
from trilens.kernels.residual import (
    SIZE_STRIDE,
    SIZES_ABOVE,
    SIZES_BELOW,
    CodeTables,
    TokenCodes,
    decode_tokens,
    encode_residuals,
    nearest_entry,
)

EIGHTHS = (np.arange(1, 257) / 8).astype(np.float32)
ONES = np.ones(256, np.float32)
STEP = {1: 1, 2: 1 / 2, 4: 1 / 8}  # of a residual of size 1; with the levels that makes ±1; ±½ ±1½; (code - 7½) / 4
LEVELS = {1: [-1, 1], 2: [-3, -1, 1, 3], 4: list(range(-15, 16, 2))}
DIMS = {1: 128, 2: 64, 4: 32}  # that fill 16 bytes


class Coder:
    """An encoder with random centroids and tables."""

    def __init__(self, bits: int, dims: int, stretches: Float32s, seed: int, centroids: int = 7) -> None:
        random = np.random.default_rng(seed)
        self.bits, self.dims, self.stretches = bits, dims, stretches
        self.centroids = random.normal(size=(centroids, dims)).astype(np.float32)
        self.spread = random.uniform(0.05, 0.3, dims).astype(np.float32)
        self.sizes = np.geomspace(0.1, 3, 256).astype(np.float32)
        self.levels = np.zeros(16, np.int8)
        self.levels[: 2**bits] = np.sort(random.choice(np.arange(-127, 128), 2**bits, replace=False))
        self.steps = (self.spread * np.float32(1.5 / 127)).astype(np.float32)
        between = (self.levels[1 : 2**bits].astype(np.float64) + self.levels[: 2**bits - 1]) / 2
        self.cutoffs = (between * 1.5 / 127).astype(np.float32)

    @property
    def tables(self) -> CodeTables:
        return CodeTables(self.centroids, self.steps, self.sizes, self.stretches, self.levels)

    def encode(self, vectors: Float32s, nearest: UInt16s) -> tuple[UInt8s, UInt8s, UInt8s, Float32s]:
        codes = np.zeros((len(vectors), self.dims * self.bits // 8), np.uint8)
        sizes, stretches = np.empty(len(vectors), np.uint8), np.empty(len(vectors), np.uint8)
        errors = np.empty(len(vectors), np.float32)
        encoded = TokenCodes(nearest, codes, sizes, stretches)
        encode_residuals(vectors, self.tables, self.spread, self.cutoffs, encoded, errors)
        return codes, sizes, stretches, errors

    def decode(self, nearest: UInt16s, codes: UInt8s, sizes: UInt8s, stretches: UInt8s) -> Float32s:
        vectors = np.empty((len(nearest), self.dims), np.float32)
        decode_tokens(nearest, codes, sizes, stretches, *self.tables, vectors)
        return vectors

    def buckets(self, rest: Float32s, sizes: UInt8s | int) -> Int64s:
        """The number of cutoffs, scaled by the size of the token, below each value."""
        limits = self.cutoffs * np.atleast_1d(self.sizes[sizes])[:, None]
        codes: Int64s = (rest[:, :, None] > limits[:, None, :]).sum(axis=2)
        return codes

    def sums(self, nearest: UInt16s, codes: Int64s, sizes: Integers | int) -> Float32s:
        """Centroid + size · steps · level."""
        rest = np.atleast_1d(self.sizes[sizes])[:, None] * self.steps * self.levels[codes].astype(np.float32)
        return self.centroids[nearest] + rest


def pack(codes: Int64s, bits: int) -> UInt8s:
    """Slow reference: pack codes (tokens, dims) into bytes; byte i holds the dimensions i, i + bytes, i + 2 · bytes …"""
    tokens, dims = codes.shape
    width = dims * bits // 8
    packed = np.zeros((tokens, width), np.uint8)
    for d in range(dims):
        packed[:, d % width] += (codes[:, d] * 2 ** (bits * (d // width))).astype(np.uint8)
    return packed


def unpack(packed: UInt8s, bits: int) -> Int64s:
    codes: Int64s = np.concatenate([packed // 2**shift % 2**bits for shift in range(0, 8, bits)], axis=1)
    return codes.astype(np.int64)


def closest(table: Float32s, values: Float64s) -> Int64s:
    """The index of the nearest entry; the larger of two equally near ones."""
    distances = np.abs(table.astype(np.float64)[None, :] - values[:, None])
    indices: Int64s = len(table) - 1 - distances[:, ::-1].argmin(axis=1)
    return indices


def encode_one(
    vector: list[float], centroid: float, bits: int, spread: float = 1, stretches: Float32s = ONES
) -> tuple[list[int], int, int, float]:
    """The codes, the size, the stretch and the error of one vector, with sizes of 1/8, 2/8, …"""
    levels = np.array(LEVELS[bits] + [0] * (16 - 2**bits), np.int8)
    between = [(low + high) / 2 * STEP[bits] for low, high in zip(LEVELS[bits], LEVELS[bits][1:], strict=False)]
    dims = len(vector)
    codes = np.zeros((1, dims * bits // 8), np.uint8)
    size, stretch, error = np.zeros(1, np.uint8), np.zeros(1, np.uint8), np.zeros(1, np.float32)
    centroids, steps = np.full((1, dims), centroid, np.float32), np.full(dims, spread * STEP[bits], np.float32)
    encode_residuals(
        np.array([vector], np.float32),
        CodeTables(centroids, steps, EIGHTHS, stretches, levels),
        np.full(dims, spread, np.float32),
        np.array(between, np.float32),
        TokenCodes(np.zeros(1, np.uint16), codes, size, stretch),
        error,
    )
    return codes[0].tolist(), int(size[0]), int(stretch[0]), float(error[0])


def test_one_bit_by_hand() -> None:
    # 16 bytes of 8 dimensions: byte i has the dimensions i, i + 16, …, i + 112. Residuals of ±2 have the size 2 = EIGHTHS[15].
    signs = [1, -1, -1, 1, 1, 1, -1, 1]  # from the lowest bit: 1 + 8 + 16 + 32 + 128
    vector = [1.0 + 2 * sign * (-1 if i == 3 else 1) for sign in signs for i in range(16)]
    codes, size, _, error = encode_one(vector, 1, 1)
    assert codes == [185, 185, 185, 255 - 185] + [185] * 12
    assert (size, error) == (15, 0)


def test_two_bits_by_hand() -> None:
    # (1.5² + 0.5²) / 2 = 1.25, whose root 1.118 is nearest to 9/8 = EIGHTHS[8]. Every second size around it is tried: 7/8 and
    # 9/8 are equally far from 1, which would leave no error, and the first of them is taken. Cutoffs: -7/8, 0 and 7/8.
    rest = [-1.5, -0.5, 0.5, 1.5]
    vector = [2 * rest[(i + plane) % 4] for plane in range(4) for i in range(16)]
    codes, size, _, error = encode_one(vector, 0, 2, spread=2)
    assert codes == [0 + 1 * 4 + 2 * 16 + 3 * 64, 1 + 2 * 4 + 3 * 16, 2 + 3 * 4 + 1 * 64, 3 + 1 * 16 + 2 * 64] * 4
    assert size == 6
    assert error == pytest.approx(sum((x / 8) ** 2 for x in vector))  # decoded as 7/8 of it


def test_four_bits_by_hand() -> None:
    # The mean square is (4 · 56.25 + 2 · 20.25 + 2 · 0.25) / 16 / 8 = 266 / 128, and its root 1.442 is nearest to 12/8. Of the
    # sizes tried around it, 1 leaves no error: decoded as (code - 7.5) / 4.
    rest = [-1.875, 1.875, -1.125, 1.125, -0.125, 0.125, 1.875, -1.875]
    codes, size, _, error = encode_one(rest * 2 + rest[::-1] * 2, 0, 4)
    assert (size, EIGHTHS[size], error) == (7, 1, 0)
    low = [0, 15, 3, 12, 7, 8, 15, 0]
    assert codes == [a + 16 * b for a, b in zip(low, low[::-1], strict=True)] * 2


def test_the_stretch_brings_the_sum_to_length_one_by_hand() -> None:
    # Centroid ⅛, residual 1/16, which is on a cutoff: coded as ½ · 1/16, so 5/32 in each of 64 dimensions: a length of 5/4.
    stretches = np.linspace(0.5, 1, 256).astype(np.float32)
    codes, size, stretch, error = encode_one([3 / 16] * 64, 1 / 8, 2, spread=1 / 2, stretches=stretches)
    assert (codes, size) == ([2 + 8 + 32 + 128] * 16, 0)
    assert stretch == 153  # 1 / 1.25 = 0.8 = 0.5 + 153 / 510
    assert error == pytest.approx(64 * (3 / 16 - 1 / 8) ** 2, rel=1e-5)
    assert encode_one([3 / 16] * 64, 1 / 8, 2, spread=1 / 2)[3] == pytest.approx(64 * (1 / 32) ** 2)  # all stretches are 1


def test_the_nearest_entry_by_hand() -> None:
    table = np.array([1, 2, 4, 8], np.float32)
    values = [-5, 1, 1.4, 1.6, 2, 2.9, 3.1, 7.9, 8, 99]
    assert [nearest_entry(table, value) for value in values] == [0, 0, 0, 1, 1, 1, 2, 3, 3, 3]
    assert nearest_entry(table, 3) == 2  # halfway: the larger


@pytest.mark.parametrize("bits", [1, 2, 4])
@pytest.mark.parametrize("stretched", [True, False])
def test_codes_are_those_of_numpy(bits: int, stretched: bool) -> None:
    stretches = np.geomspace(0.05, 2, 256).astype(np.float32) if stretched else ONES
    coder = Coder(bits, 2 * DIMS[bits], stretches, seed=bits)
    random = np.random.default_rng(10 + bits)
    nearest = random.integers(0, 7, 300).astype(np.uint16)
    reach = random.uniform(0.05, 4, (300, 1))  # some are outside the table of sizes on either side
    vectors = (coder.centroids[nearest] + reach * coder.spread * random.normal(size=(300, coder.dims))).astype(np.float32)
    codes, sizes, stretch_codes, errors = coder.encode(vectors, nearest)

    rest = (vectors - coder.centroids[nearest]) / coder.spread
    middle = closest(coder.sizes, np.sqrt(np.square(rest).astype(np.float64).mean(axis=1)))
    lost = {size: np.square(coder.sums(nearest, coder.buckets(rest, size), size) - vectors).sum(axis=1) for size in range(256)}
    for token, first in enumerate(np.maximum(middle - SIZES_BELOW, 0)):
        tried = range(first, min(256, middle[token] + SIZES_ABOVE + 1), SIZE_STRIDE)
        assert sizes[token] in tried
        assert lost[sizes[token]][token] <= min(lost[size][token] for size in tried) * (1 + 1e-5)
    assert (sizes == 0).any() and (sizes == 255).any()
    buckets = coder.buckets(rest, sizes)
    assert codes.tolist() == pack(buckets, bits).tolist()
    unstretched = coder.sums(nearest, buckets, sizes)
    if stretched:
        lengths = np.sqrt(np.square(unstretched.astype(np.float64)).sum(axis=1))
        assert stretch_codes.tolist() == closest(stretches, 1 / lengths).tolist()
    decoded = stretches[stretch_codes][:, None] * unstretched
    np.testing.assert_allclose(errors, np.square(decoded - vectors).sum(axis=1), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("bits", [1, 2, 4])
@pytest.mark.parametrize("times", [1, 2, 3])
def test_decoded_vectors_are_the_formula(bits: int, times: int) -> None:
    coder = Coder(bits, times * DIMS[bits], np.geomspace(0.5, 2, 256).astype(np.float32), seed=bits)
    random = np.random.default_rng(20 + bits)
    nearest = random.integers(0, 7, 400).astype(np.uint16)
    codes = random.integers(0, 256, (400, 16 * times)).astype(np.uint8)  # any byte, even if no encoder writes it
    sizes, stretches = (random.integers(0, 256, 400).astype(np.uint8) for _ in range(2))
    decoded = coder.decode(nearest, codes, sizes, stretches)
    expected = coder.stretches[stretches][:, None] * coder.sums(nearest, unpack(codes, bits), sizes.astype(np.int64))
    np.testing.assert_allclose(decoded, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_a_vector_on_the_levels_is_decoded_exactly(bits: int) -> None:
    coder = Coder(bits, DIMS[bits], ONES, seed=3)
    coder.levels[: 2**bits] = np.array(LEVELS[bits]) * 8
    codes = np.tile([0, 2**bits - 1], (3, DIMS[bits] // 2))
    coder.steps = (coder.spread / (8 * LEVELS[bits][-1])).astype(np.float32)  # the outer levels are at ±spread
    coder.cutoffs = np.array([(2 * c - 2**bits) / (2**bits - 1) for c in range(1, 2**bits)], np.float32)
    nearest = np.array([0, 1, 2], np.uint16)
    wanted = coder.sums(nearest, codes, np.array([10, 100, 200]))
    packed, sizes, stretches, errors = coder.encode(wanted, nearest)
    assert sizes.tolist() == [10, 100, 200]
    assert packed.tolist() == pack(codes, bits).tolist()
    np.testing.assert_allclose(coder.decode(nearest, packed, sizes, stretches), wanted, atol=1e-6)
    assert (errors < 1e-9).all()


@pytest.mark.parametrize("centroid", [0.0, 1.0])
def test_a_zero_vector_and_a_zero_sum_are_coded(centroid: float) -> None:
    codes, size, stretch, error = encode_one([0.0] * 32, centroid, 4, stretches=np.geomspace(0.5, 2, 256).astype(np.float32))
    assert np.isfinite(error)
    assert 0 <= size < 256 and 0 <= stretch < 256 and len(codes) == 16
