"""Matrix products with a frozen weight: packed once for the CPU's own kernels, plain elsewhere.

Why: a frozen weight is multiplied thousands of times, so it pays to lay it out once as oneDNN wants it. On
AVX-512 machines this more than doubles the fp32 rate over the stock call, and the following addition,
product or activation is done on the accumulator while it is still in registers. It also gives rows whose
bits do not depend on how many other rows there are (docs/engine.md), once there are at least `MIN_ROWS`.
"""

from __future__ import annotations

from typing import cast

import torch
from torch.nn import functional

MIN_ROWS = 16
_PACK_FOR_ROWS = 512
_ACTIVATIONS = {"silu": ("swish", ""), "gelu": ("gelu", "none"), "gelu_tanh": ("gelu", "tanh")}


def can_pack(weight: torch.Tensor) -> bool:
    """Whether oneDNN packs this weight here (CPU, fp32 or natively supported bf16)."""
    if weight.device.type != "cpu" or not torch._C._has_mkldnn:
        return False
    if weight.dtype == torch.bfloat16:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return weight.dtype == torch.float32


class Linear:
    """y = x Wᵀ + b for a frozen weight [out, in]; x: [rows, in], y: [rows, out], in the weight's dtype."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        self.packed = can_pack(weight)
        self.shape = (weight.shape[0], weight.shape[1])
        self.bias = bias
        self.weight = (
            torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), _PACK_FOR_ROWS)
            if self.packed
            else weight
        )

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """x Wᵀ + b."""
        if not self.packed:
            return functional.linear(x, self.weight, self.bias)
        return self._fused(x, "none", "")

    def activated(self, x: torch.Tensor, activation: str) -> torch.Tensor:
        """activation(x Wᵀ + b) for "silu", "gelu" or "gelu_tanh"."""
        if not self.packed:
            return activate(functional.linear(x, self.weight, self.bias), activation)
        return self._fused(x, *_ACTIVATIONS[activation])

    def added_to(self, x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """other + x Wᵀ + b; `other` may be overwritten."""
        if not self.packed:
            return functional.linear(x, self.weight, self.bias).add_(other)
        return self._binary(x, other, "add")

    def times(self, x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """other ∘ (x Wᵀ + b); `other` may be overwritten."""
        if not self.packed:
            return functional.linear(x, self.weight, self.bias).mul_(other)
        return self._binary(x, other, "mul")

    def rows_times(self, x: torch.Tensor, other: torch.Tensor, first: int, stop: int) -> torch.Tensor:
        """other ∘ (x Wᵀ + b) of the rows first .. stop."""
        return self.times(x[first:stop], other[first:stop])

    def add_rows(self, x: torch.Tensor, other: torch.Tensor, first: int, stop: int) -> torch.Tensor:
        """`other` with x Wᵀ + b added to its rows first .. stop; may be `other` itself, changed."""
        x = x[: stop - first]
        if len(x) == len(other):
            return self.added_to(x, other)
        other[first:stop] = self.added_to(x, other[first:stop])
        return other

    def _fused(self, x: torch.Tensor, post: str, algorithm: str) -> torch.Tensor:
        rows = x.shape[0]
        y = torch.ops.mkldnn._linear_pointwise(enough_rows(x), self.weight, self.bias, post, [], algorithm)
        return cast(torch.Tensor, y if rows >= MIN_ROWS else y[:rows])

    def _binary(self, x: torch.Tensor, other: torch.Tensor, post: str) -> torch.Tensor:
        rows = x.shape[0]
        y = torch.ops.mkldnn._linear_pointwise.binary(
            enough_rows(x), enough_rows(other), self.weight, self.bias, post
        )
        return cast(torch.Tensor, y if rows >= MIN_ROWS else y[:rows])


def activate(x: torch.Tensor, activation: str) -> torch.Tensor:
    """The plain form of the fused activations."""
    if activation == "silu":
        return functional.silu(x)
    return functional.gelu(x, approximate="tanh" if activation == "gelu_tanh" else "none")


def enough_rows(x: torch.Tensor) -> torch.Tensor:
    """x with zero rows appended up to MIN_ROWS: kernels for fewer rows add up in another order."""
    if x.shape[0] >= MIN_ROWS:
        return x
    return functional.pad(x, (0, 0, 0, MIN_ROWS - x.shape[0]))
