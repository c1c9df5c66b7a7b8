"""The per-row perturbation: every row of a batch carries its own θ, the base weights are never written to.

y += U (θ_row ∘ (c s V)ᵀx). U, s and V of each module stay resident; c and s are folded into U. The query and
value deltas of a block share one product on the way in and one on the way out, fused with the addition.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from nograd.llm.architecture import Architecture
from nograd.llm.linear import Linear
from nograd.llm.subspace import Subspace

Segment = tuple[int, int, int]
"""(module, first, stop): the rows first .. stop of a batch belong to this module."""


class Perturbation:
    """The resident factors of every layer and module, and how they are applied."""

    def __init__(
        self, architecture: Architecture, subspace: Subspace, device: torch.device, dtype: torch.dtype
    ):
        self.subspace = subspace
        self.layers = [
            [
                _Factors(architecture, subspace, layer, module, device, dtype)
                for module in range(subspace.spec.modules)
            ]
            for layer in range(architecture.layers)
        ]

    def on_qkv(
        self, layer: int, x: torch.Tensor, y: torch.Tensor, theta: torch.Tensor, segments: Sequence[Segment]
    ) -> torch.Tensor:
        """y + Δ(x) on the fused [query | key | value] rows. theta: [rows, dim] of this layer."""
        twice = torch.cat((theta, theta), dim=1)
        return self._apply(x, y, twice, segments, [(f.qv_in, f.qv_out) for f in self.layers[layer]])

    def on_output(
        self, layer: int, x: torch.Tensor, y: torch.Tensor, theta: torch.Tensor, segments: Sequence[Segment]
    ) -> torch.Tensor:
        """y + Δ(x) on the output projection's rows."""
        return self._apply(x, y, theta, segments, [(f.o_in, f.o_out) for f in self.layers[layer]])

    @staticmethod
    def _apply(
        x: torch.Tensor,
        y: torch.Tensor,
        theta: torch.Tensor,
        segments: Sequence[Segment],
        factors: list[tuple[Linear, Linear]],
    ) -> torch.Tensor:
        if len(segments) == 1:
            into, out = factors[segments[0][0]]
            return out.added_to(into.times(x, theta), y)
        parts = []
        for module, first, stop in segments:
            into, out = factors[module]
            parts.append(out.added_to(into.times(x[first:stop], theta[first:stop]), y[first:stop]))
        return torch.cat(parts)


class _Factors:
    """V and c U diag(s) of one layer and module, for the fused qkv rows and for the output projection."""

    def __init__(
        self,
        architecture: Architecture,
        subspace: Subspace,
        layer: int,
        module: int,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        own = {
            target: directions.of(subspace.columns[module])
            for target, directions in subspace.directions[layer].items()
        }
        scaled = {t: subspace.spec.strength * d.u * d.s for t, d in own.items()}
        dim = subspace.spec.dim
        q_rows = architecture.heads * architecture.head_dim
        kv_rows = architecture.kv_heads * architecture.head_dim
        qv_out = torch.zeros(q_rows + 2 * kv_rows, 2 * dim)
        qv_out[:q_rows, :dim] = scaled["q"]
        qv_out[q_rows + kv_rows :, dim:] = scaled["v"]

        def frozen(matrix: torch.Tensor) -> Linear:
            return Linear(matrix.to(device=device, dtype=dtype).contiguous())

        self.qv_in = frozen(torch.cat((own["q"].v.T, own["v"].v.T)))
        self.qv_out = frozen(qv_out)
        self.o_in = frozen(own["o"].v.T)
        self.o_out = frozen(scaled["o"])
