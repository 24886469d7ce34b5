"""SIMD operations on bytes and floats that the compiler does not generate by itself.

They are written in portable LLVM vector code. Byte lookups in a table of sixteen (pshufb, tbl) and sums of products of
neighbours (pmaddwd) use the instruction of the processor if it has one.
"""

from typing import Any

import llvmlite.binding
import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

LANES = 32  # bytes compared at once
WIDTH = 16  # floats multiplied at once
CHAINS = 2  # independent partial sums of each vector
CHUNK = 16  # bytes of codes looked up at once

BYTE, SHORT, INT, LONG, FLOAT = ir.IntType(8), ir.IntType(16), ir.IntType(32), ir.IntType(64), ir.FloatType()
BYTES, FLOATS = ir.VectorType(BYTE, LANES), ir.VectorType(FLOAT, WIDTH)
CODES, SHORTS, INTS = ir.VectorType(BYTE, CHUNK), ir.VectorType(SHORT, CHUNK), ir.VectorType(INT, CHUNK // 2)
FUSED = ("contract",)  # allows fused multiply-add


def _host_has(feature: str) -> bool:
    """Whether kernels are compiled for the host processor, and it has the feature."""
    return not numba.config.CPU_NAME and bool(llvmlite.binding.get_host_cpu_features().get(feature))


def _element(context: Any, builder: Any, array_type: Any, array: Any, index: Any, kind: Any) -> Any:
    """The address of array[index] of a one-dimensional array, as a pointer to a vector."""
    values = context.make_array(array_type)(context, builder, array)
    return builder.bitcast(builder.gep(values.data, [index]), kind.as_pointer())


def _splat(builder: Any, value: Any, kind: Any) -> Any:
    """A vector with the value in all lanes."""
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), value, INT(0))
    return builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(INT, kind.count), [0] * kind.count))


def _loop(builder: Any, end: Any, step: Any, sums: list[Any]) -> tuple[Any, list[Any], Any]:
    """Open a loop from 0 to `end`: returns the counter, the sums, and a function that closes the loop with the updated sums."""
    entry, loop, done = builder.block, builder.append_basic_block("loop"), builder.append_basic_block("done")
    builder.branch(loop)
    builder.position_at_end(loop)
    counter = builder.phi(LONG)
    counter.add_incoming(LONG(0), entry)
    totals = [builder.phi(start.type) for start in sums]
    for total, start in zip(totals, sums, strict=True):
        total.add_incoming(start, entry)

    def close(after: list[Any]) -> None:
        following = builder.add(counter, step)
        counter.add_incoming(following, builder.block)
        for total, value in zip(totals, after, strict=True):
            total.add_incoming(value, builder.block)
        builder.cbranch(builder.icmp_signed("<", following, end), loop, done)
        builder.position_at_end(done)

    return counter, totals, close


@intrinsic  # type: ignore[untyped-decorator]
def raise_to(typing_context: Any, highest: Any, start: Any, rows: Any, offset: Any) -> Any:
    """highest[start + i] = max(highest[start + i], rows[offset + i]) for 32 bytes; both arrays are flat."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = _element(context, builder, signature.args[0], arguments[0], arguments[1], BYTES)
        first = builder.load(address, align=1)
        second = builder.load(_element(context, builder, signature.args[2], arguments[2], arguments[3], BYTES), align=1)
        larger = builder.icmp_unsigned(">", second, first)
        builder.store(builder.select(larger, second, first), address, align=1)
        return context.get_dummy_value()

    return types.void(highest, types.int64, rows, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def copy_to(typing_context: Any, rows: Any, offset: Any, row: Any, start: Any) -> Any:
    """rows[offset + i] = row[start + i] for 32 bytes; both arrays are flat."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value = builder.load(_element(context, builder, signature.args[2], arguments[2], arguments[3], BYTES), align=1)
        builder.store(value, _element(context, builder, signature.args[0], arguments[0], arguments[1], BYTES), align=1)
        return context.get_dummy_value()

    return types.void(rows, types.int64, row, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def at_least(typing_context: Any, rows: Any, offset: Any, limits: Any, start: Any) -> Any:
    """A 32-bit mask: bit i is rows[offset + i] >= limits[start + i]; both arrays are flat bytes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        first = builder.load(_element(context, builder, signature.args[0], arguments[0], arguments[1], BYTES), align=1)
        second = builder.load(_element(context, builder, signature.args[2], arguments[2], arguments[3], BYTES), align=1)
        return builder.zext(builder.bitcast(builder.icmp_unsigned(">=", first, second), INT), LONG)

    return types.uint64(rows, types.int64, limits, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def lowest_bit(typing_context: Any, bits: Any) -> Any:
    """The index of the lowest set bit; `bits` must not be zero."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@intrinsic  # type: ignore[untyped-decorator]
def raise_to_products(typing_context: Any, best: Any, start: Any, vectors: Any, columns: Any, first: Any, lanes: Any) -> Any:
    """best[start + i] = max(best[start + i], Σ_d v[d] · columns[first + d · lanes + i]) for 16 floats and both vectors v.

    All arrays are flat; `vectors` has the two vectors one after the other, and their length is even.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vectors = context.make_array(signature.args[2])(context, builder, arguments[2])
        length = builder.udiv(builder.extract_value(vectors.shape, 0), LONG(2))
        zero = ir.Constant(FLOATS, [0.0] * WIDTH)
        d, sums, close = _loop(builder, length, LONG(CHAINS), [zero] * (2 * CHAINS))
        added = []
        for chain in range(CHAINS):
            dim = builder.add(d, LONG(chain))
            index = builder.add(arguments[4], builder.mul(dim, arguments[5]))
            column = builder.load(_element(context, builder, signature.args[3], arguments[3], index, FLOATS), align=4)
            for vector, total in enumerate(sums[2 * chain : 2 * chain + 2]):
                value = builder.load(builder.gep(vectors.data, [builder.add(dim, length) if vector else dim]))
                product = builder.fmul(_splat(builder, value, FLOATS), column, flags=FUSED)
                added.append(builder.fadd(product, total, flags=FUSED))
        close(added)
        target = _element(context, builder, signature.args[0], arguments[0], arguments[1], FLOATS)
        highest = builder.load(target, align=4)
        for vector in range(2):
            result = added[vector]
            for chain in range(1, CHAINS):
                result = builder.fadd(result, added[2 * chain + vector])
            highest = builder.select(builder.fcmp_ordered(">", result, highest), result, highest)
        builder.store(highest, target, align=4)
        return context.get_dummy_value()

    return types.void(best, types.int64, vectors, columns, types.int64, types.int64), generate


def _look_up(builder: Any, table: Any, index: Any) -> Any:
    """table[index[i]] for sixteen bytes."""
    name = "llvm.x86.ssse3.pshuf.b.128" if _host_has("ssse3") else "llvm.aarch64.neon.tbl1.v16i8" if _host_has("neon") else ""
    if name:
        function = builder.module.declare_intrinsic(name, fnty=ir.FunctionType(CODES, [CODES, CODES]))
        return builder.call(function, [table, index])
    values = ir.Constant(CODES, ir.Undefined)
    for i in range(CHUNK):
        value = builder.extract_element(table, builder.zext(builder.extract_element(index, INT(i)), INT))
        values = builder.insert_element(values, value, INT(i))
    return values


def _add_neighbours(builder: Any, first: Any, second: Any) -> Any:
    """first[2i] · second[2i] + first[2i + 1] · second[2i + 1], in 32 bits."""
    if _host_has("avx2"):
        kind = ir.FunctionType(INTS, [SHORTS, SHORTS])
        return builder.call(builder.module.declare_intrinsic("llvm.x86.avx2.pmadd.wd", fnty=kind), [first, second])
    wide = ir.VectorType(INT, CHUNK)
    products = builder.mul(builder.sext(first, wide), builder.sext(second, wide))
    lanes = [ir.Constant(INTS, [2 * i + odd for i in range(CHUNK // 2)]) for odd in (0, 1)]
    return builder.add(*(builder.shuffle_vector(products, products, indices) for indices in lanes))


def _levels_at(builder: Any, address: Any, shift: Any, mask: Any, table: Any) -> Any:
    """The levels of sixteen codes, which start at bit `shift` of each byte."""
    shifted = builder.lshr(builder.load(address, align=1), _splat(builder, builder.trunc(shift, BYTE), CODES))
    return _look_up(builder, table, builder.and_(shifted, mask))


@intrinsic  # type: ignore[untyped-decorator]
def code_product(typing_context: Any, codes: Any, start: Any, size: Any, bits: Any, table: Any, query: Any, first: Any) -> Any:
    """Σ_d table[code d] · query[first + d] in integers, over the codes in codes[start : start + size], a flat array.

    Byte i holds the codes of the dimensions i, i + size, i + 2 size …, the first in its lowest bits. The size is a multiple of
    16, the table has 16 signed bytes, and the query has 16-bit integers.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, begin, size, bits, _, _, first = arguments
        table = builder.load(_element(context, builder, signature.args[4], arguments[4], LONG(0), CODES), align=1)
        mask = _splat(builder, builder.trunc(builder.sub(builder.shl(LONG(1), bits), LONG(1)), BYTE), CODES)
        zeros = ir.Constant(INTS, [0] * (CHUNK // 2))
        shift, (total,), close_planes = _loop(builder, LONG(8), bits, [zeros])
        plane = builder.mul(builder.udiv(shift, bits), size)
        byte, (inner,), close = _loop(builder, size, LONG(CHUNK), [total])
        address = _element(context, builder, signature.args[0], arguments[0], builder.add(begin, byte), CODES)
        levels = builder.sext(_levels_at(builder, address, shift, mask, table), SHORTS)
        index = builder.add(builder.add(first, plane), byte)
        weights = builder.load(_element(context, builder, signature.args[5], arguments[5], index, SHORTS), align=2)
        added = builder.add(inner, _add_neighbours(builder, levels, weights))
        close([added])
        close_planes([added])
        result = builder.extract_element(added, INT(0))
        for i in range(1, CHUNK // 2):
            result = builder.add(result, builder.extract_element(added, INT(i)))
        return builder.sext(result, LONG)

    return types.int64(codes, types.int64, types.int64, types.int64, table, query, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def decode_codes(
    typing_context: Any,
    codes: Any,
    start: Any,
    size: Any,
    bits: Any,
    table: Any,
    base: Any,
    stretch: Any,
    steps: Any,
    scale: Any,
    vectors: Any,
    to: Any,
) -> Any:
    """vectors[to + d] = stretch · base[d] + scale · steps[d] · table[code d], for codes packed as in `code_product`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, begin, size, bits, _, _, stretch, _, scale, _, to = arguments

        def address_of(argument: int, index: Any) -> Any:
            return _element(context, builder, signature.args[argument], arguments[argument], index, FLOATS)

        table = builder.load(_element(context, builder, signature.args[4], arguments[4], LONG(0), CODES), align=1)
        mask = _splat(builder, builder.trunc(builder.sub(builder.shl(LONG(1), bits), LONG(1)), BYTE), CODES)
        stretches, scales = _splat(builder, stretch, FLOATS), _splat(builder, scale, FLOATS)
        shift, _, close_planes = _loop(builder, LONG(8), bits, [])
        plane = builder.mul(builder.udiv(shift, bits), size)
        byte, _, close = _loop(builder, size, LONG(CHUNK), [])
        address = _element(context, builder, signature.args[0], arguments[0], builder.add(begin, byte), CODES)
        levels = builder.sext(_levels_at(builder, address, shift, mask, table), ir.VectorType(INT, CHUNK))
        d = builder.add(plane, byte)
        step = builder.fmul(scales, builder.load(address_of(7, d), align=4))
        stretched = builder.fmul(stretches, builder.load(address_of(5, d), align=4))
        rest = builder.fmul(step, builder.sitofp(levels, FLOATS), flags=FUSED)
        builder.store(builder.fadd(rest, stretched, flags=FUSED), address_of(9, builder.add(to, d)), align=4)
        close([])
        close_planes([])
        return context.get_dummy_value()

    floats = (base, types.float32, steps, types.float32, vectors, types.int64)
    return types.void(codes, types.int64, types.int64, types.int64, table, *floats), generate
