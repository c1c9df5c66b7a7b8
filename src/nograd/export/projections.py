"""Where a delta acts in the original model: its own module names, fused projections included.

A target (query, value, output) is a linear layer of its own, or a block of rows of a fused one (Phi-3's
qkv_proj). The delta on a fused layer is block-structured: each target has its own rows of B and its own columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from nograd.export.tuned import Tuned
from nograd.llm.architecture import Architecture
from nograd.llm.layouts import KINDS


@dataclass(frozen=True)
class Projection:
    """A linear layer [out, in] of block `layer`. path: its name in the model; rows: the output rows of each target."""

    layer: int
    path: str
    out: int
    rows: Mapping[str, slice]

    @property
    def name(self) -> str:
        """The last part of its path, as PEFT's target_modules has it."""
        return self.path.rpartition(".")[2]


def projections(architecture: Architecture) -> list[Projection]:
    """All linear layers of the original model that deltas act on."""
    return [each for layer in range(architecture.layers) for each in _of_layer(architecture, layer)]


def lora_rank(architecture: Architecture, dim: int) -> int:
    """The one rank of all adapters: dim per target that shares a linear layer."""
    return dim * max(len(each.rows) for each in _of_layer(architecture, 0))


def lora_factors(tuned: Tuned, module: int, projection: Projection, rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A [rank, in] and B [out, rank] with B A = ΔW of one module, float32; unused rank is zero.

    A holds Vᵀ, B holds c U diag(s ∘ θ) (DESIGN §4), so the adapter's own scaling is 1."""
    spec = tuned.subspace.spec
    theta = tuned.subspace.theta_of_layer(torch.from_numpy(tuned.theta[module].copy()), projection.layer)
    b = torch.zeros(projection.out, rank)
    parts = []
    for index, (target, rows) in enumerate(projection.rows.items()):
        own = tuned.subspace.directions[projection.layer][target].of(tuned.subspace.columns[module])
        b[rows, index * spec.dim : (index + 1) * spec.dim] = own.u * (spec.strength * own.s * theta)
        parts.append(own.v.T)
    a = torch.cat(parts)
    return torch.nn.functional.pad(a, (0, 0, 0, rank - len(a))).contiguous(), b


def add_delta(tuned: Tuned, module: int, projection: Projection, weight: torch.Tensor) -> torch.Tensor:
    """W + ΔW of one module, computed in float32, in the dtype of W [out, in]."""
    changed = weight.float().clone()
    for target, rows in projection.rows.items():
        changed[rows] += tuned.subspace.delta(tuned.theta[module], module, projection.layer, target)
    return changed.to(weight.dtype)


def _of_layer(a: Architecture, layer: int) -> list[Projection]:
    prefix = f"model.layers.{layer}.self_attn."
    queries, keys = a.heads * a.head_dim, a.kv_heads * a.head_dim
    total = queries + 2 * keys
    output = Projection(layer, prefix + "o_proj", a.hidden, {"o": slice(0, a.hidden)})
    if KINDS[a.kind].fused:
        rows = {"q": slice(0, queries), "v": slice(queries + keys, total)}
        return [Projection(layer, prefix + "qkv_proj", total, rows), output]
    return [
        Projection(layer, prefix + "q_proj", queries, {"q": slice(0, queries)}),
        Projection(layer, prefix + "v_proj", keys, {"v": slice(0, keys)}),
        output,
    ]
