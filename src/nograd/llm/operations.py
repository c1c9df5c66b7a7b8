"""The two ways to run what lies between matrix products: the CPU kernels, or plain torch on any device."""

from __future__ import annotations

from typing import Any, Protocol

import numba
import numpy as np
import torch
from numpy.typing import NDArray

from nograd.llm import kernels, reference
from nograd.llm.architecture import Architecture
from nograd.llm.batch import Batch, Ints
from nograd.llm.linear import MIN_ROWS
from nograd.llm.tile import multiplies_words


class Operations(Protocol):
    """Per-layer work on one batch; `begin` prepares what all layers share.

    item_tokens: most query tokens of one work item. min_rows: rows below which a batch is padded. words: whether
    keys and values are kept as words of two bfloat16 (`pages.py`)."""

    item_tokens: int
    min_rows: int
    words: bool

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

    def best(self, logits: torch.Tensor) -> Ints:
        """The index of each row's largest logit, the first of equals."""
        ...

    def log_probabilities(self, logits: torch.Tensor, wanted: Ints) -> tuple[Ints, NDArray[np.float64]]:
        """The same, and the log-probability of each row's wanted token."""
        ...


class CpuOperations:
    """The numba kernels of `kernels.py`."""

    item_tokens = kernels.ITEM_TOKENS
    min_rows = MIN_ROWS

    def __init__(
        self, architecture: Architecture, cos: torch.Tensor, sin: torch.Tensor, dtype: torch.dtype = torch.float32
    ) -> None:
        self.heads, self.dim = architecture.heads, architecture.head_dim
        self.eps = np.float32(architecture.norm_eps)
        self.scale = np.float32(architecture.head_dim**-0.5)
        self.cos, self.sin = cos.numpy(), sin.numpy()
        self.words = dtype == torch.bfloat16 and multiplies_words()

    def begin(self, batch: Batch) -> tuple[Batch, NDArray[Any]]:
        shape = (len(batch.tokens), self.heads)
        if self.words:
            return batch, np.empty((*shape, self.dim // 2), dtype=np.uint32)
        return batch, np.empty((*shape, self.dim), dtype=np.float32)

    def rms_norm(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        kernels.rms_norm(_bits(x), weight.numpy(), self.eps, _bits(out))
        return out

    def attention(
        self,
        prepared: tuple[Batch, NDArray[Any]],
        qkv: torch.Tensor,
        q_norm: torch.Tensor,
        k_norm: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
    ) -> torch.Tensor:
        batch, queries = prepared
        stored_keys, stored_values = _bits(keys), _bits(values)
        if self.words:
            stored_keys = stored_keys.view(np.uint32)[..., 0]
        kernels.rotate_and_store(
            _bits(qkv),
            batch.positions,
            self.cos,
            self.sin,
            q_norm.numpy(),
            k_norm.numpy(),
            self.eps,
            self.scale,
            batch.write_start,
            batch.write_page,
            batch.write_slot,
            queries,
            stored_keys,
            stored_values,
        )
        out = qkv.new_empty(qkv.shape[0], self.heads * self.dim)
        out[len(batch.tokens) :] = 0
        kernels.attend(
            queries,
            stored_keys,
            stored_values.view(np.uint32)[..., 0] if self.words else stored_values,
            batch.table,
            batch.positions,
            batch.row,
            batch.item_token,
            batch.item_count,
            batch.item_shared,
            numba.get_num_threads(),
            _bits(out),
        )
        return out

    def best(self, logits: torch.Tensor) -> Ints:
        best = np.empty(len(logits), dtype=np.int64)
        kernels.largest(_bits(logits), best)
        return best

    def log_probabilities(self, logits: torch.Tensor, wanted: Ints) -> tuple[Ints, NDArray[np.float64]]:
        best = np.empty(len(wanted), dtype=np.int64)
        value = np.empty(len(wanted), dtype=np.float64)
        kernels.log_probabilities(_bits(logits), wanted, best, value)
        return best, value


class TorchOperations:
    """Plain torch, on any device."""

    item_tokens = 1 << 30
    min_rows = 1
    words = False

    def __init__(
        self, architecture: Architecture, cos: torch.Tensor, sin: torch.Tensor, dtype: torch.dtype = torch.float32
    ) -> None:
        del dtype
        self.architecture = architecture
        self.cos, self.sin = cos, sin

    def begin(self, batch: Batch) -> dict[str, Any]:
        device = self.cos.device
        counts = np.diff(batch.write_start)
        lengths = np.bincount(batch.row)
        place = np.arange(len(batch.tokens)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        arrays = {
            "positions": batch.positions,
            "owner": np.repeat(np.arange(len(counts)), counts),
            "page": batch.write_page,
            "slot": batch.write_slot,
            "table": batch.table,
            "row": batch.row,
            "place": place,
        }
        prepared: dict[str, Any] = {name: torch.from_numpy(a).to(device) for name, a in arrays.items()}
        prepared["longest"] = int(lengths.max())
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

    def best(self, logits: torch.Tensor) -> Ints:
        return reference.best(logits).cpu().numpy()

    def log_probabilities(self, logits: torch.Tensor, wanted: Ints) -> tuple[Ints, NDArray[np.float64]]:
        best, value = reference.log_probabilities(logits, torch.from_numpy(wanted).to(logits.device))
        return best.cpu().numpy(), value.cpu().numpy()


def _bits(x: torch.Tensor) -> NDArray[Any]:
    """A tensor as a numpy array without a copy; bfloat16 as its bits."""
    if x.dtype == torch.bfloat16:
        x = x.view(torch.uint16)
    return x.numpy()
