"""The per-row delta against transformers' model with the same delta merged into its weights."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nograd.llm.engine import Engine
from nograd.llm.requests import CompletionRequest, ScoreRequest
from nograd.llm.subspace import SubspaceSpec
from nograd.llm.subspace_choices import BINDINGS, KINDS
from tiny_models import LAYOUTS, MODULES, SPEC, Tiny, merged, plain_score, thetas, tiny

PROMPT = tuple(range(3, 40))
TARGET = (50, 4, 4, 17, 60)


def tokens(seed: int, count: int) -> tuple[int, ...]:
    return tuple(np.random.default_rng(seed).integers(3, 61, count).tolist())


def check_mixed_batch(model: Tiny, spec: SubspaceSpec, *, plain: bool = False) -> None:
    """Different θ, modules and prompts in one batch: each row is its own merged model's."""
    subspace = model.subspace(spec)
    engine = model.engine(subspace, plain=plain)
    choices = thetas(3, subspace.size, seed=1)
    requests = [
        ScoreRequest(module, choices[i % 3], tokens(i, 5 + 11 * i), tokens(100 + i, 6))
        for i, module in enumerate((0, 1, 2, 1, 2, 0))
    ]
    found = engine.run(requests)
    for request, score in zip(requests, found, strict=True):
        oracle = merged(model.hub, model.architecture, subspace, request.module, request.theta)
        expected = plain_score(oracle, request)
        assert np.abs(score.log_probabilities - expected).max() < 1e-4  # type: ignore[union-attr]
        if request.theta != choices[0]:
            assert np.abs(expected - plain_score(model.hub, request)).max() > 1e-2, "θ must matter"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout(layout: str, tmp_path: Path) -> None:
    check_mixed_batch(tiny(tmp_path, LAYOUTS[layout]), SPEC)


@pytest.mark.parametrize("layout", ["llama", "phi3 partial", "qwen3", "gemma"])
def test_the_plain_operations(layout: str, tmp_path: Path) -> None:
    check_mixed_batch(tiny(tmp_path, LAYOUTS[layout]), SPEC, plain=True)


@pytest.mark.parametrize("per_layer", [False, True], ids=["tied", "per_layer"])
@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_basis(kind: Any, binding: Any, per_layer: bool, tmp_path: Path) -> None:
    spec = SubspaceSpec(MODULES, 5, kind, binding, per_layer, strength=1.3 if kind == "svd" else 3.0, seed=4)
    check_mixed_batch(tiny(tmp_path, LAYOUTS["llama head_dim"]), spec)


def test_per_layer_coefficients_act_in_their_own_layer(tmp_path: Path) -> None:
    model = tiny(tmp_path, {})
    subspace = model.subspace(SubspaceSpec(MODULES, 4, per_layer=True))
    theta = np.arange(1, 9, dtype=np.float32)
    tied = model.subspace(SubspaceSpec(MODULES, 4))
    for layer, own in enumerate((theta[:4], theta[4:])):
        for target in ("q", "v", "o"):
            assert torch.equal(subspace.delta(theta, 1, layer, target), tied.delta(own, 1, layer, target))


@pytest.fixture
def model(tmp_path: Path) -> Tiny:
    return tiny(tmp_path, {})


def test_zero_theta_is_the_untouched_model_bit_for_bit(model: Tiny) -> None:
    subspace = model.subspace()
    zero = thetas(1, subspace.size)[0]
    requests = [ScoreRequest(m, zero, PROMPT[m:], TARGET) for m in range(MODULES)]
    for mine, plain in zip(
        model.engine(subspace).run(requests), model.engine(None).run(requests), strict=True
    ):
        assert np.array_equal(mine.log_probabilities, plain.log_probabilities)  # type: ignore[union-attr]


def test_a_theta_acts_through_its_own_module_only(model: Tiny) -> None:
    subspace = model.subspace()
    theta = thetas(2, subspace.size)[1]
    scores = model.engine(subspace).run([ScoreRequest(m, theta, PROMPT, TARGET) for m in range(MODULES)])
    assert len({score.log_probabilities.tobytes() for score in scores}) == MODULES  # type: ignore[union-attr]


def all_weights(model: Tiny) -> list[torch.Tensor]:
    layers = [t for layer in model.weights.layers for t in vars(layer).values() if t is not None]
    return [model.weights.embedding, model.weights.head, model.weights.final_norm, *layers]


def resident(engine: Engine) -> list[torch.Tensor]:
    """What the engine multiplies with, packed or not."""
    blocks = engine.transformer.blocks
    return [b.qkv(torch.eye(48)) for b in blocks] + [b.gated(torch.eye(48)) for b in blocks]


def failing_at(call: int, engine: Engine) -> Callable[..., torch.Tensor]:
    """The engine's attention, but the call of this number raises."""
    attention, number = engine.transformer.operations.attention, itertools.count(1)

    def attend(*arguments: Any) -> torch.Tensor:
        if next(number) == call:
            raise MemoryError("injected")
        return attention(*arguments)

    return attend


@pytest.mark.parametrize("plain", [False, True])
def test_nothing_stays_behind(plain: bool, model: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not after a run, and not after an exception in the middle of a pass."""
    subspace = model.subspace()
    engine = model.engine(subspace, plain=plain)
    before, packed = [t.clone() for t in all_weights(model)], resident(engine)
    zero, theta = thetas(2, subspace.size)
    control = ScoreRequest(0, zero, PROMPT, TARGET)
    requests = [control, ScoreRequest(0, theta, PROMPT, TARGET), CompletionRequest(1, theta, PROMPT, 9)]
    expected = engine.run(requests)
    for at in (1, 2, 3, 8):
        engine.forget()
        with monkeypatch.context() as patch:
            patch.setattr(engine.transformer.operations, "attention", failing_at(at, engine))
            with pytest.raises(MemoryError, match="injected"):
                engine.run(requests)
        assert engine.pool.available == engine.pool.capacity
        again = engine.run(requests)
        for mine, first in zip(again[:2], expected[:2], strict=True):
            assert np.array_equal(mine.log_probabilities, first.log_probabilities)  # type: ignore[union-attr]
        assert again[2] == expected[2]
    for kept, now in zip(before, all_weights(model), strict=True):
        assert torch.equal(kept, now)
    for kept, now in zip(packed, resident(engine), strict=True):
        assert torch.equal(kept, now)
