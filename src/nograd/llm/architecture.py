"""The decoder layouts that the engine runs, as one dataclass, and the weights in one canonical form."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Architecture:
    """A pre-norm decoder with grouped-query attention, rotary positions and a gated MLP.

    Covers Llama/SmolLM2/Mistral, Qwen2, Qwen3, Gemma (first generation) and Phi-3-style models; every other
    layout is refused by `loading`.

    rope_dims: leading dimensions of a head that are rotated (partial rotary < head_dim).
    norm_offset: 1.0 where the norm multiplies by (1 + weight) (Gemma), else 0.0.
    embedding_scale: factor on the embeddings (Gemma: sqrt(hidden) rounded to the model's dtype), else 1.0.
    activation: "silu", "gelu" or "gelu_tanh".
    qk_norm: RMS norm per head on queries and keys (Qwen3).
    """

    kind: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    max_positions: int
    norm_eps: float
    norm_offset: float
    activation: str
    embedding_scale: float
    rope_dims: int
    qk_norm: bool
    tied_embeddings: bool


@dataclass
class Layer:
    """Weights of one block, each [out, in]; a fused layout is split on loading. Biases may be None."""

    attention_norm: torch.Tensor
    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    o: torch.Tensor
    q_bias: torch.Tensor | None
    k_bias: torch.Tensor | None
    v_bias: torch.Tensor | None
    o_bias: torch.Tensor | None
    q_norm: torch.Tensor | None
    k_norm: torch.Tensor | None
    mlp_norm: torch.Tensor
    gate: torch.Tensor
    up: torch.Tensor
    down: torch.Tensor


@dataclass
class Weights:
    """All weights. embedding: [vocab, hidden]; head: [vocab, hidden], the same tensor where tied.

    inverse_frequencies: float32 [rope_dims / 2]; rope_scale multiplies cos and sin (attention scaling of
    some rope types, else 1.0)."""

    embedding: torch.Tensor
    layers: list[Layer]
    final_norm: torch.Tensor
    head: torch.Tensor
    inverse_frequencies: torch.Tensor
    rope_scale: float
