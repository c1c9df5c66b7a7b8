"""All detectors, one after the other, on what is evaluated once for several of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from nograd.preflight.context import context
from nograd.preflight.cost import cost
from nograd.preflight.determinism import determinism
from nograd.preflight.divergence import divergence
from nograd.preflight.finding import Finding
from nograd.preflight.flat_reward import flat_reward
from nograd.preflight.gold import gold, token_limits
from nograd.preflight.health import blame_profile, headroom, resolution
from nograd.preflight.inert_basis import inert_basis
from nograd.preflight.noise import noise
from nograd.preflight.observed import centers, first_generation
from nograd.preflight.power import power
from nograd.preflight.probe import probe
from nograd.preflight.setting import Setting

Findings = tuple[Finding, ...]
OnWork = Callable[[str], None]


def detect(setting: Setting, runs: Path, on_work: OnWork = lambda _what: None) -> Findings:
    """Everything that can be found. runs: a folder with earlier runs, see `power`. on_work: told in words what is
    being done, before it is done."""
    return tuple(finding for findings in _steps(setting, runs, on_work) for finding in findings)


def _steps(setting: Setting, runs: Path, on_work: OnWork) -> Iterator[Findings]:
    """What costs least comes first."""
    on_work("gold targets through the checker")
    yield gold(setting)
    yield token_limits(setting)
    yield resolution(setting)
    on_work("the untouched model")
    untouched = centers(setting)
    yield headroom(untouched)
    yield blame_profile(setting, untouched)
    yield determinism(setting, untouched)
    yield power(setting, untouched, runs)
    on_work("a generation")
    generation = first_generation(setting)
    yield cost(setting, generation)
    yield context(setting, generation)
    on_work("the same requests in other company")
    yield noise(setting, generation)
    on_work("mirrored pairs in every module")
    pairs = probe(setting)
    yield inert_basis(setting, pairs)
    yield flat_reward(setting, pairs)
    on_work("long steps")
    yield divergence(setting, pairs)
