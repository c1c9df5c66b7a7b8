"""The four regimes of the pre-study (paper §5.1, Tables 6 and 7) as data."""

from __future__ import annotations

from dataclasses import dataclass

from nograd.errors import unknown_name

MODULES = ("planner", "selector", "caller", "synthesizer")
"""The pipeline, in order."""

BOTTLENECKS = ("synthesizer", "selector", "caller")
"""Modules that become the bottleneck, in turn. The planner never does: no verifiable signal can blame it
(paper §3, "Credit and routing"), so no credit could follow it."""

STRETCH = 30
"""Generations until a moving bottleneck moves on: four stretches in the paper's 120 generations. Fixed,
not calibrated: the paper does not say it."""


@dataclass(frozen=True)
class Regime:
    """dim: coefficients per module. pairs: mirrored pairs per generation. stretch: generations that a module
    stays the bottleneck, None for ever. title: the paper's row."""

    name: str
    title: str
    dim: int
    pairs: int
    stretch: int | None

    @property
    def tight(self) -> bool:
        """Whether uniform allocation gets no more than one pair per module."""
        return self.pairs <= len(MODULES)

    def visit(self, generation: int) -> int:
        """How often the bottleneck has moved before this generation."""
        return 0 if self.stretch is None else generation // self.stretch

    def bottleneck(self, generation: int) -> int:
        """Index of the bottleneck module in this generation."""
        return bottleneck_of_visit(self.visit(generation))


def bottleneck_of_visit(visit: int) -> int:
    """Index of the module that is the bottleneck after so many moves."""
    return MODULES.index(BOTTLENECKS[visit % len(BOTTLENECKS)])


REGIMES: dict[str, Regime] = {
    regime.name: regime
    for regime in (
        Regime("stationary_tight", "stationary, tight", dim=16, pairs=4, stretch=None),
        Regime("nonstationary_wide", "non-stationary, wide", dim=8, pairs=8, stretch=STRETCH),
        Regime("nonstationary_tight", "non-stationary, tight", dim=16, pairs=4, stretch=STRETCH),
        Regime("nonstationary_wide_d32", "non-stationary, wide (d=32)", dim=32, pairs=8, stretch=STRETCH),
    )
}


def find_regime(name: str) -> Regime:
    """The regime of this name. Raises ConfigError that lists the known ones."""
    if name not in REGIMES:
        raise unknown_name("regime", name, REGIMES)
    return REGIMES[name]
