"""The answer does not depend on company (DESIGN §3.4): equal tokens and log-probability bits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nograd.llm.chat import Message
from nograd.llm.delta import Perturbation
from nograd.llm.engine import Engine
from nograd.llm.linear import can_pack
from nograd.llm.loading import load_model
from nograd.llm.requests import CompletionRequest, Request, Result, Score, ScoreRequest
from nograd.llm.subspace import SubspaceSpec, build_subspace
from nograd.llm.transformer import Transformer
from tiny_models import MODULES, Tiny, thetas, tiny

DTYPES = [torch.float32, torch.bfloat16]
LAYOUTS: dict[str, dict[str, Any]] = {
    "llama": {},
    "qwen3": {"model_type": "qwen3", "head_dim": 64},
    "gemma": {"model_type": "gemma"},
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, torch.dtype], Tiny]:
    return {
        (layout, dtype): tiny(tmp_path_factory.mktemp("model"), settings, dtype)
        for layout, settings in LAYOUTS.items()
        for dtype in DTYPES
    }


@cache
def beginnings() -> list[tuple[int, ...]]:
    draw = np.random.default_rng(0)
    return [tuple(draw.integers(3, 61, n).tolist()) for n in (0, 20, 45, 100)]


TOKENS = st.lists(st.integers(3, 60), min_size=1, max_size=40).map(tuple)


@st.composite
def request_lists(draw: st.DrawFn, size: int = 4) -> list[Request]:
    """Completions and scores of several stages and θ, with common beginnings of any length."""
    choices = thetas(3, size, seed=2)
    found: list[Request] = []
    for _ in range(draw(st.integers(2, 9))):
        beginning = draw(st.sampled_from(beginnings()))
        prompt = beginning[: draw(st.integers(0, len(beginning)))] + draw(TOKENS)
        module, theta = draw(st.integers(0, MODULES - 1)), draw(st.sampled_from(choices))
        if draw(st.booleans()):
            found.append(CompletionRequest(module, theta, prompt, draw(st.integers(0, 6))))
        else:
            found.append(ScoreRequest(module, theta, prompt, draw(TOKENS)[:8]))
    return found


def bits(results: Sequence[Result]) -> list[object]:
    """Results so that equal means: the same bits."""
    return [r.log_probabilities.tobytes() if isinstance(r, Score) else r for r in results]


def in_parts(engine: Engine, requests: Sequence[Request], size: int, keep: bool = False) -> list[object]:
    """The requests in batches of this size; `keep`: with the prefixes of the batches before."""
    found: list[object] = []
    for first in range(0, len(requests), size):
        if not keep:
            engine.forget()
        found += bits(engine.run(requests[first : first + size]))
    return found


def check(engine: Engine, requests: Sequence[Request], order: Sequence[int], size: int) -> None:
    """Alone, together, shuffled, in batches of another size, with and without cached prefixes."""
    alone = in_parts(engine, requests, 1)
    assert in_parts(engine, requests, len(requests)) == alone
    shuffled = [requests[i] for i in order]
    expected = [alone[i] for i in order]
    assert in_parts(engine, shuffled, size) == expected, "each batch on its own"
    assert bits(engine.run(shuffled)) == expected, "after what the last batch left in the cache"


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
@settings(deadline=None, max_examples=5, suppress_health_check=list(HealthCheck))
@given(requests=request_lists(), data=st.data())
def test_any_company(
    layout: str,
    dtype: torch.dtype,
    models: dict[tuple[str, torch.dtype], Tiny],
    requests: list[Request],
    data: st.DataObject,
) -> None:
    model = models[layout, dtype]
    if not can_pack(model.weights.layers[0].q):
        pytest.skip(f"no packed {dtype} products here")
    order = data.draw(st.permutations(range(len(requests))))
    engine = model.engine(model.subspace(), token_budget=20_000)
    check(engine, requests, order, data.draw(st.integers(1, 7)))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_crowd(dtype: torch.dtype, models: dict[tuple[str, torch.dtype], Tiny]) -> None:
    """Many rows at once, beyond one block of logits and one pass, give what a single row gives."""
    model = models["llama", dtype]
    if not can_pack(model.weights.layers[0].q):
        pytest.skip(f"no packed {dtype} products here")
    draw = np.random.default_rng(1)
    choices = thetas(3, 4, seed=2)
    requests: list[Request] = [
        CompletionRequest(i % MODULES, choices[i % 3], tuple(draw.integers(3, 61, 4 + i % 9).tolist()), 4)
        for i in range(300)
    ]
    requests += [
        ScoreRequest(r.module, r.theta, r.prompt, tuple(draw.integers(3, 61, 5).tolist()))
        for r in requests[::6]
    ]
    engine = model.engine(model.subspace(), token_budget=80_000, pass_tokens=700)
    together = in_parts(engine, requests, len(requests))
    some = list(range(0, len(requests), 13))
    assert in_parts(engine, [requests[i] for i in some], 1) == [together[i] for i in some]


@pytest.mark.real
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_embedded_model(dtype: str) -> None:
    model = load_model("smollm2-135m", dtype=dtype, device="cpu")  # type: ignore[arg-type]
    if not can_pack(model.weights.layers[0].q):
        pytest.skip(f"no packed {dtype} products here")
    spec = SubspaceSpec(4, 8, "random", strength=0.5)
    subspace = build_subspace(model.architecture, model.weights, spec, model.fingerprint, None)
    perturbation = Perturbation(model.architecture, subspace, model.device, model.dtype)
    engine = Engine(Transformer(model.architecture, model.weights), perturbation, model.chat.eos_ids, 8192)
    choices = thetas(2, 8)
    requests: list[Request] = []
    for i, question in enumerate(("What is 3 + 4?", "Name the capital of France.")):
        chat = [Message("system", "Answer in one word."), Message("user", question)]
        prompt = tuple(model.chat.encode_chat(chat))
        target = tuple(model.chat.encode_text("Paris is the capital"))
        requests.append(CompletionRequest(i, choices[i % 2], prompt, 4))
        requests.append(ScoreRequest(3 - i, choices[1], prompt, target))
    check(engine, requests, [1, 3, 0, 2], 3)
