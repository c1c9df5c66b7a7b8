"""Flat reward: what it counts, and its signal to noise against simulations in closed form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tiny_setting import brief, tiny_setting

from nograd.agent.scheduler import Scheduler
from nograd.preflight.finding import Finding
from nograd.preflight.flat_reward import alignment, flat_reward, signal_to_noise
from nograd.preflight.probe import probe
from nograd.preflight.setting import Setting, build_setting
from nograd.run.config_source import load_config
from nograd.search.es import SearchSettings
from nograd.search.evaluation import Evaluation, GenerationResult
from tiny_models import save_tiny_chat, tiny_scheduler

STAGES = ("planner", "synthesizer")


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Scheduler:
    return tiny_scheduler(save_tiny_chat(tmp_path_factory.mktemp("model") / "tiny"), STAGES)


def found(setting: Setting) -> dict[str | None, Finding]:
    return {finding.module: finding for finding in flat_reward(setting, probe(setting, pairs=2, tasks=3))}


def test_unshaped_reward_of_a_hopeless_model_is_flat(scheduler: Scheduler) -> None:
    """Whatever the pairs write, no answer is right: F⁺ = F⁻ unless gold's log-probability counts (T3)."""
    flat = found(tiny_setting(scheduler, brief, settings=("reward.shaping=0", "search.sigma=1.0")))
    assert {finding.verdict for finding in flat.values()} == {"failed"}
    assert "reward.shaping" in flat[None].advice
    assert (flat[None].figures["flat_fitness"], flat[None].figures["alignment"]) == (1, 0)

    shaped = found(tiny_setting(scheduler, brief, settings=("reward.shaping=0.5", "search.sigma=1.0")))
    assert {shaped[stage].verdict for stage in STAGES} == {"ok"}
    assert (shaped[None].figures["flat_fitness"], shaped[None].figures["flat_reward"]) == (0, 1)


@dataclass(frozen=True)
class Linear:
    """F = a·θ of module 0, seen through noise that depends on the batch alone; module 1 does nothing."""

    noise: float
    modules: tuple[str, ...] = ("works", "idle")
    dim: int = 3

    def evaluate(self, generation: int, thetas: NDArray[np.float32]) -> GenerationResult:
        noise = self.noise * np.random.default_rng(generation).normal(size=self.dim)
        values = thetas[:, 0] @ (np.array([1.0, -2.0, 0.5]) + noise)
        return GenerationResult(tuple(Evaluation(float(v), 0.5, float(v)) for v in values))

    def bottleneck(self, generation: int) -> int | None:
        del generation
        return None


def black_box(noise: float) -> Setting:
    config = load_config(None, ["evaluator=synthetic"])
    return Setting(config, Linear(noise), SearchSettings(("works", "idle"), 3, 1))


def test_any_evaluator_will_do() -> None:
    """Of a black box it is the batches that tell signal from noise."""
    clean, noisy = found(black_box(0.0)), found(black_box(30.0))
    assert [clean[m].verdict for m in (None, "works", "idle")] == ["warning", "ok", "failed"]
    assert "2 of 4" in clean[None].sentence
    assert clean["works"].figures["signal_to_noise"] is None, "no noise at all"
    assert float(noisy["works"].figures["signal_to_noise"] or 0) < 2
    assert "injection" not in clean["idle"].advice, "a black box has none"


def test_the_synthetic_world() -> None:
    setting = build_setting(load_config(None, ["evaluator=synthetic", "search.sigma=1e-9"]))
    assert {finding.verdict for finding in found(setting).values()} == {"failed"}
    setting = build_setting(load_config(None, ["evaluator=synthetic", "search.sigma=1.0", "tasks.batch=64"]))
    assert found(setting)[None].verdict == "ok"


@pytest.mark.parametrize(("signal", "noise", "batch"), [(1.0, 2.0, 16), (0.5, 0.5, 4), (3.0, 1.0, 1)])
def test_signal_to_noise_of_simulated_pairs(signal: float, noise: float, batch: int) -> None:
    """δ_kt = S z_k + s e_kt: the estimate finds S / (s / √B) whatever the number of samples it is based on."""
    draw = np.random.default_rng(0)
    for samples in (4, 8, 40):
        shape = (4000, samples)
        differences = signal * draw.normal(size=(4000, 1)) + noise * draw.normal(size=shape)
        assert signal_to_noise(differences, batch) == pytest.approx(signal / noise * batch**0.5, rel=0.08)


@given(st.integers(0, 99), st.floats(1e-6, 1e6), st.integers(1, 64))
@settings(deadline=None, max_examples=40)
def test_signal_to_noise_has_no_unit(seed: int, scale: float, batch: int) -> None:
    differences = np.random.default_rng(seed).normal(size=(4, 6))
    alone = signal_to_noise(differences, 1)
    assert signal_to_noise(scale * differences, batch) == pytest.approx(alone * batch**0.5, rel=1e-6)
    broken = np.vstack([differences, np.full((1, 6), np.nan)])
    assert signal_to_noise(broken, 1) == alone


def test_signal_to_noise_of_nothing() -> None:
    assert signal_to_noise(np.zeros((4, 8)), 16) == 0
    assert signal_to_noise(np.full((4, 8), np.nan), 16) == 0
    assert signal_to_noise(np.ones((4, 1)), 16) == 0, "one sample has no variance"
    assert signal_to_noise(np.ones((4, 8)), 16) == np.inf


@pytest.mark.parametrize(("pairs", "dim", "snr"), [(1, 32, 1.0), (4, 8, 0.5), (16, 8, np.inf)])
def test_alignment_is_that_of_simulated_estimates(pairs: int, dim: int, snr: float) -> None:
    """Root of |∇F|² / E|g|² over many estimates of the step rule."""
    draw = np.random.default_rng(1)
    gradient = np.eye(dim)[0]
    epsilon = draw.normal(size=(20_000, pairs, dim))
    differences = epsilon @ gradient + draw.normal(size=(20_000, pairs)) / snr
    estimates = (differences[..., None] * epsilon).mean(axis=1)
    measured = 1 / np.sqrt((estimates**2).sum(axis=1).mean())
    assert alignment(snr, pairs, dim) == pytest.approx(measured, rel=0.03)
    assert alignment(0.0, pairs, dim) == 0
