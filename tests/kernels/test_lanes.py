"""SIMD operations on bytes and floats equal those of numpy."""

from typing import Any

import numba
import numpy as np
import pytest

from trilens.kernels import lanes as module
from trilens.kernels.array_types import Float32s, Int8s, Int16s, Int64s, UInt8s
from trilens.kernels.compile import kernel
from trilens.kernels.lanes import (
    CHUNK,
    LANES,
    WIDTH,
    at_least,
    code_product,
    copy_to,
    decode_codes,
    lowest_bit,
    raise_to,
    raise_to_products,
)


@kernel
def raise_blocks(highest: UInt8s, rows: UInt8s, at: int) -> None:
    for block in range(0, len(highest), LANES):
        raise_to(highest, block, rows, at + block)


@kernel
def copy_blocks(rows: UInt8s, at: int, row: UInt8s) -> None:
    for block in range(0, len(row), LANES):
        copy_to(rows, at + block, row, block)


@kernel
def compare(rows: UInt8s, at: int, limits: UInt8s, start: int) -> int:
    return at_least(rows, at, limits, start)  # type: ignore[no-any-return]


@kernel
def first_bit(bits: np.uint64) -> int:
    return lowest_bit(bits)  # type: ignore[no-any-return]


@kernel
def raise_block(best: Float32s, start: int, vectors: Float32s, columns: Float32s, first: int, lanes: int) -> None:
    raise_to_products(best, start, vectors.reshape(-1), columns, first, lanes)


def sum_products(codes: UInt8s, start: int, size: int, bits: int, table: Int8s, query: Int16s, first: int) -> int:
    return code_product(codes, start, size, bits, table, query, first)  # type: ignore[no-any-return]


def decode(codes: UInt8s, start: int, size: int, bits: int, table: Int8s, base: Float32s, vectors: Float32s) -> None:
    """Twice the base plus half the levels, with steps that grow by one per dimension, written from index 3 on."""
    steps = np.arange(1, 1 + size * 8 // bits).astype(np.float32)
    decode_codes(codes, start, size, bits, table, base, np.float32(2), steps, np.float32(0.5), vectors, 3)


@pytest.fixture(params=["this processor", "any processor"])
def compiled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Compile for this processor, and for one without special instructions; nothing is cached on disk."""
    if request.param == "any processor":
        monkeypatch.setattr(module, "_host_has", lambda feature: False)
    return numba.njit


def edges(random: np.random.Generator, size: int) -> UInt8s:
    """UInt8s of which many are 0, 127, 128 or 255, where a signed comparison would be wrong."""
    return random.choice([0, 1, 127, 128, 254, 255, *random.integers(0, 256, 6)], size).astype(np.uint8)


@pytest.mark.parametrize("blocks", [1, 2, 3])
@pytest.mark.parametrize("at", [0, 1, 37])
def test_the_higher_byte_stays(blocks: int, at: int) -> None:
    random = np.random.default_rng(blocks + at)
    for _ in range(20):
        highest, rows = edges(random, blocks * LANES), edges(random, 200)
        expected = np.maximum(highest, rows[at : at + len(highest)])
        before = rows.copy()
        raise_blocks(highest, rows, at)
        assert highest.tolist() == expected.tolist()
        assert rows.tolist() == before.tolist()


def test_only_the_bytes_of_the_block_are_raised() -> None:
    highest = np.zeros(3 * LANES, np.uint8)
    raise_blocks(highest[LANES : 2 * LANES], np.full(LANES, 255, np.uint8), 0)
    assert highest.tolist() == [0] * LANES + [255] * LANES + [0] * LANES


@pytest.mark.parametrize("blocks", [1, 3])
def test_a_row_is_copied_to_its_place(blocks: int) -> None:
    random = np.random.default_rng(blocks)
    rows, row = edges(random, 300), edges(random, blocks * LANES)
    expected = rows.copy()
    expected[41 : 41 + len(row)] = row
    copy_blocks(rows, 41, row)
    assert rows.tolist() == expected.tolist()


@pytest.mark.parametrize("at, start", [(0, 0), (5, 0), (0, 32), (33, 7)])
def test_each_bit_is_the_comparison_of_its_byte(at: int, start: int) -> None:
    random = np.random.default_rng(at + start)
    for _ in range(20):
        rows, limits = edges(random, 100), edges(random, 100)
        bits = compare(rows, at, limits, start)
        expected = rows[at : at + LANES] >= limits[start : start + LANES]
        assert [bool(bits >> i & 1) for i in range(LANES)] == expected.tolist()
        assert bits < 1 << LANES


def test_every_byte_reaches_zero_and_itself_and_only_255_reaches_255() -> None:
    all_bytes, zeros, full = np.arange(256, dtype=np.uint8), np.zeros(LANES, np.uint8), np.full(LANES, 255, np.uint8)
    for start in range(0, 256, LANES):
        assert compare(all_bytes, start, zeros, 0) == 2**32 - 1
        assert compare(all_bytes, start, all_bytes, start) == 2**32 - 1
    assert [compare(all_bytes, start, full, 0) for start in (0, 96, 128)] == [0, 0, 0]
    assert compare(all_bytes, 224, full, 0) == 1 << 31


def test_the_lowest_bit_by_hand_and_at_every_index() -> None:
    assert [first_bit(np.uint64(bits)) for bits in (1, 2, 3, 0b10100, 0b11000000)] == [0, 1, 0, 2, 6]
    for index in range(64):
        assert first_bit(np.uint64(1 << index)) == index
        assert first_bit(np.uint64(2**64 - (1 << index))) == index  # all higher bits are set too


def test_products_by_hand() -> None:
    vector = np.array([1, -2, 0.5, 4], np.float32)
    columns = np.zeros((4, WIDTH), np.float32)
    columns[:, 0] = [1, 1, 2, 0.25]  # 1 - 2 + 1 + 1 = 1
    columns[:, 1] = [-1, 1, 0, 0]  # -1 - 2 = -3
    columns[:, 15] = [0, 0, 0, -1]  # -4
    best = np.full(WIDTH, -np.inf, np.float32)
    best[2] = 7  # higher than 0
    raise_block(best, 0, np.array([vector, vector]), columns.ravel(), 0, WIDTH)
    assert best.tolist() == [1, -3, 7, *[0] * 12, -4]
    for pair in ([vector, -vector], [-vector, vector]):  # both vectors of the pair are used
        again = np.full(WIDTH, -np.inf, np.float32)
        raise_block(again, 0, np.array(pair), columns.ravel(), 0, WIDTH)
        assert again.tolist() == [1, 3, *[0] * 13, 4]
    raise_block(best, 0, np.array([-vector, -vector]), columns.ravel(), 0, WIDTH)
    assert best.tolist() == [1, 3, 7, *[0] * 12, 4]


@pytest.mark.parametrize("dims", [4, 8, 12, 128])
@pytest.mark.parametrize("blocks", [1, 2, 4])
def test_products_of_several_blocks_are_those_of_numpy(dims: int, blocks: int) -> None:
    random = np.random.default_rng(dims + blocks)
    lanes = blocks * WIDTH
    columns = random.normal(size=(dims, lanes)).astype(np.float32)
    vectors = random.normal(size=(6, dims)).astype(np.float32)
    for shift in (0.0, -1000.0):  # -1000 makes all products negative
        columns[0] = shift
        vectors[:, 0] = 1
        best = np.full(lanes, -np.inf, np.float32)
        for pair in vectors.reshape(3, 2, dims):
            for block in range(0, lanes, WIDTH):
                raise_block(best, block, pair, columns.ravel(), block, lanes)
        expected = (vectors.astype(np.float64) @ columns.astype(np.float64)).max(axis=0)
        np.testing.assert_allclose(best, expected, rtol=1e-6, atol=1e-4)
        assert shift == 0 or (best < 0).all()


def test_a_block_of_products_leaves_the_others_alone() -> None:
    lanes = 3 * WIDTH
    best = np.full(lanes, -9, np.float32)
    raise_block(best, WIDTH, np.ones((2, 4), np.float32), np.ones(4 * lanes, np.float32), WIDTH, lanes)
    assert best.tolist() == [-9] * WIDTH + [4] * WIDTH + [-9] * WIDTH


def test_nan_does_not_replace_a_score() -> None:
    vector = np.array([1, np.nan, 0, 0] * 2, np.float32)
    best = np.arange(WIDTH, dtype=np.float32)
    raise_block(best, 0, vector, np.ones(4 * WIDTH, np.float32), 0, WIDTH)
    assert best.tolist() == list(range(WIDTH))


def codes_of(packed: UInt8s, bits: int) -> Int64s:
    """Slow reference: byte i holds the codes i, i + bytes, i + 2 · bytes …, the first in its lowest bits."""
    return np.concatenate([packed.astype(np.int64) // 2**shift % 2**bits for shift in range(0, 8, bits)])


def test_decoded_codes_by_hand(compiled: Any) -> None:
    table = np.arange(16, dtype=np.int8) - 8
    packed = np.zeros(CHUNK, np.uint8)
    packed[[0, 1, 15]] = 0x71, 0xF0, 0x2A
    vectors, base = np.full(35, 99, np.float32), np.zeros(32, np.float32)
    base[1] = 10
    compiled(decode)(packed, 0, CHUNK, 4, table, base, vectors)
    # dimension 0 is in the low bits of byte 0, dimension 16 in its high bits
    levels = {0: 1 - 8, 1: 0 - 8, 2: -8, 15: 10 - 8, 16: 7 - 8, 17: 15 - 8, 18: -8, 31: 2 - 8}
    assert {d: vectors[3 + d] for d in levels} == {d: 2 * base[d] + (d + 1) / 2 * level for d, level in levels.items()}
    query = np.zeros(32, np.int16)
    query[[0, 16, 31]] = 3, 100, -1000
    assert compiled(sum_products)(packed, 0, CHUNK, 4, table, query, 0) == 3 * -7 + 100 * -1 + -1000 * -6


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_levels_and_products_of_codes_are_those_of_numpy(compiled: Any, bits: int) -> None:
    fill, product = compiled(decode), compiled(sum_products)
    random = np.random.default_rng(bits)
    for size in (CHUNK, 2 * CHUNK, 5 * CHUNK):
        dims = size * 8 // bits
        most = min(32767, 2**31 // (128 * dims))
        table = random.choice([-127, -128, 127, 0, *random.integers(-128, 128, 8)], 16).astype(np.int8)
        packed = random.integers(0, 256, 1000).astype(np.uint8)
        query = random.choice([-most, most, 0, *random.integers(-most, most, 8)], 3 * dims).astype(np.int16)
        for start, first in ((0, 0), (size, dims), (37, 2 * dims), (1000 - size, 5)):
            expected = table[codes_of(packed[start : start + size], bits)].astype(np.int64)
            vectors = np.full(dims + 8, 99, np.float32)
            base = random.integers(-99, 99, dims).astype(np.float32)
            fill(packed, start, size, bits, table, base, vectors)
            decoded = 2 * base + np.arange(1, dims + 1) / 2 * expected
            assert vectors.tolist() == [99] * 3 + decoded.tolist() + [99] * 5
            assert product(packed, start, size, bits, table, query, first) == expected @ query[first : first + dims].astype(
                np.int64
            )


@pytest.mark.parametrize("bits", [1, 2, 4])
@pytest.mark.parametrize("sign", [-1, 1])
def test_the_largest_sum_does_not_overflow(compiled: Any, bits: int, sign: int) -> None:
    size = 8 * CHUNK
    dims = size * 8 // bits
    most = min(32767, 2**31 // (128 * dims))
    table, query = np.full(16, 127, np.int8), np.full(dims, sign * most, np.int16)
    packed = np.full(size, 255, np.uint8)
    assert compiled(sum_products)(packed, 0, size, bits, table, query, 0) == sign * 127 * most * dims
