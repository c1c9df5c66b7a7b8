"""The per-row perturbation: every row of a batch carries its own θ, the base weights are never written to.

y += U (θ_row ∘ (c s V)ᵀx). U, s and V of each module stay resident; c and s are folded into U. The query and
value deltas of a block share one product on the way in and one on the way out, fused with the addition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from nograd.llm.architecture import Architecture
from nograd.llm.delta_panels import DeltaPanels, row_blocks
from nograd.llm.linear import Linear
from nograd.llm.panels import Panels, frozen
from nograd.llm.subspace import Subspace

Segment = tuple[int, int, int]
"""(module, first, stop): the rows first .. stop of a batch belong to this module."""


class Coefficients(NamedTuple):
    """Each token's coefficients in one layer: once [tokens, dim], and twice side by side [tokens, 2 · dim]."""

    once: torch.Tensor
    twice: torch.Tensor


class Places(NamedTuple):
    """Whose rows are where in a pass: by segment, and in blocks of at most eight rows (`delta_panels.py`)."""

    segments: Sequence[Segment]
    blocks: NDArray[np.int64]


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
        self.together = [_together(modules) for modules in self.layers]

    @staticmethod
    def places(segments: Sequence[Segment]) -> Places:
        """Once per pass."""
        return Places(segments, row_blocks(segments))

    def rows(self, theta: torch.Tensor, layer: int) -> Coefficients:
        """theta: [tokens, size] -> the coefficients of one layer."""
        own = self.subspace.theta_of_layer(theta, layer).contiguous()
        return Coefficients(own, torch.cat((own, own), dim=1))

    def on_qkv(
        self, layer: int, x: torch.Tensor, y: torch.Tensor, theta: Coefficients, where: Places
    ) -> torch.Tensor:
        """y + Δ(x) on the fused [query | key | value] rows, in the place of y."""
        if (together := self.together[layer]) is not None:
            return together[0].add(x, y, theta.twice, where.blocks)
        for module, first, stop in where.segments:
            factors = self.layers[layer][module]
            y = factors.qv_out.add_rows(factors.qv_in.rows_times(x, theta.twice, first, stop), y, first, stop)
        return y

    def on_output(
        self, layer: int, x: torch.Tensor, y: torch.Tensor, theta: Coefficients, where: Places
    ) -> torch.Tensor:
        """y + Δ(x) on the output projection's rows, in the place of y."""
        if (together := self.together[layer]) is not None:
            return together[1].add(x, y, theta.once, where.blocks)
        for module, first, stop in where.segments:
            factors = self.layers[layer][module]
            y = factors.o_out.add_rows(factors.o_in.rows_times(x, theta.once, first, stop), y, first, stop)
        return y


def _together(modules: Sequence[_Factors]) -> tuple[DeltaPanels, DeltaPanels] | None:
    """All modules' factors for one call each, if all of them are in panels."""
    found = []
    for into, out_of in (("qv_in", "qv_out"), ("o_in", "o_out")):
        panels = [[p for f in modules if isinstance(p := getattr(f, name), Panels)] for name in (into, out_of)]
        if any(len(each) < len(modules) for each in panels):
            return None
        found.append(DeltaPanels(*panels))
    return found[0], found[1]


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
