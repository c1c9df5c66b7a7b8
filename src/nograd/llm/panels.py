"""Matrix products with a frozen bfloat16 weight on a CPU that multiplies words (`tile.py`).

The weight is laid out once in panels of 32 outputs, each read from front to back. A thread takes a panel and up to
128 rows: the panel stays in its first-level cache, the rows in its second. At decoding's few rows the weights
stream from memory once, without the per-call cost of a library's product; with many rows the rate is the library's.
Each output is one chain of additions over its own inputs, whatever the other rows are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numba import njit, prange
from numpy.typing import NDArray
from torch.nn import functional

from nograd.llm.linear import Linear
from nograd.llm.tile import (
    ADDED,
    COLUMNS,
    GATED,
    MULTIPLIED,
    PLAIN,
    added_8,
    gated_8,
    multiplied_8,
    multiplies_words,
    product_8,
)

_ROWS, _CHUNK = 8, 128
_product: Any = product_8
_added: Any = added_8
_multiplied: Any = multiplied_8
_gated: Any = gated_8


@njit(inline="always", error_model="numpy")
def _finish(
    kind: Any, x: Any, row: Any, panels: Any, line: Any, bias: Any, at: Any, other: Any, other_row: Any,
    other_column: Any, out: Any, out_row: Any, out_column: Any, depth: Any,
) -> None:  # fmt: skip
    """One tile, finished as `kind` says."""
    if kind == PLAIN:
        _product(x, row, panels, line, bias, at, other, other_row, other_column, out, out_row, out_column, depth)
    elif kind == ADDED:
        _added(x, row, panels, line, bias, at, other, other_row, other_column, out, out_row, out_column, depth)
    elif kind == MULTIPLIED:
        _multiplied(x, row, panels, line, bias, at, other, other_row, other_column, out, out_row, out_column, depth)
    else:
        _gated(x, row, panels, line, bias, at, other, other_row, other_column, out, out_row, out_column, depth)


@njit(parallel=True, cache=True, error_model="numpy")
def product(
    x: Any,
    x_first: Any,
    count: Any,
    panels: Any,
    bias: Any,
    kind: Any,
    other: Any,
    other_first: Any,
    out: Any,
    out_first: Any,
) -> None:
    """out[out_first : + count] = x[x_first : + count] Wᵀ + bias, plus or times other[other_first : + count], or gated,
    as `kind` says (`tile.py`); `other` may be `out`.

    x: words uint32 [at least 8 rows, depth]; panels: words uint32 [panels · depth, 32]; bias: float32 [outputs];
    other, out: bfloat16 bits [rows, outputs] (GATED: half as many outputs). The last rows, if fewer than eight, go
    through a tile of their own."""
    chunks = (count + _CHUNK - 1) // _CHUNK
    chunk_rows = ((count + chunks - 1) // chunks + _ROWS - 1) // _ROWS * _ROWS
    depth = x.shape[1]
    number = panels.shape[0] // depth
    width = out.shape[1] // number
    for work in prange(chunks * number):
        chunk, panel = work // number, work % number
        column, stop = panel * width, min(count, (chunk + 1) * chunk_rows)
        for row in range(chunk * chunk_rows, stop, _ROWS):
            if row + _ROWS <= stop:
                _finish(
                    kind, x, x_first + row, panels, panel * depth, bias, panel * COLUMNS,
                    other, other_first + row, column, out, out_first + row, column, depth,
                )  # fmt: skip
            else:
                tile = np.zeros((_ROWS, COLUMNS), np.uint16)
                at = min(x_first + row, x.shape[0] - _ROWS)
                skipped = x_first + row - at
                for a in range(stop - row):
                    for j in range(width):
                        tile[skipped + a, j] = other[other_first + row + a, column + j]
                _finish(kind, x, at, panels, panel * depth, bias, panel * COLUMNS, tile, 0, 0, tile, 0, 0, depth)
                for a in range(stop - row):
                    for j in range(width):
                        out[out_first + row + a, column + j] = tile[skipped + a, j]


class Panels:
    """y = x Wᵀ + b for a frozen bfloat16 weight [out, in]; x: bfloat16 [at least 8 rows, in], contiguous."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        self.shape = (weight.shape[0], weight.shape[1])
        both = words(weight.contiguous()).reshape(-1, COLUMNS, self.shape[1] // 2)
        self.panels = np.ascontiguousarray(both.transpose(0, 2, 1)).reshape(-1, COLUMNS)
        self.bias = np.zeros(self.shape[0], dtype=np.float32) if bias is None else bias.float().numpy()

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """x Wᵀ + b."""
        return self._run(x, PLAIN, None, x.new_empty(x.shape[0], self.shape[0]))

    def added_to(self, x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """other + x Wᵀ + b, in the place of `other`."""
        return self._run(x, ADDED, other, other)

    def rows_times(self, x: torch.Tensor, other: torch.Tensor, first: int, stop: int) -> torch.Tensor:
        """other ∘ (x Wᵀ + b) of the rows first .. stop; the tensor has at least 8 rows, further ones are undefined."""
        out = x.new_empty(max(stop - first, _ROWS), self.shape[0])
        return self._run(x, MULTIPLIED, other, out, count=stop - first, first=(first, first, 0))

    def add_rows(self, x: torch.Tensor, other: torch.Tensor, first: int, stop: int) -> torch.Tensor:
        """`other`, after x Wᵀ + b, from the first row of x on, has been added to its rows first .. stop."""
        x = functional.pad(x, (0, 0, 0, max(_ROWS - x.shape[0], 0)))
        return self._run(x, ADDED, other, other, count=stop - first, first=(0, first, first))

    def gated(self, x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        """out, filled with silu(gate) ∘ up of a weight that alternates 16 rows of gates with 16 of the other."""
        return self._run(x, GATED, None, out)

    def _run(
        self,
        x: torch.Tensor,
        kind: int,
        other: torch.Tensor | None,
        out: torch.Tensor,
        count: int | None = None,
        first: tuple[int, int, int] = (0, 0, 0),
    ) -> torch.Tensor:
        """first: of the rows in x, other and out."""
        bits = out.view(torch.uint16).numpy()
        beside = bits if other is None or other is out else other.view(torch.uint16).numpy()
        product(
            words(x), first[0], x.shape[0] if count is None else count, self.panels, self.bias, kind,
            beside, first[1], bits, first[2],
        )  # fmt: skip
        return out


class GatedPanels:
    """silu(x Gᵀ) ∘ (x Uᵀ) in one product: panels of 16 gates and the 16 outputs that they scale."""

    def __init__(self, gate: torch.Tensor, up: torch.Tensor) -> None:
        half = COLUMNS // 2
        pairs = torch.stack((gate.view(-1, half, gate.shape[1]), up.view(-1, half, up.shape[1])), dim=1)
        self.both = Panels(pairs.view(-1, gate.shape[1]))
        self.outputs = gate.shape[0]

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """x: bfloat16 [at least 8 rows, in] -> [rows, out]."""
        return self.both.gated(x, x.new_empty(x.shape[0], self.outputs))


class GatedLinear:
    """activation(x Gᵀ) ∘ (x Uᵀ) as two products."""

    def __init__(self, gate: torch.Tensor, up: torch.Tensor, activation: str) -> None:
        self.gate, self.up, self.activation = Linear(gate), Linear(up), activation

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """x: [rows, in] -> [rows, out]."""
        return self.up.times(x, self.gate.activated(x, self.activation))


def frozen(weight: torch.Tensor, bias: torch.Tensor | None = None) -> Linear | Panels:
    """The product with a frozen weight in the form that is fastest for it here."""
    return Panels(weight, bias) if _fits(weight) else Linear(weight, bias)


def frozen_gated(gate: torch.Tensor, up: torch.Tensor, activation: str) -> GatedLinear | GatedPanels:
    """The same for activation(x Gᵀ) ∘ (x Uᵀ); activation: "silu", "gelu" or "gelu_tanh"."""
    if activation == "silu" and _fits(gate):
        return GatedPanels(gate, up)
    return GatedLinear(gate, up, activation)


def _fits(weight: torch.Tensor) -> bool:
    """Whether a weight can be laid out in panels, and this machine multiplies them."""
    outputs, inputs = weight.shape
    whole = outputs % COLUMNS == 0 == inputs % 2
    return weight.device.type == "cpu" and weight.dtype == torch.bfloat16 and whole and multiplies_words()


def words(x: torch.Tensor) -> NDArray[np.uint32]:
    """Contiguous bfloat16 [rows, columns] as words [rows, columns / 2], without a copy."""
    return x.view(torch.int32).numpy().view(np.uint32)
