"""The candidates as PEFT LoRA adapters, all rollouts of a stage in mixed-adapter batches (`adapter_names=`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from nograd.bench.stock import StockEngine
from nograd.llm.requests import Request
from nograd.llm.subspace import TARGETS, Subspace


class PeftEngine(StockEngine):
    """One adapter per (stage, θ), made when first asked for (as a study would before its rollouts)."""

    rows_at_once = 144

    def __init__(self, model: Any, eos_ids: frozenset[int], device: torch.device, subspace: Subspace) -> None:
        from peft import LoraConfig, get_peft_model

        self.config = LoraConfig(
            r=subspace.spec.dim,
            lora_alpha=subspace.spec.dim,
            target_modules=[f"{target}_proj" for target in TARGETS],
            bias="none",
        )
        self.subspace = subspace
        self.names: dict[tuple[int, bytes], str] = {}
        super().__init__(get_peft_model(model, self.config, adapter_name="unused").eval(), eos_ids, device)

    def prepare(self, keys: Sequence[tuple[int, bytes]]) -> None:
        """Replace all adapters by those of these (stage, θ)."""
        for name in self.names.values():
            self.model.delete_adapter(name)
        self.names = {}
        for number, (module, theta) in enumerate(keys):
            name = f"candidate{number}"
            self.model.add_adapter(name, self.config)
            self._fill(name, module, theta)
            self.names[module, theta] = name
        self.model.eval()

    @torch.no_grad()
    def _fill(self, name: str, module: int, theta: bytes) -> None:
        values = torch.from_numpy(np.frombuffer(theta, dtype=np.float32).copy())
        layers = self.model.base_model.model.model.layers
        for index, layer in enumerate(layers):
            own_theta = self.subspace.theta_of_layer(values, index)
            for target in TARGETS:
                own = self.subspace.directions[index][target].of(self.subspace.columns[module])
                projection = getattr(layer.self_attn, f"{target}_proj")
                projection.lora_A[name].weight.copy_(own.v.T)
                projection.lora_B[name].weight.copy_(own.u * (self.subspace.spec.strength * own.s * own_theta))

    @contextmanager
    def active(self, requests: Sequence[Request]) -> Iterator[dict[str, Any]]:
        yield {"adapter_names": [self.names[request.module, request.theta] for request in requests]}
