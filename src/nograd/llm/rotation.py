"""Rotary positions of sixteen pairs at once, from stored bfloat16 to words (LLVM IR)."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from nograd.llm.vectors import FLOATS, INTS, LANES, SHORTS, Vectors


@intrinsic
def rotate_16(
    typing: Any,  # noqa: ARG001 - numba's calling convention
    x: Any,
    row: Any,
    first: Any,
    second: Any,
    cos: Any,
    sin: Any,
    position: Any,
    pair: Any,
    factor: Any,
    out: Any,
    out_row: Any,
) -> Any:
    """out[out_row, pair:+16] = words of factor times x[row, first:+16] and x[row, second:+16], rotated by the angles
    of `position` and pairs pair .. pair + 16.

    x: bfloat16 bits; cos, sin: float32 [positions, pairs]; out: uint32 words. All two-dimensional and C-contiguous,
    indices int64, factor float32. Nothing is checked."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        x, cos, sin, out = (context.make_array(sig.args[i])(context, builder, args[i]) for i in (0, 4, 5, 9))
        vectors = Vectors(builder)
        left, right = (
            vectors.widened(builder.load(vectors.place(x, args[1], at, SHORTS), align=2)) for at in args[2:4]
        )
        c, s = (builder.load(vectors.place(table, args[6], args[7], FLOATS), align=4) for table in (cos, sin))
        scale = vectors.splat(args[8])
        turned = (
            builder.fsub(builder.fmul(left, c), builder.fmul(right, s)),
            builder.fadd(builder.fmul(right, c), builder.fmul(left, s)),
        )
        low, high = (builder.zext(vectors.rounded(builder.fmul(part, scale)), INTS) for part in turned)
        word = builder.or_(low, builder.shl(high, ir.Constant(INTS, [16] * LANES)))
        builder.store(word, vectors.place(out, args[10], args[7], INTS), align=4)
        return context.get_dummy_value()

    return types.void(x, row, first, second, cos, sin, position, pair, factor, out, out_row), generate
