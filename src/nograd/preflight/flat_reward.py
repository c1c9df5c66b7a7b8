"""Flat reward (paper §4, T3): does the fitness tell the two sides of a mirrored pair apart?

Counted: the share of pairs with F⁺ = F⁻ exactly, with and without the shaping term.

Signal to noise. For pair k let δ_kt = (F⁺ − F⁻)/2 on task t, d_k its mean over the n tasks looked at and s_k² its
sample variance over them. E d_k² = S² + s²/n, where S² = σ²|∇F|² is the mean square over ε of the difference
without sampling noise, so that, with ⟨·⟩ the mean over pairs,

    S² = max(0, ⟨d_k²⟩ − ⟨s_k²⟩/n),    N² = ⟨s_k²⟩/B,    snr = S/N

at the run's batch of B tasks. What they mean for a step: the estimate g of n pairs in d dimensions, for F linear
within σ, has E g = ∇F and E|g|² = |∇F|² (1 + (d + 1)/n + (d/n)/snr²), so the step's root-mean-square cosine with
the gradient is about

    alignment = (1 + (d + 1)/n + (d/n)/snr²)^(−1/2).

Below snr = 1 the tasks' noise costs more than the directions that were not tried: a larger batch helps more than
more pairs. (S² of four pairs is a rough figure: it tells 0.3 from 3, not 1 from 2.) Where the evaluator tells
nothing of single tasks, whole batches take their place and B = 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nograd.preflight.finding import Finding, Verdict
from nograd.preflight.probe import Probe
from nograd.preflight.setting import Setting

LOW_SNR = 0.5
"""Below it, the tasks' noise costs more than four times what the directions cost that were not tried."""


@dataclass(frozen=True)
class Seen:
    """pairs looked at; flat, flat_reward: those with F⁺ = F⁻, and those with the same reward; silent: whether not
    even a single sample tells any of them apart; snr: S/N."""

    pairs: int
    flat: int
    flat_reward: int
    silent: bool
    snr: float


def flat_reward(setting: Setting, probe: Probe) -> tuple[Finding, ...]:
    """A finding on the whole, which counts the best module's signal, and one per module; `failed` where no
    pair's fitness differs, in any task or batch."""
    modules = [(name, _seen(probe, probe.pairs_of(m))) for m, name in enumerate(setting.settings.modules)]
    best, signal = max(modules, key=lambda row: row[1].snr)
    whole = replace(_seen(probe, np.arange(len(probe.differences))), snr=signal.snr)
    return (
        _finding(
            setting, None, whole, f"at best {_shown(signal.snr)} ({best})" if signal.snr else "0.00 in every module"
        ),
        *(_finding(setting, name, seen, _shown(seen.snr)) for name, seen in modules),
    )


def signal_to_noise(differences: NDArray[np.float64], batch: int) -> float:
    """snr of the module docstring; differences: δ, float64 [pairs, samples]. Pairs with a non-finite fitness do
    not count. 0 where nothing differs or nothing is left."""
    kept = differences[np.isfinite(differences).all(axis=1)]
    samples = differences.shape[1]
    if not kept.any() or samples < 2:
        return 0.0
    variance = float(kept.var(axis=1, ddof=1).mean())
    signal = max(0.0, float((kept.mean(axis=1) ** 2).mean()) - variance / samples)
    return math.sqrt(signal * batch / variance) if variance else math.inf


def alignment(snr: float, pairs: float, dim: int) -> float:
    """Expected cosine of the estimate with the gradient, for `pairs` pairs of a module."""
    if not snr > 0:
        return 0.0
    return float((1 + (dim + 1) / pairs + dim / pairs / snr**2) ** -0.5)


def _seen(probe: Probe, pairs: NDArray[np.int64]) -> Seen:
    differences = probe.differences[pairs]
    return Seen(
        pairs=len(pairs),
        flat=_flat(probe, pairs, "fitness"),
        flat_reward=_flat(probe, pairs, "reward"),
        silent=not differences.any(),
        snr=signal_to_noise(differences, probe.batch),
    )


def _flat(probe: Probe, pairs: NDArray[np.int64], name: str) -> int:
    values = np.array([getattr(evaluation, name) for evaluation in probe.evaluations], np.float64)
    return int((values[1 + 2 * pairs] == values[2 + 2 * pairs]).sum())


def _finding(setting: Setting, module: str | None, seen: Seen, shown: str) -> Finding:
    settings = setting.settings
    share = settings.pairs / settings.count
    cosine = alignment(seen.snr, share, settings.dim)
    verdict, advice = _verdict(setting, seen, module is None)
    sentence = (
        f"F⁺ = F⁻ in {seen.flat} of {seen.pairs} mirrored pairs (by reward alone in {seen.flat_reward}); signal to "
        f"noise of a difference at batch {setting.config.tasks.batch}: {shown}; expected cosine of a step of "
        f"{share:g} pairs with the gradient: {cosine:.2f}"
    )
    figures = {
        "pairs": seen.pairs,
        "flat_fitness": seen.flat / seen.pairs,
        "flat_reward": seen.flat_reward / seen.pairs,
        "signal_to_noise": seen.snr if math.isfinite(seen.snr) else None,
        "alignment": cosine,
    }
    return Finding("flat_reward", module, verdict, sentence, advice, figures)


def _verdict(setting: Setting, seen: Seen, whole: bool) -> tuple[Verdict, str]:
    larger = "raise search.sigma" + (" or subspace.injection" if setting.agent else "")
    unshaped = setting.agent is not None and not setting.config.reward.shaping
    advice = "set reward.shaping above 0, e.g. 0.5" if unshaped else larger
    if seen.silent:
        return "failed", advice
    if seen.flat >= seen.pairs / 2:
        return "warning", advice
    return ("warning", "raise tasks.batch") if whole and seen.snr < LOW_SNR else ("ok", "")


def _shown(snr: float) -> str:
    return f"{snr:.2f}" if math.isfinite(snr) else "no noise seen"
