"""Small functions that the CPU kernels share: bfloat16 in and out of arrays, and 2^x."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload

FAST: Any = {"contract", "nsz", "arcp"}
LOG2E = np.float32(1.4426950408889634)
_ONE = np.float32(1)


def load(value: Any) -> Any:
    """A stored float32 or bfloat16 (uint16 bits) as float32."""
    raise NotImplementedError


@overload(load, inline="always", strict=False)
def load_overload(value: Any) -> Any:
    if value == types.uint16:
        return lambda value: np.uint32(np.uint32(value) << 16).view(np.float32)
    return lambda value: value


def store(array: Any, i: Any, j: Any, value: Any) -> Any:
    """array[i, j] = value, rounded to nearest even where the array holds bfloat16 bits."""
    raise NotImplementedError


@overload(store, inline="always", strict=False)
def store_overload(array: Any, i: Any, j: Any, value: Any) -> Any:  # noqa: ARG001
    if array.dtype == types.uint16:

        def store_bfloat16(array: Any, i: Any, j: Any, value: Any) -> Any:
            bits = np.float32(value).view(np.uint32)
            rounding = 0x7FFF + ((bits >> 16) & 1)
            array[i, j] = np.uint16((bits + rounding) >> 16)

        return store_bfloat16

    def store_float32(array: Any, i: Any, j: Any, value: Any) -> Any:
        array[i, j] = value

    return store_float32


@njit(inline="always", fastmath=FAST, error_model="numpy")
def exp2(x: Any) -> Any:
    """2^x for x <= 0 (clamped at -126), relative error about 1e-7; vectorises, unlike the library's exp."""
    x = max(x, np.float32(-126.0))
    whole = np.floor(x + np.float32(0.5))
    f = x - whole
    p = np.float32(1.5353362e-4)
    p = p * f + np.float32(1.3398874e-3)
    p = p * f + np.float32(9.6184373e-3)
    p = p * f + np.float32(5.5503324e-2)
    p = p * f + np.float32(2.4022648e-1)
    p = p * f + np.float32(6.9314720e-1)
    p = p * f + _ONE
    return p * np.int32((np.int32(whole) + 127) << 23).view(np.float32)


@njit(inline="always", error_model="numpy")
def word(low: Any, high: Any) -> Any:
    """Two float32 rounded to bfloat16 (to nearest even), as one word."""
    a, b = np.float32(low).view(np.uint32), np.float32(high).view(np.uint32)
    a += np.uint32(0x7FFF) + ((a >> np.uint32(16)) & np.uint32(1))
    b += np.uint32(0x7FFF) + ((b >> np.uint32(16)) & np.uint32(1))
    return (a >> np.uint32(16)) | (b & np.uint32(0xFFFF0000))
