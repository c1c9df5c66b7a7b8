"""The operations of `kernels.py` in plain torch, for any device; the CPU kernels are tested against them."""

from __future__ import annotations

import torch
from torch.nn import functional

from nograd.llm.kernels import PAGE


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """x / rms(x) ∘ weight over the last axis, float32 inside; weight float32."""
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps) * weight).to(x.dtype)


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotary positions in half-split pairs. x: float32 [tokens, heads, dim]; cos, sin: [tokens, rotated / 2]."""
    half = cos.shape[-1]
    first, second, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    c, s = cos[:, None], sin[:, None]
    return torch.cat((first * c - second * s, second * c + first * s, rest), dim=-1)


def store(
    k: torch.Tensor,
    v: torch.Tensor,
    owner: torch.Tensor,
    page: torch.Tensor,
    slot: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
) -> None:
    """Write k and v [tokens, kv_heads, dim] of token owner[w] to (page[w], slot[w]) of one layer's pages."""
    keys[page, :, :, slot] = k[owner].to(keys.dtype)
    values[page, :, slot] = v[owner].to(values.dtype)


def attend(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    table: torch.Tensor,
    position: torch.Tensor,
    row: torch.Tensor,
    place: torch.Tensor,
    longest: int,
    scale: float,
) -> torch.Tensor:
    """Causal attention over paged keys and values.

    queries: [tokens, heads, dim]; table: int64 [rows, pages]; position, row, place: int64 [tokens], a token's
    position, its row and its place among the row's tokens, of which there are at most `longest`. Returns
    [tokens, heads, dim] in the queries' dtype. Slots after a row's last position are cleared first: what
    another sequence left there may be NaN, and no mask keeps 0 · NaN out of a sum.
    """
    tokens, heads, dim = queries.shape
    kv_heads = keys.shape[1]
    rows, pages = table.shape
    asked = queries.new_zeros(rows, longest, heads, dim)
    asked[row, place] = queries
    limit = torch.zeros(rows, longest, dtype=torch.int64, device=queries.device)
    limit[row, place] = position
    visible = torch.arange(pages * PAGE, device=queries.device) <= limit[:, :, None]
    unused = ~visible.any(dim=1)[:, None, :, None]
    k = keys[table].permute(0, 2, 1, 4, 3).reshape(rows, kv_heads, pages * PAGE, dim)
    v = values[table].permute(0, 2, 1, 3, 4).reshape(rows, kv_heads, pages * PAGE, dim)
    k, v = k.masked_fill(unused, 0), v.masked_fill(unused, 0)
    found = functional.scaled_dot_product_attention(
        asked.transpose(1, 2),
        k.repeat_interleave(heads // kv_heads, dim=1).to(asked.dtype),
        v.repeat_interleave(heads // kv_heads, dim=1).to(asked.dtype),
        attn_mask=visible[:, None],
        scale=scale,
    )
    return found.transpose(1, 2)[row, place].reshape(tokens, heads, dim)


def best(logits: torch.Tensor) -> torch.Tensor:
    """Per row the index of the first largest logit. logits: [rows, vocab] -> int64 [rows]."""
    return (logits == logits.max(dim=1, keepdim=True).values).to(torch.int8).argmax(dim=1)


def log_probabilities(logits: torch.Tensor, wanted: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Per row the index of the first largest logit, and the log-probability of `wanted`. logits: [rows, vocab]."""
    wide = logits.float()
    chosen = wide.gather(1, wanted[:, None])[:, 0].double()
    return best(wide), chosen - wide.double().logsumexp(dim=1)
