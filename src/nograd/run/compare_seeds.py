"""Two folders of runs, paired by seed: every pair side by side, and the statistics over the seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nograd.errors import ConfigError
from nograd.run.compare import Changes, Comparison, compare_runs
from nograd.run.config import results_bearing
from nograd.run.load import RunRecord
from nograd.run.resume import changes
from nograd.search import metrics
from nograd.stats import Contrast, compare, holm

Curve = NDArray[np.float64]


@dataclass(frozen=True)
class Metric:
    """A number of one run: what it is, the curve that it is made from, how."""

    description: str
    curve: str
    of: Callable[[Curve], float]


METRICS: dict[str, Metric] = {
    "auc": Metric("success, mean (AUC)", "success", metrics.auc),
    "last5_success": Metric("success, last five", "success", metrics.last_five),
    "final_success": Metric("success, last generation", "success", metrics.final),
    "reward": Metric("reward, mean", "reward", metrics.auc),
    "fitness": Metric("fitness, mean", "fitness", metrics.auc),
}


@dataclass(frozen=True, eq=False)
class SeedComparison:
    """Two arms; every difference is b less a. settings, facts: that differ, beside the seed, in the first pair.
    pairs: by seed, finished runs only. left_out: seed → why it is in no number. contrasts: by name of METRICS.
    holm_p: adjusted over them."""

    settings: Changes
    facts: Changes
    pairs: Mapping[int, Comparison]
    left_out: Mapping[int, str]
    contrasts: Mapping[str, Contrast]
    holm_p: Mapping[str, float | None]

    @property
    def identical(self) -> bool:
        """Whether every pair is the same to the last bit."""
        return bool(self.pairs) and all(pair.identical for pair in self.pairs.values())


def compare_seeds(a: Sequence[RunRecord], b: Sequence[RunRecord]) -> SeedComparison:
    """Pair two folders' runs by seed. Raises ConfigError if a folder holds a seed twice, runs that differ in
    more than the seed, or no finished run with a partner.

    A pair whose runs have different lengths is compared over the generations that both have."""
    one, other = _by_seed(a), _by_seed(b)
    left_out = _left_out(one, other)
    seeds = sorted((one.keys() | other.keys()) - left_out.keys())
    if not seeds:
        reasons = "; ".join(f"seed {seed}: {reason}" for seed, reason in left_out.items())
        raise ConfigError(f"{_folder(a)} and {_folder(b)} share no seed that both have finished ({reasons})")
    pairs = {seed: compare_runs(one[seed], other[seed]) for seed in seeds}
    contrasts = {name: _contrast(metric, pairs) for name, metric in METRICS.items()}
    adjusted = holm([contrast.p for contrast in contrasts.values()])
    return SeedComparison(
        settings={key: value for key, value in pairs[seeds[0]].settings.items() if key != "seed"},
        facts=pairs[seeds[0]].facts,
        pairs=pairs,
        left_out=left_out,
        contrasts=contrasts,
        holm_p=dict(zip(contrasts, adjusted, strict=True)),
    )


def _by_seed(runs: Sequence[RunRecord]) -> dict[int, RunRecord]:
    seeds: dict[int, RunRecord] = {}
    for run in runs:
        _check_same_arm(runs[0], run)
        first = seeds.setdefault(run.config.seed, run)
        if first is not run:
            raise ConfigError(
                f"{first.path} and {run.path} both have seed {run.config.seed}; name a folder with one run per seed"
            )
    return seeds


def _check_same_arm(first: RunRecord, run: RunRecord) -> None:
    one, other = (results_bearing(each.config) | {"seed": 0} for each in (first, run))
    differing = changes(one, other)
    if differing:
        key, (left, right) = next(iter(differing.items()))
        raise ConfigError(f"{first.path} has {key} = {left!r} and {run.path} has {right!r}; name a folder with one arm")


def _left_out(a: Mapping[int, RunRecord], b: Mapping[int, RunRecord]) -> dict[int, str]:
    reasons = {}
    for seed in sorted(a.keys() | b.keys()):
        problems = [_problem(name, runs.get(seed)) for name, runs in (("A", a), ("B", b))]
        if any(problems):
            reasons[seed] = ", ".join(problem for problem in problems if problem)
    return reasons


def _problem(name: str, run: RunRecord | None) -> str:
    if run is None:
        return f"missing in {name}"
    planned = run.config.search.generations
    return "" if run.complete else f"half-finished in {name} ({len(run.generations)} of {planned})"


def _contrast(metric: Metric, pairs: Mapping[int, Comparison]) -> Contrast:
    treatment = {seed: metric.of(_curve(pair.b, metric, pair.shared)) for seed, pair in pairs.items()}
    control = {seed: metric.of(_curve(pair.a, metric, pair.shared)) for seed, pair in pairs.items()}
    return compare(treatment, control)


def _curve(run: RunRecord, metric: Metric, generations: int) -> Curve:
    return run.array(metric.curve).astype(np.float64)[:generations]


def _folder(runs: Sequence[RunRecord]) -> Path:
    return runs[0].path.parent
