"""The two ways to run what lies between matrix products: the CPU kernels, or plain torch on any device."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from nograd.llm import kernels, reference
from nograd.llm.architecture import Architecture
from nograd.llm.batch import Batch, Ints
from nograd.llm.linear import MIN_ROWS


class Operations(Protocol):
    """Per-layer work on one batch; `begin` prepares what all layers share.

    item_tokens: most query tokens of one work item. min_rows: rows below which a batch is padded."""

    item_tokens: int
    min_rows: int

    def begin(self, batch: Batch) -> Any: ...

    def rms_norm(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor: ...

    def attention(
        self,
        prepared: Any,
        qkv: torch.Tensor,
        q_norm: torch.Tensor,
        k_norm: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
    ) -> torch.Tensor:
        """Rotate, store keys and values, attend. qkv: [tokens, (heads + 2 kv_heads) · dim] -> [tokens, heads · dim]."""
        ...

    def log_probabilities(self, logits: torch.Tensor, wanted: Ints) -> tuple[Ints, NDArray[np.float64]]: ...


class CpuOperations:
    """The numba kernels of `kernels.py`."""

    item_tokens = kernels.ITEM_TOKENS
    min_rows = MIN_ROWS

    def __init__(self, architecture: Architecture, cos: torch.Tensor, sin: torch.Tensor) -> None:
        self.heads, self.dim = architecture.heads, architecture.head_dim
        self.eps = np.float32(architecture.norm_eps)
        self.scale = np.float32(architecture.head_dim**-0.5)
        self.cos, self.sin = cos.numpy(), sin.numpy()

    def begin(self, batch: Batch) -> tuple[Batch, NDArray[np.float32]]:
        return batch, np.empty((len(batch.tokens), self.heads, self.dim), dtype=np.float32)

    def rms_norm(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        kernels.rms_norm(_bits(x), weight.numpy(), self.eps, _bits(out))
        return out

    def attention(
        self,
        prepared: tuple[Batch, NDArray[np.float32]],
        qkv: torch.Tensor,
        q_norm: torch.Tensor,
        k_norm: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
    ) -> torch.Tensor:
        batch, queries = prepared
        pages = keys.numpy(), values.numpy()
        kernels.rotate_and_store(
            _bits(qkv),
            batch.positions,
            self.cos,
            self.sin,
            q_norm.numpy(),
            k_norm.numpy(),
            self.eps,
            batch.write_start,
            batch.write_page,
            batch.write_slot,
            queries,
            *pages,
        )
        out = qkv.new_zeros(qkv.shape[0], self.heads * self.dim)
        kernels.attend(
            queries,
            *pages,
            batch.table,
            batch.item_token,
            batch.item_count,
            batch.item_position,
            batch.item_row,
            self.scale,
            _bits(out),
        )
        return out

    def log_probabilities(self, logits: torch.Tensor, wanted: Ints) -> tuple[Ints, NDArray[np.float64]]:
        best = np.empty(len(wanted), dtype=np.int64)
        value = np.empty(len(wanted), dtype=np.float64)
        kernels.log_probabilities(_bits(logits), wanted, best, value)
        return best, value


class TorchOperations:
    """Plain torch, on any device."""

    item_tokens = 1 << 30
    min_rows = 1

    def __init__(self, architecture: Architecture, cos: torch.Tensor, sin: torch.Tensor) -> None:
        self.architecture = architecture
        self.cos, self.sin = cos, sin

    def begin(self, batch: Batch) -> dict[str, Any]:
        device = self.cos.device
        counts = np.diff(batch.write_start)
        place = np.arange(len(batch.tokens)) - np.repeat(batch.item_token, batch.item_count)
        arrays = {
            "positions": batch.positions,
            "owner": np.repeat(np.arange(len(counts)), counts),
            "page": batch.write_page,
            "slot": batch.write_slot,
            "table": batch.table,
            "row": np.repeat(batch.item_row, batch.item_count),
            "place": place,
        }
        prepared: dict[str, Any] = {name: torch.from_numpy(a).to(device) for name, a in arrays.items()}
        prepared["longest"] = int(batch.item_count.max())
        return prepared

    def rms_norm(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return reference.rms_norm(x, weight, self.architecture.norm_eps)

    def attention(
        self,
        prepared: dict[str, Any],
        qkv: torch.Tensor,
        q_norm: torch.Tensor,
        k_norm: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
    ) -> torch.Tensor:
        a = self.architecture
        heads = qkv.view(-1, a.heads + 2 * a.kv_heads, a.head_dim)
        q, k = heads[:, : a.heads].float(), heads[:, a.heads : a.heads + a.kv_heads].float()
        v = heads[:, a.heads + a.kv_heads :]
        if q_norm.numel():
            q = reference.rms_norm(q, q_norm, a.norm_eps)
            k = reference.rms_norm(k, k_norm, a.norm_eps)
        cos, sin = self.cos[prepared["positions"]], self.sin[prepared["positions"]]
        q, k = reference.rotate(q, cos, sin), reference.rotate(k, cos, sin)
        reference.store(k, v, prepared["owner"], prepared["page"], prepared["slot"], keys, values)
        found = reference.attend(
            q.to(keys.dtype),
            keys,
            values,
            prepared["table"],
            prepared["positions"],
            prepared["row"],
            prepared["place"],
            prepared["longest"],
            a.head_dim**-0.5,
        )
        return found.reshape(qkv.shape[0], a.heads * a.head_dim).to(qkv.dtype)

    def log_probabilities(self, logits: torch.Tensor, wanted: Ints) -> tuple[Ints, NDArray[np.float64]]:
        best, value = reference.log_probabilities(logits, torch.from_numpy(wanted).to(logits.device))
        return best.cpu().numpy(), value.cpu().numpy()


def _bits(x: torch.Tensor) -> NDArray[Any]:
    """A tensor as a numpy array without a copy; bfloat16 as its bits."""
    if x.dtype == torch.bfloat16:
        x = x.view(torch.uint16)
    return x.numpy()
