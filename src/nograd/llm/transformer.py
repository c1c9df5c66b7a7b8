"""The decoder: one forward pass over a flat batch of tokens, each under its own θ."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from nograd.llm.architecture import Architecture, Layer, Weights
from nograd.llm.batch import Batch, Ints
from nograd.llm.delta import Perturbation
from nograd.llm.delta_panels import places
from nograd.llm.operations import CpuOperations, Operations, TorchOperations
from nograd.llm.pages import PagePool
from nograd.llm.panels import frozen, frozen_gated

_LOGIT_ROWS = 256


class Block:
    """One block's weights, laid out for the machine: query, key and value in one product."""

    def __init__(self, layer: Layer, norm_offset: float, activation: str) -> None:
        biases = (layer.q_bias, layer.k_bias, layer.v_bias)
        bias = None
        if any(b is not None for b in biases):
            rows = zip((layer.q, layer.k, layer.v), biases, strict=True)
            bias = torch.cat([b if b is not None else w.new_zeros(w.shape[0]) for w, b in rows])
        self.qkv = frozen(torch.cat((layer.q, layer.k, layer.v)), bias)
        self.o = frozen(layer.o, layer.o_bias)
        self.gated, self.down = frozen_gated(layer.gate, layer.up, activation), frozen(layer.down)
        self.attention_norm = layer.attention_norm.float() + norm_offset
        self.mlp_norm = layer.mlp_norm.float() + norm_offset
        nothing = self.attention_norm.new_zeros(0)
        self.q_norm = nothing if layer.q_norm is None else layer.q_norm.float() + norm_offset
        self.k_norm = nothing if layer.k_norm is None else layer.k_norm.float() + norm_offset


class Transformer:
    """A frozen decoder. `plain` runs the reference operations on the CPU, too (for tests)."""

    def __init__(self, architecture: Architecture, weights: Weights, *, plain: bool = False) -> None:
        self.architecture = architecture
        self.device, self.dtype = weights.embedding.device, weights.embedding.dtype
        self.embedding = weights.embedding
        self.head = frozen(weights.head)
        self.final_norm = weights.final_norm.float() + architecture.norm_offset
        self.blocks = [Block(layer, architecture.norm_offset, architecture.activation) for layer in weights.layers]
        angles = torch.outer(
            torch.arange(architecture.max_positions, dtype=torch.float32), weights.inverse_frequencies.cpu()
        )
        cos, sin = (
            (table * weights.rope_scale).to(self.device).contiguous()
            for table in (angles.cos(), angles.sin())
        )
        kernels_fit = architecture.head_dim % 32 == 0 and self.dtype in (torch.float32, torch.bfloat16)
        fast = self.device.type == "cpu" and kernels_fit and not plain
        self.operations: Operations = (CpuOperations if fast else TorchOperations)(
            architecture, cos, sin, self.dtype
        )

    @torch.inference_mode()
    def forward(
        self, batch: Batch, pool: PagePool, theta: torch.Tensor | None, perturbation: Perturbation | None
    ) -> torch.Tensor:
        """Outputs of the wanted tokens after the final norm, [outputs, hidden]; fills the batch's pages.

        theta: [rows, size] in the model's dtype, one row per distinct θ. Without a perturbation, the plain model.
        """
        ops = self.operations
        prepared = ops.begin(batch)
        batch = batch.padded_to(ops.min_rows)
        tokens = torch.from_numpy(batch.tokens).to(self.device)
        x = self.embedding[tokens]
        if self.architecture.embedding_scale != 1.0:
            x = x * self.architecture.embedding_scale
        rows = torch.from_numpy(batch.theta_row).to(self.device)
        own, where = None, places(batch.segments)
        for index, block in enumerate(self.blocks):
            h = ops.rms_norm(x, block.attention_norm)
            qkv = block.qkv(h)
            if perturbation is not None and theta is not None:
                if own is None or perturbation.subspace.spec.per_layer:
                    own = perturbation.rows(theta[rows], index)
                qkv = perturbation.on_qkv(index, h, qkv, own, where)
            a = ops.attention(prepared, qkv, block.q_norm, block.k_norm, pool.keys[index], pool.values[index])
            x = block.o.added_to(a, x)
            if perturbation is not None and own is not None:
                x = perturbation.on_output(index, a, x, own, where)
            h = ops.rms_norm(x, block.mlp_norm)
            x = block.down.added_to(block.gated(h), x)
        return ops.rms_norm(x[torch.from_numpy(batch.wanted).to(self.device)], self.final_norm)

    @torch.inference_mode()
    def best(self, outputs: torch.Tensor) -> Ints:
        """The next token (greedy, the first of equals) per output. outputs: [n, hidden]."""
        firsts = range(0, len(outputs), _LOGIT_ROWS)
        return np.concatenate([self.operations.best(self.head(outputs[i : i + _LOGIT_ROWS])) for i in firsts])

    @torch.inference_mode()
    def predict(self, outputs: torch.Tensor, wanted: Ints) -> tuple[Ints, NDArray[np.float64]]:
        """The next token (greedy, the first of equals), and the log-probability of the wanted one, per output.

        outputs: [n, hidden]; wanted: int64 [n], n may be 0. Logits exist for at most 256 rows at a time."""
        best, value = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
        for first in range(0, len(wanted), _LOGIT_ROWS):
            part = slice(first, first + _LOGIT_ROWS)
            b, v = self.operations.log_probabilities(self.head(outputs[part]), wanted[part])
            best.append(b)
            value.append(v)
        return np.concatenate(best), np.concatenate(value)

