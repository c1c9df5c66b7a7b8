"""How many seeds will it take to certify that two arms are equivalent?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from nograd.errors import NogradError
from nograd.preflight.finding import Finding
from nograd.preflight.observed import Centers
from nograd.preflight.setting import Setting
from nograd.preflight.subject import same_subject
from nograd.run.config import RunConfig
from nograd.run.config_source import make_config
from nograd.run.generation import read_generations
from nograd.run.load import find_runs
from nograd.run.resume import read_environment
from nograd.search.metrics import auc
from nograd.stats.equivalence import MARGIN
from nograd.stats.pairing import pair
from nograd.stats.power import seeds_for_equivalence
from nograd.stats.sample import Sample

Aucs = Mapping[str, Mapping[int, float]]
"""arm -> seed -> AUC."""


@dataclass(frozen=True)
class Spread:
    """Standard deviation of the paired difference of two arms' AUC, and where it comes from."""

    sd: float
    source: str


def power(setting: Setting, centers: Centers, runs: Path) -> tuple[Finding, ...]:
    """Seeds for a TOST at ±0.02 with power 0.8, given the spread among finished runs in a folder."""
    spread = observed_spread(finished(setting.config, runs)) or binomial_spread(
        centers.success, setting.config.tasks.batch, setting.settings.generations
    )
    needed = seeds_for_equivalence(spread.sd)
    count = "no number of seeds up to a million" if needed.n is None else f"{needed.n} seeds"
    sentence = (
        f"{count} to certify that two arms' AUC agree within ±{MARGIN:g} ({needed.method}), if it spreads by "
        f"{spread.sd:.3f} ({spread.source})"
    )
    figures = {"seeds": needed.n, "sd": spread.sd, "source": spread.source}
    return (Finding("power", None, "ok", sentence, figures=figures),)


def observed_spread(aucs: Aucs) -> Spread | None:
    """From the arms' paired differences; else √2 times the spread over the seeds of one arm; None without
    either. Deviations from each pair's, or arm's, own mean are pooled."""
    pairs = [pair(aucs[one], aucs[other]).differences for one, other in combinations(sorted(aucs), 2)]
    paired = _pooled(pairs)
    if paired is not None:
        return Spread(paired, f"paired differences of {len(aucs)} arms in finished runs")
    alone = _pooled([np.array(list(by_seed.values())) for by_seed in aucs.values()])
    if alone is not None:
        return Spread(2**0.5 * alone, "√2 × the spread over the seeds of finished runs, as if not paired")
    return None


def binomial_spread(success: float, batch: int, generations: int) -> Spread:
    """Luck alone: √2 times the binomial standard deviation of a mean over all rollouts of the center. One
    success and one failure are added, so that 0 and 1 have a spread, too."""
    rollouts = batch * generations
    share = (success * rollouts + 1) / (rollouts + 2)
    sd = (2 * share * (1 - share) / rollouts) ** 0.5
    return Spread(sd, f"no finished run to judge from: the binomial of {batch} tasks × {generations} generations")


def finished(config: RunConfig, runs: Path) -> Aucs:
    """AUC of the finished runs at or below a folder that differ from the configuration in seed and arm only."""
    found: dict[str, dict[int, float]] = defaultdict(dict)
    try:
        folders = find_runs(runs)
    except NogradError:
        return found
    for folder in folders:
        try:
            other = make_config(read_environment(folder)["config"])
            records = read_generations(folder)
        except NogradError:
            continue
        alike = same_subject(other, config) and other.search.generations == config.search.generations
        if alike and len(records) == other.search.generations:
            found[other.search.arm][other.seed] = auc([record.success for record in records])
    return found


def _pooled(samples: Sequence[Sample]) -> float | None:
    """Standard deviation from all samples with two values or more, each about its own mean."""
    usable = [sample for sample in samples if len(sample) >= 2]
    if not usable:
        return None
    squares = sum(float(((sample - sample.mean()) ** 2).sum()) for sample in usable)
    return float((squares / sum(len(sample) - 1 for sample in usable)) ** 0.5)
