"""Divergence (paper §4, T2): does a step as long as the clip allows wreck the agent's behaviour?

The raw step norm is that of a real ask and tell at θ = 0. Behaviour is looked at on other tasks, at θ = L · ĝ
and 3 L · ĝ of all modules together, and of each alone where that wrecks something: ĝ is the direction estimated
from all of the probe's pairs (the first pair's ε where they show no difference), L the module's clip. Without a
clip (inf), L is the raw norm, and the finding is a warning at least: nothing then bounds the steps once fitness
differences explode.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nograd.preflight.behaviour import Behaviour, behaviours
from nograd.preflight.finding import Finding, Verdict
from nograd.preflight.probe import Probe
from nograd.preflight.setting import Setting
from nograd.search.step import norms

FAR = 3
TIGHT = 2
"""A clip that every raw step exceeds this many times removes what tells a large difference from a small one; at
0.125 against 0.5 that cost the paper 0.072 AUC (§5.13)."""
LOWER = "lower search.clip"

Seen = tuple[Behaviour, Behaviour, Behaviour]
"""At θ = 0, after a step of length L, after one of 3 L."""


def divergence(setting: Setting, probe: Probe) -> tuple[Finding, ...]:
    """A finding on the whole, then one per module if the whole is wrecked: `failed` by a step of the clip's
    length, `warning` by three times that."""
    raw, clips = probe.first.raw_norm, setting.settings.clips
    steps = directions(probe) * lengths(setting, probe)[:, None]
    (together,) = look(setting, probe, steps[None])
    whole = _finding(None, raw, clips, together)
    if not together[2].wrecked(together[0]):
        return (whole,)
    alone = look(setting, probe, np.eye(len(steps))[:, :, None] * steps)
    return (
        whole,
        *(
            _finding(name, raw[m : m + 1], clips[m : m + 1], alone[m])
            for m, name in enumerate(setting.settings.modules)
        ),
    )


def directions(probe: Probe) -> NDArray[np.float64]:
    """ĝ, unit vectors, float64 [modules, dim]."""
    found = probe.step.copy()
    for module in np.flatnonzero(norms(found) == 0):
        found[module] = probe.proposal.epsilon[probe.pairs_of(int(module))[0]]
    return found / norms(found)[:, None]


def lengths(setting: Setting, probe: Probe) -> NDArray[np.float64]:
    """L, float64 [modules]. Without a clip, a module without a raw step gets the longest of the others'."""
    raw, clips = probe.first.raw_norm, setting.settings.clips
    return np.where(np.isfinite(clips), clips, np.where(raw > 0, raw, raw.max()))


def look(setting: Setting, probe: Probe, steps: NDArray[np.float64]) -> list[Seen]:
    """What every step does, at its length and at three times that. steps: [steps, modules, dim]."""
    thetas = np.concatenate([np.zeros_like(steps[:1]), steps, FAR * steps]).astype(np.float32)
    before, *after = behaviours(setting, probe, thetas)
    return [(before, near, far) for near, far in zip(after[: len(steps)], after[len(steps) :], strict=True)]


def _finding(module: str | None, raw: NDArray[np.float64], clips: NDArray[np.float64], seen: Seen) -> Finding:
    verdict, what, advice = _verdict(raw, clips, seen)
    sentence = f"{what}; raw step {_range(raw)} against clip {_range(clips)}; {_shown(seen)}"
    figures: dict[str, float | int | str | None] = {"raw_norm": _number(raw.max()), "clip": _number(clips.max())}
    for where, behaviour in zip(("center", "clip", "3_clip"), seen, strict=True):
        figures |= {f"{name}_{where}": _number(value) for name, value in vars(behaviour).items()}
    return Finding("divergence", module, verdict, sentence, advice, figures)


def _verdict(raw: NDArray[np.float64], clips: NDArray[np.float64], seen: Seen) -> tuple[Verdict, str, str]:
    before, near, far = seen
    bound = "a step of the clip's length" if np.isfinite(clips).all() else "a step of the raw length"
    if near.wrecked(before):
        return "failed", f"{bound} wrecks behaviour", LOWER
    if not np.isfinite(clips).all():
        return "warning", "nothing bounds a step", "set search.clip, e.g. 0.5"
    if far.wrecked(before):
        return "warning", f"three times {bound} wrecks behaviour", LOWER
    if (raw > TIGHT * clips).all():
        return "warning", "the clip truncates every step", "raise search.clip or lower search.lr"
    return "ok", f"{bound}, and three times that, leave behaviour intact", ""


def _shown(seen: Seen) -> str:
    """The numbers at 0, L and 3 L, as far as there are any."""
    names = {"success": "success", "gold": "gold log-probability", "parsed": "readable calls", "looping": "loops"}
    rows = [
        f"{text} {', '.join(f'{getattr(b, name):.2f}' for b in seen)}"
        for name, text in names.items()
        if not math.isnan(getattr(seen[0], name))
    ]
    return f"at no, one and three such steps: {'; '.join(rows)}"


def _range(values: NDArray[np.float64]) -> str:
    low, high = values.min(), values.max()
    return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
