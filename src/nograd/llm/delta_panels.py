"""The deltas of all modules on one target in one call, where the CPU multiplies bfloat16 words.

A pass has rows of several modules, and a delta is two thin products: as library calls that is mostly overhead at
decoding's few rows. Here a thread takes eight rows, makes θ ∘ Vᵀx of them in a tile of its own, and adds U times that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import njit, prange
from numpy.typing import NDArray

from nograd.llm.panels import Panels, words
from nograd.llm.tile import COLUMNS, added_8, multiplied_8

_ROWS = 8
_added: Any = added_8
_multiplied: Any = multiplied_8


@njit(parallel=True, cache=True, error_model="numpy")
def add_deltas(x: Any, into: Any, out_of: Any, theta: Any, blocks: Any, nothing: Any, y: Any) -> None:
    """y[rows] += U (θ ∘ Vᵀx)[rows] for every block of rows.

    x: words uint32 [at least 8 rows, depth]; into, out_of: every module's panels of V and U, one module after the
    other; theta, y: bfloat16 bits [rows, inner], [rows, outputs]; blocks: int64 [blocks, 3], module, first row, stop
    (at most eight rows on). nothing: float32 zeros, as many as there are outputs."""
    depth, inner = x.shape[1], theta.shape[1]
    outputs = y.shape[1] // COLUMNS
    for b in prange(blocks.shape[0]):
        module, first, stop = blocks[b]
        at = min(first, x.shape[0] - _ROWS)
        scaled = np.empty((_ROWS, inner), np.uint16)
        for panel in range(inner // COLUMNS):
            line = (module * (inner // COLUMNS) + panel) * depth
            column = panel * COLUMNS
            _multiplied(x, at, into, line, nothing, 0, theta, at, column, scaled, 0, column, depth)
        factors = scaled.view(np.uint32)
        tile = np.empty((_ROWS, COLUMNS), np.uint16)
        for panel in range(outputs):
            line, column = (module * outputs + panel) * (inner // 2), panel * COLUMNS
            if stop - first == _ROWS:
                _added(factors, 0, out_of, line, nothing, 0, y, at, column, y, at, column, inner // 2)
                continue
            for a in range(_ROWS):
                for j in range(COLUMNS):
                    tile[a, j] = y[at + a, column + j]
            _added(factors, 0, out_of, line, nothing, 0, tile, 0, 0, tile, 0, 0, inner // 2)
            for row in range(first, stop):
                for j in range(COLUMNS):
                    y[row, column + j] = tile[row - at, j]


class Places(NamedTuple):
    """Whose rows are where in a pass: segments (module, first, stop), and the same in blocks of at most eight rows,
    int64 [blocks, 3]."""

    segments: Sequence[tuple[int, int, int]]
    blocks: NDArray[np.int64]


class DeltaPanels:
    """One target's V and U of every module; their shapes are the same for all modules."""

    def __init__(self, into: Sequence[Panels], out_of: Sequence[Panels]) -> None:
        self.into = np.concatenate([p.panels for p in into])
        self.out_of = np.concatenate([p.panels for p in out_of])
        self.nothing = np.zeros(out_of[0].shape[0], dtype=np.float32)

    def add(self, x: torch.Tensor, y: torch.Tensor, theta: torch.Tensor, where: Places) -> torch.Tensor:
        """y + Δ(x), in the place of y. x, y: bfloat16, at least 8 rows; theta: [rows, inner]."""
        bits = y.view(torch.uint16).numpy()
        add_deltas(words(x), self.into, self.out_of, theta.view(torch.uint16).numpy(), where.blocks, self.nothing, bits)
        return y


def places(segments: Sequence[tuple[int, int, int]]) -> Places:
    """The places of these segments; once per pass."""
    blocks = [
        (module, row, min(row + _ROWS, stop)) for module, first, stop in segments for row in range(first, stop, _ROWS)
    ]
    return Places(segments, np.array(blocks, dtype=np.int64).reshape(-1, 3))
