"""One query's running softmax over one page of scores, held in vector registers from load to store (LLVM IR).

Scores are in units of log2. The maximum that weights refer to moves only where a score exceeds it by more than
`SLACK`, so that what was summed before is rarely scaled; weights are then at most 2 ** SLACK, which no float minds.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from nograd.llm.vectors import EXP2, FLOAT, FLOATS, INT, INTS, LANES, ROUGH_EXP2, Vectors

SLACK = 8.0
MASKED = -1e30


@intrinsic
def softmax_row(
    typing: Any,  # noqa: ARG001 - numba's calling convention
    scores: Any,
    row: Any,
    visible: Any,
    largest: Any,
    total: Any,
    query: Any,
    weights: Any,
) -> Any:
    """Turn scores[row, 0:32], of which the first `visible` count, into weights[row]; returns how far the
    reference moved, as a number <= 0: sums of earlier pages are to be multiplied with 2 to its power.

    largest: float32 [queries]; total: float32 [queries, 16], sums of weights by lane. weights: float32 [rows, 32],
    or uint32 words [rows, 16] of weights j and j + 16 in bfloat16. Arrays are C-contiguous, row, visible and query
    int64. Nothing is checked."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        value_scores, value_row, value_visible, value_largest, value_total, value_query, value_weights = args
        scores, largest, total, weights = (
            context.make_array(sig.args[i])(context, builder, value)
            for i, value in ((0, value_scores), (3, value_largest), (4, value_total), (6, value_weights))
        )
        vector = Vectors(builder)
        seen = vector.splat(builder.trunc(value_visible, INT))
        masks, parts = [], []
        for first in (0, LANES):
            masks.append(builder.icmp_signed("<", ir.Constant(INTS, list(range(first, first + LANES))), seen))
            score = builder.load(vector.place(scores, value_row, value_row.type(first), FLOATS), align=4)
            parts.append(builder.select(masks[-1], score, vector.constant(MASKED)))
        highest = vector.highest(vector.larger(*parts))
        largest_place = builder.gep(largest.data, [value_query])
        before = builder.load(largest_place)
        moves = builder.fcmp_ordered(">", highest, builder.fadd(before, ir.Constant(FLOAT, SLACK)))
        reference = builder.select(moves, highest, before)
        move = builder.fsub(before, reference)
        total_place = vector.place(total, value_query, value_query.type(0), FLOATS)
        with builder.if_then(moves, likely=False):
            builder.store(reference, largest_place)
            shrink = vector.exp2(vector.splat(move))
            builder.store(builder.fmul(builder.load(total_place, align=4), shrink), total_place, align=4)
        origin = vector.splat(reference)
        words = sig.args[6].dtype == types.uint32
        polynomial = ROUGH_EXP2 if words else EXP2
        found = [
            builder.select(mask, vector.exp2(builder.fsub(part, origin), polynomial), vector.constant(0.0))
            for mask, part in zip(masks, parts, strict=True)
        ]
        builder.store(builder.fadd(builder.load(total_place, align=4), builder.fadd(*found)), total_place, align=4)
        if words:
            low, high = (builder.zext(vector.rounded(part), INTS) for part in found)
            word = builder.or_(low, builder.shl(high, ir.Constant(INTS, [16] * LANES)))
            builder.store(word, vector.place(weights, value_row, value_row.type(0), INTS), align=4)
        else:
            for part, first in zip(found, (0, LANES), strict=True):
                builder.store(part, vector.place(weights, value_row, value_row.type(first), FLOATS), align=4)
        return move

    return types.float32(scores, row, visible, largest, total, query, weights), generate
