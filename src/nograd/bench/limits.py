"""The machine's limits at the model's shapes: what no engine on it can pass."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter

import torch
from torch.nn import functional

from nograd.llm.architecture import Architecture
from nograd.llm.panels import frozen

_ROWS = 1024
_COPIES = 12


def shapes(architecture: Architecture) -> list[tuple[int, int]]:
    """(out, in) of the products of one block."""
    a = architecture
    qkv = (a.heads + 2 * a.kv_heads) * a.head_dim
    return [
        (qkv, a.hidden),
        (a.hidden, a.heads * a.head_dim),
        (a.intermediate, a.hidden),
        (a.intermediate, a.hidden),
        (a.hidden, a.intermediate),
    ]


def flops_per_token(architecture: Architecture) -> int:
    """Floating-point operations of all blocks' products for one token (attention and deltas not counted)."""
    return architecture.layers * sum(2 * out * into for out, into in shapes(architecture))


def flops_per_output(architecture: Architecture) -> int:
    """Floating-point operations of the output head for one token."""
    return 2 * architecture.vocab * architecture.hidden


@torch.inference_mode()
def product_rate(architecture: Architecture, dtype: torch.dtype, device: torch.device, *, packed: bool) -> float:
    """Floating-point operations per second of matrix products at the model's shapes with 1,024 rows.

    packed: with weights laid out for the machine (`llm.linear`, `llm.panels`), else torch's plain call. Weights come
    from memory, as in the model: each shape has 12 copies. Median of 5 rounds."""
    work: list[tuple[Callable[[torch.Tensor], torch.Tensor], torch.Tensor]] = []
    flops = 0
    for out, into in shapes(architecture):
        x = torch.randn(_ROWS, into, device=device).to(dtype)
        for _ in range(_COPIES):
            weight = torch.randn(out, into, device=device).to(dtype)
            work.append((frozen(weight) if packed else _plain(weight), x))
            flops += 2 * _ROWS * out * into
    seconds = []
    for _ in range(6):
        synchronise(device)
        start = perf_counter()
        for product, x in work:
            product(x)
        synchronise(device)
        seconds.append(perf_counter() - start)
    return flops / median(seconds[1:])


def synchronise(device: torch.device) -> None:
    """Wait for the device."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _plain(weight: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: functional.linear(x, weight)
