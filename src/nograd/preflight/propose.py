"""Proposes an injection strength c and a σ: perturbations that can be seen, steps that the model survives.

The model sees φ = c·θ only, so c and σ are not independent:
- a perturbation's effect is set by c·σ (the delta of a weight is c · θ in units of its singular values);
- the longest step is c·clip, for the clip is in units of θ;
- an unclipped step, in φ, is c · lr · ΔF / 2σ · ε = c² · lr · ΔF / 2(c·σ) · ε.
(c, σ, lr, clip) and (a·c, σ/a, lr/a², clip/a) are one and the same search. With lr and clip as they are, c·σ is
therefore searched first, from its present value up or down by fours until perturbations are healthy (see `rung`);
then, at most that much above its present value, the largest c whose steps of length clip and 3 clip wreck
nothing (see `divergence`). σ makes up the rest. Where all is well, nothing changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from nograd.errors import ConfigError
from nograd.preflight.divergence import Seen, directions, lengths, look
from nograd.preflight.finding import Finding
from nograd.preflight.probe import Probe
from nograd.preflight.rung import Rung, rung
from nograd.preflight.setting import Setting

RATIO, LONGEST = 4.0, 6
"""From one rung to the next; most rungs that are tried."""


@dataclass(frozen=True)
class Stride:
    """Steps of length clip and 3 clip with c multiplied by `factor`."""

    factor: float
    seen: Seen

    @property
    def safe(self) -> bool:
        before, *after = self.seen
        return not any(behaviour.wrecked(before) for behaviour in after)


@dataclass(frozen=True)
class Proposed:
    """injection, sigma: what is proposed. rungs, strides: what was tried, in order. finding: the same in words,
    a warning where nothing that was tried is healthy and safe."""

    injection: float
    sigma: float
    rungs: tuple[Rung, ...]
    strides: tuple[Stride, ...]
    finding: Finding


def propose(setting: Setting, probe: Probe) -> Proposed:
    """Raises ConfigError where there is no language model and so no injection."""
    if setting.agent is None:
        raise ConfigError(
            f"the evaluator {setting.config.evaluator!r} has no injection strength to propose; leave out --propose"
        )
    rungs = climb(lambda factor: rung(probe, factor))
    chosen = best(rungs)
    strides = _strides(setting, probe, chosen.factor)
    c, sigma = setting.config.subspace.injection, setting.settings.sigma
    taken = strides[-1].factor
    injection, sigma = _rounded(c * taken), _rounded(sigma * chosen.factor / taken)
    return Proposed(injection, sigma, rungs, strides, _finding(setting, chosen, strides[-1], injection, sigma))


def climb(look_at: Callable[[float], Rung]) -> tuple[Rung, ...]:
    """Up while perturbations are weak, or down while they are strong, until they are healthy; where that steps
    over the healthy ones, a last one between."""
    rungs = [look_at(1.0)]
    first = rungs[0].state
    ratio = RATIO if first == "weak" else 1 / RATIO
    while rungs[-1].state == first != "healthy" and len(rungs) < LONGEST:
        rungs.append(look_at(rungs[-1].factor * ratio))
    if rungs[-1].state not in (first, "healthy"):
        rungs.append(look_at(math.sqrt(rungs[-1].factor * rungs[-2].factor)))
    return tuple(rungs)


def best(rungs: tuple[Rung, ...]) -> Rung:
    """The healthy one; else the largest that is not too strong; else the smallest."""
    healthy = [r for r in rungs if r.state == "healthy"]
    weak = [r for r in rungs if r.state == "weak"]
    if healthy:
        return healthy[0]
    return max(weak, key=lambda r: r.factor) if weak else min(rungs, key=lambda r: r.factor)


def _strides(setting: Setting, probe: Probe, factor: float) -> tuple[Stride, ...]:
    """From this factor of c down, until a step is safe."""
    steps = directions(probe) * lengths(setting, probe)[:, None]
    strides: list[Stride] = []
    while not strides or (not strides[-1].safe and len(strides) < LONGEST):
        (seen,) = look(setting, probe, factor * steps[None])
        strides.append(Stride(factor, seen))
        factor /= RATIO
    return tuple(strides)


def _finding(setting: Setting, chosen: Rung, stride: Stride, injection: float, sigma: float) -> Finding:
    figures: dict[str, float | int | str | None] = {
        "injection": injection,
        "sigma": sigma,
        "perturbations": chosen.state,
        "steps_safe": int(stride.safe),
    }
    set_to = f"subspace.injection = {injection:g} and search.sigma = {sigma:g}"
    if chosen.state == "healthy" and stride.safe:
        same = chosen.factor == stride.factor == 1
        sentence = f"{set_to}: perturbations flip tokens in every module and steps wreck nothing"
        advice = "" if same else f"--set subspace.injection={injection:g} --set search.sigma={sigma:g}"
        return Finding("propose", None, "ok", sentence, advice, figures)
    names = zip(setting.settings.modules, chosen.effects, strict=True)
    wrong = ", ".join(
        f"{name} is still {'wrecked' if e.strong else 'inert'}" for name, e in names if e.weak or e.strong
    )
    unsafe = "" if stride.safe else "steps of the clip's length still wreck behaviour"
    sentence = f"nothing that was tried is healthy; nearest: {set_to} ({'; '.join(filter(None, (wrong, unsafe)))})"
    return Finding("propose", None, "warning", sentence, "take another subspace.basis or search.clip", figures)


def _rounded(value: float) -> float:
    """To three significant digits."""
    return float(f"{value:.3g}")
