"""The one inner loop of the CPU kernels: C += A B on a 4 x 32 tile that stays in vector registers.

Numba's own loop vectoriser reloads and stores the accumulators at every step. Written as LLVM IR, with the
accumulators as values of a loop, the same product runs several times faster on any CPU with vector registers.
Sums run over k in order, one fused multiply-add each, so a result never depends on what else is computed.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

ROWS = 4
COLUMNS = 32
_LANES = 16
_unpack: Any = cgutils.unpack_tuple
_declare: Any = cgutils.get_or_insert_function
_VECTOR = ir.VectorType(ir.FloatType(), _LANES)


@intrinsic
def multiply_add_tile(
    typing: Any,  # noqa: ARG001 - numba's calling convention
    a: Any,
    a_row: Any,
    b: Any,
    b_row: Any,
    b_column: Any,
    c: Any,
    c_column: Any,
    depth: Any,
) -> Any:
    """c[0:4, c_column:+32] += a[a_row:+4, 0:depth] @ b[b_row:+depth, b_column:+32].

    a, b, c: float32, two-dimensional, C-contiguous; indices int64. Nothing is checked.
    """
    signature = types.void(a, a_row, b, b_row, b_column, c, c_column, depth)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        value_a, row_a, value_b, row_b, column_b, value_c, column_c, count = args
        array_a, array_b, array_c = (
            context.make_array(kind)(context, builder, value)
            for kind, value in ((sig.args[0], value_a), (sig.args[2], value_b), (sig.args[5], value_c))
        )
        stride_a, stride_b, stride_c = (
            _unpack(builder, array.shape, 2)[1] for array in (array_a, array_b, array_c)
        )
        first_a = builder.mul(row_a, stride_a)
        first_b = builder.add(builder.mul(row_b, stride_b), column_b)

        def vector_at(pointer: Any, index: Any) -> Any:
            return builder.bitcast(builder.gep(pointer, [index]), _VECTOR.as_pointer())

        places = []
        for row in range(ROWS):
            start = builder.add(builder.mul(stride_c, ir.Constant(stride_c.type, row)), column_c)
            for block in range(COLUMNS // _LANES):
                index = builder.add(start, ir.Constant(start.type, block * _LANES))
                places.append(vector_at(array_c.data, index))
        entry = builder.block
        loop = builder.append_basic_block("tile.loop")
        done = builder.append_basic_block("tile.done")
        initial = [builder.load(place, align=4) for place in places]
        builder.branch(loop)

        builder.position_at_end(loop)
        k = builder.phi(count.type)
        k.add_incoming(ir.Constant(count.type, 0), entry)
        sums = []
        for value in initial:
            total = builder.phi(_VECTOR)
            total.add_incoming(value, entry)
            sums.append(total)
        line = builder.add(first_b, builder.mul(k, stride_b))
        blocks = []
        for block in range(COLUMNS // _LANES):
            index = builder.add(line, ir.Constant(line.type, block * _LANES))
            blocks.append(builder.load(vector_at(array_b.data, index), align=4))
        kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
        fma = _declare(builder.module, kind, f"llvm.fma.v{_LANES}f32")
        updated = []
        for row in range(ROWS):
            offset = builder.add(first_a, builder.mul(stride_a, ir.Constant(stride_a.type, row)))
            scalar = builder.load(builder.gep(array_a.data, [builder.add(offset, k)]))
            lane = builder.insert_element(
                ir.Constant(_VECTOR, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0)
            )
            mask = ir.Constant(ir.VectorType(ir.IntType(32), _LANES), [0] * _LANES)
            spread = builder.shuffle_vector(lane, ir.Constant(_VECTOR, ir.Undefined), mask)
            for block, values in enumerate(blocks):
                number = row * (COLUMNS // _LANES) + block
                updated.append(builder.call(fma, [spread, values, sums[number]]))
        following = builder.add(k, ir.Constant(k.type, 1))
        for total, value in zip(sums, updated, strict=True):
            total.add_incoming(value, builder.block)
        k.add_incoming(following, builder.block)
        builder.cbranch(builder.icmp_signed("<", following, count), loop, done)

        builder.position_at_end(done)
        for place, value in zip(places, updated, strict=True):
            builder.store(value, place, align=4)
        return context.get_dummy_value()

    return signature, generate
