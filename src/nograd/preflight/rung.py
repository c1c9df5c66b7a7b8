"""What perturbations of one size do to every module's own outputs: too weak to see, healthy, or too strong."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nograd.llm.requests import Completion, CompletionRequest, Request, RequestEngine, Result, Score
from nograd.preflight.behaviour import LOOPING, UNLIKELY, loops
from nograd.preflight.flips import both_sides, flips
from nograd.preflight.probe import Probe

FLIPPED = 0.5
"""Share of its mirrored pairs that must flip a token, in every module."""
PAIRS = 2


@dataclass(frozen=True)
class Effect:
    """Of one module. flipped: share of its pairs that flip a token; outputs: share of (pair, request) that are
    flipped; gold, looping: change of the gold targets' mean log-probability per token, and of the share of
    completions that end in circles, against θ = 0. nan where there is nothing to count."""

    flipped: float
    outputs: float
    gold: float
    looping: float

    @property
    def weak(self) -> bool:
        return self.flipped < FLIPPED

    @property
    def strong(self) -> bool:
        return self.gold <= -UNLIKELY or self.looping >= LOOPING


@dataclass(frozen=True)
class Rung:
    """factor: of c·σ as configured. effects: by module, in order."""

    factor: float
    effects: tuple[Effect, ...]

    @property
    def state(self) -> str:
        """ "strong" if any module is wrecked, else "weak" if any hardly moves, else "healthy"."""
        if any(effect.strong for effect in self.effects):
            return "strong"
        return "weak" if any(effect.weak for effect in self.effects) else "healthy"


def rung(probe: Probe, factor: float) -> Rung:
    """Perturb every module by ± factor · σ · ε, for its first pairs, on the center's own requests.

    θ is scaled in place of c: the delta is linear in c · θ, so this is c · σ scaled, up to rounding."""
    assert probe.listening is not None
    count = probe.proposal.thetas.shape[1]
    return Rung(factor, tuple(_effect(probe, module, factor) for module in range(count)))


def _effect(probe: Probe, module: int, factor: float) -> Effect:
    assert probe.listening is not None
    engine, center = probe.listening.memory, [r for r in probe.listening.center if r.module == module]
    deltas = np.float32(factor) * probe.proposal.thetas[1 + 2 * probe.pairs_of(module)[:PAIRS], module]
    flipped = flips(engine, [r for r in center if isinstance(r, CompletionRequest)], deltas)
    before, after = _look(engine, center), _look(engine, both_sides(center, deltas))
    return Effect(
        flipped=float(flipped.any(axis=1).mean()) if flipped.size else math.nan,
        outputs=float(flipped.mean()) if flipped.size else math.nan,
        gold=after[0] - before[0],
        looping=after[1] - before[1],
    )


def _look(engine: RequestEngine, requests: list[Request]) -> tuple[float, float]:
    """Mean gold log-probability, and share of completions in circles."""
    answers: list[Result] = engine.run(requests)
    gold = [answer.mean for answer in answers if isinstance(answer, Score)]
    circles = [loops(answer) for answer in answers if isinstance(answer, Completion)]
    return _mean(np.array(gold)), _mean(np.array(circles))


def _mean(values: NDArray[np.generic]) -> float:
    return float(values.mean()) if values.size else math.nan
