"""The one inner loop of the CPU kernels: C += A B on a tile of 32 columns that stays in vector registers.

Numba's own loop vectoriser reloads and stores the accumulators at every step. Written as LLVM IR, with the
accumulators as values of a loop, the same product runs several times faster on any CPU with vector registers.
Sums run over k in order, one fused multiply-add each, so a result never depends on what else is computed.

Where the CPU multiplies bfloat16 itself (AVX-512 BF16), A and B may hold *words* instead of floats: two bfloat16
in 32 bits, multiplied pairwise and added in float32, which halves both the memory and the instructions.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from nograd.llm.vectors import BFLOAT, FLOATS, INTS, LANES, SHORTS, Vectors

COLUMNS = 32
_PAIRS = ir.VectorType(BFLOAT, 2 * LANES)
PLAIN, ADDED, MULTIPLIED, GATED = range(4)
"""What is done with a product before it is stored as bfloat16. GATED: the first 16 columns of a tile are gates of the
other 16; silu(gate) · other is stored, 16 columns wide."""
_unpack: Any = cgutils.unpack_tuple
_declare: Any = cgutils.get_or_insert_function


def multiplies_words() -> bool:
    """Whether this CPU has the instruction that words need."""
    return bool(binding.get_host_cpu_features().get("avx512bf16", False))


def _tile(rows: int, *, add: bool) -> Any:
    """The product on a tile of so many rows, as a numba intrinsic: added to C, or put in its place."""

    @intrinsic
    def multiply_tile(
        typing: Any,  # noqa: ARG001 - numba's calling convention
        a: Any,
        a_row: Any,
        b: Any,
        b_row: Any,
        b_column: Any,
        c: Any,
        c_row: Any,
        c_column: Any,
        depth: Any,
    ) -> Any:
        """c[c_row:+rows, c_column:+32] += (or =) a[a_row:+rows, 0:depth] @ b[b_row:+depth, b_column:+32].

        a, b, c: float32, or a and b uint32 words (see above; depth counts words), two-dimensional, C-contiguous;
        indices int64. Nothing is checked.
        """

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            a, b, c = _arrays(context, builder, sig, args, (0, 2, 5))
            vectors = Vectors(builder)
            places = [
                vectors.place(c, builder.add(args[6], _integer(row)), args[7], FLOATS, block * LANES)
                for row in range(rows)
                for block in range(COLUMNS // LANES)
            ]
            before = [builder.load(place, align=4) if add else vectors.constant(0.0) for place in places]
            words = sig.args[0].dtype == types.uint32
            for place, total in zip(
                places, _products(builder, words, a, args[1], b, args[3], args[4], args[8], before), strict=True
            ):
                builder.store(total, place, align=4)
            return context.get_dummy_value()

        return types.void(a, a_row, b, b_row, b_column, c, c_row, c_column, depth), generate

    return multiply_tile


def _finished_tile(kind: int) -> Any:
    """The product of words on a tile of 8 rows, finished and rounded while it is in registers."""

    @intrinsic
    def finished_tile(
        typing: Any,  # noqa: ARG001 - numba's calling convention
        a: Any,
        a_row: Any,
        b: Any,
        b_row: Any,
        bias: Any,
        bias_at: Any,
        other: Any,
        other_row: Any,
        other_column: Any,
        out: Any,
        out_row: Any,
        out_column: Any,
        depth: Any,
    ) -> Any:
        """out[out_row:+8, out_column:+32] = a[a_row:+8, 0:depth] @ b[b_row:+depth] + bias[bias_at:+32], plus or times
        other[other_row:+8, other_column:+32], which may be `out`; GATED: see there.

        a, b: uint32 words; bias: float32 [outputs]; other, out: bfloat16 bits. As above otherwise."""

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            a, b, bias, other, out = _arrays(context, builder, sig, args, (0, 2, 4, 6, 9))
            vectors = Vectors(builder)
            blocks = range(0, COLUMNS, LANES)
            biases = [builder.load(vectors.place(bias, None, args[5], FLOATS, block), align=4) for block in blocks]
            before = [vectors.constant(0.0)] * (8 * len(blocks))
            totals = iter(_products(builder, True, a, args[1], b, args[3], args[5].type(0), args[12], before, True))

            def put(row: int, block: int, value: Any) -> None:
                place = vectors.place(out, builder.add(args[10], _integer(row)), args[11], SHORTS, block)
                builder.store(vectors.rounded(value), place, align=2)

            for row in range(8):
                found = [builder.fadd(next(totals), shift) for shift in biases]
                if kind == GATED:
                    put(row, 0, builder.fmul(vectors.silu(found[0]), found[1]))
                    continue
                for block, value in zip(blocks, found, strict=True):
                    if kind != PLAIN:
                        beside = vectors.place(other, builder.add(args[7], _integer(row)), args[8], SHORTS, block)
                        operand = vectors.widened(builder.load(beside, align=2))
                        value = (builder.fadd if kind == ADDED else builder.fmul)(value, operand)
                    put(row, block, value)
            return context.get_dummy_value()

        signature = types.void(
            a, a_row, b, b_row, bias, bias_at, other, other_row, other_column, out, out_row, out_column, depth
        )
        return signature, generate

    return finished_tile


def _integer(value: int) -> Any:
    return ir.Constant(ir.IntType(64), value)


def _arrays(context: Any, builder: Any, sig: Any, args: Any, where: tuple[int, ...]) -> list[Any]:
    return [context.make_array(sig.args[i])(context, builder, args[i]) for i in where]


def _products(
    builder: Any, words: bool, a: Any, a_row: Any, b: Any, b_row: Any, b_column: Any, depth: Any, before: list[Any],
    fetches_next: bool = False,
) -> list[Any]:
    """The loop over depth: two vectors of sums per row of the tile, starting from `before`. fetches_next: lines of
    the next panel of b are asked for on the way."""
    vectors = Vectors(builder)
    kind = INTS if words else FLOATS
    if words:
        function = ir.FunctionType(FLOATS, [FLOATS, _PAIRS, _PAIRS])
        dot = _declare(builder.module, function, "llvm.x86.avx512bf16.dpbf16ps.512")

    def multiply_add(left: Any, right: Any, total: Any) -> Any:
        if not words:
            return vectors.call("llvm.fma.v16f32", FLOATS, left, right, total)
        return builder.call(dot, [total, builder.bitcast(left, _PAIRS), builder.bitcast(right, _PAIRS)])

    entry = builder.block
    loop, done = builder.append_basic_block("tile.loop"), builder.append_basic_block("tile.done")
    builder.branch(loop)
    builder.position_at_end(loop)
    k = builder.phi(depth.type)
    k.add_incoming(depth.type(0), entry)
    totals: list[Any] = []
    for value in before:
        totals.append(builder.phi(FLOATS))
        totals[-1].add_incoming(value, entry)
    line = builder.add(b_row, k)
    blocks = [
        builder.load(vectors.place(b, line, b_column, kind, block), align=4) for block in range(0, COLUMNS, LANES)
    ]
    if fetches_next:
        later = builder.add(line, depth)
        for block in range(0, COLUMNS, LANES):
            vectors.prefetch(vectors.place(b, later, b_column, None, block))
    updated: list[Any] = []
    for row in range(len(before) // len(blocks)):
        scalar = builder.load(vectors.place(a, builder.add(a_row, _integer(row)), k, None, 0))
        spread = vectors.splat(scalar)
        for block in blocks:
            updated.append(multiply_add(spread, block, totals[len(updated)]))
    following = builder.add(k, depth.type(1))
    for total, value in zip(totals, updated, strict=True):
        total.add_incoming(value, builder.block)
    k.add_incoming(following, builder.block)
    builder.cbranch(builder.icmp_signed("<", following, depth), loop, done)
    builder.position_at_end(done)
    return updated


multiply_4, multiply_8 = _tile(4, add=False), _tile(8, add=False)
multiply_add_4, multiply_add_8 = _tile(4, add=True), _tile(8, add=True)
"""Eight rows keep the multipliers busy; four waste less where there are few rows. The bits of a row are the same."""

product_8, added_8, multiplied_8, gated_8 = map(_finished_tile, (PLAIN, ADDED, MULTIPLIED, GATED))
