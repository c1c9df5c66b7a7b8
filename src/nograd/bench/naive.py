"""The usual way: one candidate after the other, forward hooks that add the delta, a batch per stage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from nograd.bench.stock import StockEngine
from nograd.llm.requests import Request
from nograd.llm.subspace import Subspace


class NaiveEngine(StockEngine):
    """Hooks on every target projection; the rows of a batch share stage and θ."""

    def __init__(self, model: Any, eos_ids: frozenset[int], device: torch.device, subspace: Subspace) -> None:
        super().__init__(model, eos_ids, device)
        self.subspace = subspace
        self.factors = [
            [
                {
                    target: tuple(
                        part.to(device=device, dtype=model.dtype)
                        for part in (own.v, subspace.spec.strength * own.s, own.u.T.contiguous())
                    )
                    for target, directions in layer.items()
                    for own in [directions.of(columns)]
                }
                for columns in subspace.columns
            ]
            for layer in subspace.directions
        ]

    @contextmanager
    def active(self, requests: Sequence[Request]) -> Iterator[dict[str, Any]]:
        """Hooks in place for the requests' common stage and θ; removed whatever happens."""
        module = requests[0].module
        theta = torch.from_numpy(np.frombuffer(requests[0].theta, dtype=np.float32).copy())
        theta = theta.to(device=self.device, dtype=self.model.dtype)
        handles = []
        try:
            for index, layer in enumerate(self.model.model.layers):
                own = self.subspace.theta_of_layer(theta, index)
                for target, (v, s, ut) in self.factors[index][module].items():
                    projection = getattr(layer.self_attn, f"{target}_proj")
                    handles.append(projection.register_forward_hook(_adder(v, s * own, ut)))
            yield {}
        finally:
            for handle in handles:
                handle.remove()

    def groups(self, requests: Sequence[Request], chosen: Sequence[int]) -> list[list[int]]:
        """As in stock batches, and of one θ."""
        found: dict[bytes, list[int]] = {}
        for group in super().groups(requests, chosen):
            for i in group:
                found.setdefault(bytes([requests[i].module]) + requests[i].theta, []).append(i)
        return list(found.values())


def _adder(v: torch.Tensor, weight: torch.Tensor, ut: torch.Tensor) -> Any:
    def hook(module: Any, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> torch.Tensor:  # noqa: ARG001
        return output + ((inputs[0] @ v) * weight) @ ut

    return hook
