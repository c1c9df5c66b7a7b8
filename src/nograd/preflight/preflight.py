"""All detectors, one after the other, on what is evaluated once for several of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
from nograd.preflight.propose import Proposed, propose
from nograd.preflight.setting import Setting, left_out

OnWork = Callable[[str], None]


@dataclass(frozen=True)
class Detected:
    """proposed: None where it was not asked for."""

    findings: tuple[Finding, ...]
    proposed: Proposed | None = None


def detect(setting: Setting, runs: Path, on_work: OnWork = lambda _what: None, *, proposing: bool = False) -> Detected:
    """Everything that can be found; what costs least comes first.

    runs: a folder with earlier runs, see `power`. on_work: told in words what is done next. proposing: also search
    for an injection strength and σ."""
    on_work("gold targets through the checker")
    found = [*gold(setting), *token_limits(setting), *resolution(setting)]
    on_work("the untouched model")
    untouched = centers(setting)
    found += [*headroom(untouched), *blame_profile(setting, untouched), *determinism(setting, untouched)]
    found += power(setting, untouched, runs)
    on_work("a generation")
    generation = first_generation(setting)
    found += [*cost(setting, generation), *context(setting, generation)]
    on_work("the same requests in other company")
    found += noise(setting, generation)
    on_work("mirrored pairs in every module")
    pairs = probe(setting)
    found += [*inert_basis(setting, pairs), *flat_reward(setting, pairs)]
    on_work("long steps")
    found += divergence(setting, pairs)
    if not proposing:
        return Detected(tuple(found))
    if setting.agent is None:
        return Detected((*found, left_out("propose", setting)))
    on_work("other injection strengths and σ")
    proposed = propose(setting, pairs)
    return Detected((*found, proposed.finding), proposed)
