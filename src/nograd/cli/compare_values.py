"""What `nograd compare --json` prints, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from nograd.run.compare import Changes, Comparison
from nograd.run.compare_seeds import SeedComparison
from nograd.run.differences import Differences
from nograd.stats import Contrast


def run_values(comparison: Comparison) -> dict[str, Any]:
    """Of two runs. distance: module → one number before every generation and one after the last."""
    c = comparison
    distance = None if c.distance is None else dict(zip(c.a.modules, c.distance.T.tolist(), strict=True))
    return {
        "settings": _changes(c.settings),
        "execution": _changes(c.execution),
        "facts": _changes(c.facts),
        "surroundings": _changes(c.surroundings),
        "shared": c.shared,
        "differences": {name: _differences(found) for name, found in c.differences.items()},
        "divergence": dict(c.divergence),
        "distance": distance,
        "trajectories": {
            which: None if found is None else asdict(found) | {"gained": found.gained, "lost": found.lost}
            for which, found in c.trajectories.items()
        },
        "identical": c.identical,
    }


def seed_values(comparison: SeedComparison) -> dict[str, Any]:
    """Of two folders."""
    c = comparison
    return {
        "settings": _changes(c.settings),
        "facts": _changes(c.facts),
        "seeds": list(c.pairs),
        "left_out": {str(seed): reason for seed, reason in c.left_out.items()},
        "contrasts": {name: _contrast(found) | {"holm_p": c.holm_p[name]} for name, found in c.contrasts.items()},
        "identical": c.identical,
    }


def _changes(changes: Changes) -> Mapping[str, Any]:
    return {key: {"a": one, "b": other} for key, (one, other) in changes.items()}


def _differences(found: Differences) -> dict[str, Any]:
    names = ("mean", "first_half", "second_half", "last_five")
    return {"values": found.values} | {name: getattr(found, name) for name in names}


def _contrast(contrast: Contrast) -> dict[str, Any]:
    return {
        "estimate": contrast.estimate,
        "low": contrast.interval.low,
        "high": contrast.interval.high,
        "p": contrast.p,
        "equivalence_p": contrast.equivalence.p,
        "differences": dict(zip(map(str, contrast.seeds), contrast.differences, strict=True)),
    }
