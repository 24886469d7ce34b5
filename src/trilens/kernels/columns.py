"""Columns: the 4-bit weights of one term in all rows, added to the sums of 64 rows at a time.

A weight is one of 16 levels, 0 if the row does not contain the term. Byte i of a block of 32 bytes has the level of row i in
its low bits and of row 32 + i in its high bits. The contribution of each level is looked up in a table of bytes (as in "Cache
locality is not enough", André et al. 2015). Up to eight columns are summed in bytes before they are added to the 16-bit sums.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from trilens.kernels.lanes import BYTE, CHUNK, CODES, INT, LONG, SHORT, SHORTS, _element, _host_has, _look_up, _loop, _splat

BLOCK = 64  # rows
BLOCK_BYTES = BLOCK // 2
LEVELS = 16
MOST_TOGETHER = 8  # columns

BLOCKS = ir.VectorType(BYTE, BLOCK_BYTES)


def adder(together: int) -> Callable[..., None]:
    """Make an intrinsic that adds `together` columns at once:

    add(sums, first, columns, starts, tables, shift, blocks)

    It computes sums[first + i] += (Σ_c tables[LEVELS c + level of row i in column c]) << shift for the rows of `blocks` blocks.
    Column c starts at columns[starts[c]]. `columns` and `tables` are flat bytes, `sums` are uint16. The sum over the columns
    must fit into a byte.
    """

    def add(typing_context: Any, sums: Any, first: Any, columns: Any, starts: Any, tables: Any, shift: Any, blocks: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            sums, first, columns, starts, tables, shift, blocks = arguments
            start_data = context.make_array(signature.args[3])(context, builder, starts).data
            begins = [builder.load(builder.gep(start_data, [LONG(c)])) for c in range(together)]
            levels = [
                builder.load(_element(context, builder, signature.args[4], tables, LONG(LEVELS * c), CODES), align=1)
                for c in range(together)
            ]
            low, up = _splat(builder, BYTE(15), BLOCKS), _splat(builder, BYTE(4), BLOCKS)
            unit = _splat(builder, builder.trunc(shift, SHORT), SHORTS)
            block, _, close = _loop(builder, blocks, LONG(1), [])
            offset = builder.mul(block, LONG(BLOCK_BYTES))
            lower, upper = [ir.Constant(BLOCKS, [0] * BLOCK_BYTES)] * 2
            for begin, table in zip(begins, levels, strict=True):
                address = _element(context, builder, signature.args[2], columns, builder.add(begin, offset), BLOCKS)
                codes = builder.load(address, align=1)
                lower = builder.add(lower, _look_up_all(builder, table, builder.and_(codes, low)))
                upper = builder.add(upper, _look_up_all(builder, table, builder.lshr(codes, up)))
            row = builder.add(first, builder.mul(block, LONG(BLOCK)))
            for piece in range(BLOCK // CHUNK):
                total = _half(builder, (lower, upper)[piece * CHUNK // BLOCK_BYTES], piece * CHUNK % BLOCK_BYTES)
                index = builder.add(row, LONG(piece * CHUNK))
                target = _element(context, builder, signature.args[0], sums, index, SHORTS)
                increase = builder.shl(builder.zext(total, SHORTS), unit)
                builder.store(builder.add(builder.load(target, align=2), increase), target, align=2)
            close([])
            return context.get_dummy_value()

        return types.void(sums, types.int64, columns, starts, tables, types.int64, types.int64), generate

    add.__name__ = add.__qualname__ = f"add_{together}_columns"
    return intrinsic(add)  # type: ignore[no-any-return]


add_8_columns, add_4_columns, add_2_columns, add_1_columns = adder(8), adder(4), adder(2), adder(1)


def _half(builder: Any, values: Any, start: int) -> Any:
    """Sixteen consecutive bytes of 32."""
    return builder.shuffle_vector(values, values, ir.Constant(ir.VectorType(INT, CHUNK), list(range(start, start + CHUNK))))


def _look_up_all(builder: Any, table: Any, index: Any) -> Any:
    """table[index[i]] for 32 bytes, in one instruction if the processor has one."""
    both = ir.Constant(ir.VectorType(INT, BLOCK_BYTES), list(range(BLOCK_BYTES)))
    if _host_has("avx2"):
        twice = builder.shuffle_vector(table, table, both)
        kind = ir.FunctionType(BLOCKS, [BLOCKS, BLOCKS])
        return builder.call(builder.module.declare_intrinsic("llvm.x86.avx2.pshuf.b", fnty=kind), [twice, index])
    halves = [_look_up(builder, table, _half(builder, index, start)) for start in (0, CHUNK)]
    return builder.shuffle_vector(*halves, both)
