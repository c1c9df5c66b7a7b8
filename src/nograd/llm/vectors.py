"""Vectors of 16 floats in LLVM IR: what numba's own vectoriser does not make of plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils

LANES = 16


class _BFloat(ir.FloatType):  # type: ignore[misc]
    """LLVM's bfloat, which llvmlite has no name for."""

    def __str__(self) -> str:
        return "bfloat"


_BFloat._create_instance()
BFLOAT, FLOAT, INT = _BFloat(), ir.FloatType(), ir.IntType(32)
FLOATS, INTS = ir.VectorType(FLOAT, LANES), ir.VectorType(INT, LANES)
SHORTS, _BFLOATS = ir.VectorType(ir.IntType(16), LANES), ir.VectorType(BFLOAT, LANES)
EXP2 = (1.3267e-3, 9.67546e-3, 5.550743e-2, 2.4022122e-1, 6.9314695e-1, 1.0)
ROUGH_EXP2 = (5.508868e-2, 2.4260405e-1, 6.9327624e-1, 9.9992894e-1)
"""Polynomials for 2^f, |f| <= 1/2, highest power first: relative error 1e-7; 8e-5, for what is rounded to bfloat16."""
_unpack: Any = cgutils.unpack_tuple
_declare: Any = cgutils.get_or_insert_function


class Vectors:
    """Helpers to write vector code with one IR builder."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder

    def place(self, array: Any, row: Any, column: Any, kind: Any, further: int = 0) -> Any:
        """Pointer to a vector (or, for None, an element) at array[row, column + further]; row None: of one axis."""
        builder = self.builder
        index = builder.add(column, column.type(further)) if further else column
        if row is not None:
            index = builder.add(builder.mul(row, _unpack(builder, array.shape, 2)[1]), index)
        pointer = builder.gep(array.data, [index])
        return pointer if kind is None else builder.bitcast(pointer, kind.as_pointer())

    def constant(self, value: float) -> Any:
        return ir.Constant(FLOATS, [float(np.float32(value))] * LANES)

    def splat(self, scalar: Any) -> Any:
        """The scalar in all lanes."""
        kind = ir.VectorType(scalar.type, LANES)
        lane = self.builder.insert_element(ir.Constant(kind, ir.Undefined), scalar, ir.Constant(INT, 0))
        return self.builder.shuffle_vector(lane, ir.Constant(kind, ir.Undefined), ir.Constant(INTS, [0] * LANES))

    def call(self, name: str, result: Any, *args: Any) -> Any:
        kind = ir.FunctionType(result, [arg.type for arg in args])
        return self.builder.call(_declare(self.builder.module, kind, name), args)

    def larger(self, x: Any, y: Any) -> Any:
        return self.builder.select(self.builder.fcmp_ordered(">", x, y), x, y)

    def highest(self, x: Any) -> Any:
        """The largest lane, as a scalar."""
        for width in (8, 4, 2, 1):
            order = ir.Constant(INTS, [(lane + width) % LANES for lane in range(LANES)])
            x = self.larger(x, self.builder.shuffle_vector(x, x, order))
        return self.builder.extract_element(x, ir.Constant(INT, 0))

    def prefetch(self, pointer: Any) -> None:
        """Ask for the cache line at `pointer`, into the second-level cache, before it is read."""
        byte = self.builder.bitcast(pointer, ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [byte.type, INT, INT, INT])
        function = _declare(self.builder.module, kind, "llvm.prefetch.p0")
        self.builder.call(function, [byte, INT(0), INT(2), INT(1)])

    def exp2(self, x: Any, polynomial: tuple[float, ...] = EXP2) -> Any:
        """2^x, x clamped at -126 from below."""
        builder = self.builder
        x = self.larger(x, self.constant(-126.0))
        whole = self.call("llvm.floor.v16f32", FLOATS, builder.fadd(x, self.constant(0.5)))
        fraction = builder.fsub(x, whole)
        value = self.constant(polynomial[0])
        for coefficient in polynomial[1:]:
            value = self.call("llvm.fma.v16f32", FLOATS, value, fraction, self.constant(coefficient))
        exponent = builder.add(builder.fptosi(whole, INTS), ir.Constant(INTS, [127] * LANES))
        power = builder.shl(exponent, ir.Constant(INTS, [23] * LANES))
        return builder.fmul(value, builder.bitcast(power, FLOATS))

    def rounded(self, x: Any) -> Any:
        """Floats as the bits of bfloat16, rounded to nearest even, in 16-bit integers."""
        return self.builder.bitcast(self.builder.fptrunc(x, _BFLOATS), SHORTS)

    def widened(self, bits: Any) -> Any:
        """Bits of bfloat16 as floats."""
        high = self.builder.shl(self.builder.zext(bits, INTS), ir.Constant(INTS, [16] * LANES))
        return self.builder.bitcast(high, FLOATS)

    def silu(self, x: Any) -> Any:
        """x / (1 + e^-x), with a relative error of 2e-4, for what is rounded to bfloat16."""
        builder = self.builder
        power = builder.fmul(x, self.constant(-1.4426950408889634))
        power = builder.select(builder.fcmp_ordered("<", power, self.constant(126.0)), power, self.constant(126.0))
        below = builder.fadd(self.exp2(power, ROUGH_EXP2), self.constant(1.0))
        reciprocal = ir.FunctionType(FLOATS, [FLOATS, FLOATS, ir.IntType(16)])
        estimate = _declare(builder.module, reciprocal, "llvm.x86.avx512.rcp14.ps.512")
        return builder.fmul(x, builder.call(estimate, [below, self.constant(0.0), ir.IntType(16)(-1)]))
