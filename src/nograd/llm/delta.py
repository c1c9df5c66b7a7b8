"""The per-row perturbation: every row of a batch carries its own θ, the base weights are never written to.

y += U (θ_row ∘ (c s V)ᵀx). U, s and V of each module stay resident; c and s are folded into U. The query and
value deltas of a block share one product on the way in and one on the way out, fused with the addition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from nograd.llm.architecture import Architecture
from nograd.llm.delta_panels import DeltaPanels, Places
from nograd.llm.linear import Linear
from nograd.llm.panels import Panels, frozen
from nograd.llm.subspace import Subspace

Segment = tuple[int, int, int]
"""(module, first, stop): the rows first .. stop of a batch belong to this module."""


class Coefficients(NamedTuple):
    """Each token's coefficients in one layer: once [tokens, dim], and twice side by side [tokens, 2 · dim]."""

    once: torch.Tensor
    twice: torch.Tensor


class Perturbation:
    """The resident factors of every layer and module, and how they are applied."""

    def __init__(
        self, architecture: Architecture, subspace: Subspace, device: torch.device, dtype: torch.dtype
    ):
        self.subspace = subspace
        self.layers = [
            _targets([_Factors(architecture, subspace, layer, m, device, dtype) for m in range(subspace.spec.modules)])
            for layer in range(architecture.layers)
        ]

    def rows(self, theta: torch.Tensor, layer: int) -> Coefficients:
        """theta: [tokens, size] -> the coefficients of one layer."""
        own = self.subspace.theta_of_layer(theta, layer).contiguous()
        return Coefficients(own, torch.cat((own, own), dim=1))

    def on_qkv(
        self, layer: int, x: torch.Tensor, y: torch.Tensor, theta: Coefficients, where: Places
    ) -> torch.Tensor:
        """y + Δ(x) on the fused [query | key | value] rows, in the place of y."""
        return self.layers[layer][0].add(x, y, theta.twice, where)

    def on_output(
        self, layer: int, x: torch.Tensor, y: torch.Tensor, theta: Coefficients, where: Places
    ) -> torch.Tensor:
        """y + Δ(x) on the output projection's rows, in the place of y."""
        return self.layers[layer][1].add(x, y, theta.once, where)


class DeltaProducts:
    """One target's V and U of every module, as products of a library: module by module."""

    def __init__(self, into: Sequence[Linear | Panels], out_of: Sequence[Linear | Panels]) -> None:
        self.into, self.out_of = into, out_of

    def add(self, x: torch.Tensor, y: torch.Tensor, theta: torch.Tensor, where: Places) -> torch.Tensor:
        """y + Δ(x), in the place of y. x, y: [rows, in], [rows, out]; theta: [rows, inner]."""
        for module, first, stop in where.segments:
            scaled = self.into[module].rows_times(x, theta, first, stop)
            y = self.out_of[module].add_rows(scaled, y, first, stop)
        return y


def _targets(modules: Sequence[_Factors]) -> tuple[DeltaPanels | DeltaProducts, DeltaPanels | DeltaProducts]:
    """The deltas on the fused query, key and value, and on the output projection."""
    return (
        _delta([f.qv_in for f in modules], [f.qv_out for f in modules]),
        _delta([f.o_in for f in modules], [f.o_out for f in modules]),
    )


def _delta(into: Sequence[Linear | Panels], out_of: Sequence[Linear | Panels]) -> DeltaPanels | DeltaProducts:
    """All modules in one call where all of their factors are in panels."""
    panels = [[p for p in side if isinstance(p, Panels)] for side in (into, out_of)]
    if all(len(side) == len(into) for side in panels):
        return DeltaPanels(*panels)
    return DeltaProducts(into, out_of)


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

        def product(matrix: torch.Tensor) -> Linear | Panels:
            return frozen(matrix.to(device=device, dtype=dtype).contiguous())

        self.qv_in = product(torch.cat((own["q"].v.T, own["v"].v.T)))
        self.qv_out = product(qv_out)
        self.o_in = product(own["o"].v.T)
        self.o_out = product(scaled["o"])
