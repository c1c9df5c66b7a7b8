"""Differences paired by seed: which seeds are complete, and what they differ by."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nograd.errors import ConfigError
from nograd.stats.sample import ROUNDING, Sample

Values = Mapping[int, float] | Sequence[float] | Sample
"""One value per seed: a mapping from seed to value, or a plain sequence whose seeds are its positions."""


@dataclass(frozen=True)
class DroppedSeed:
    """A seed that is left out, and why: missing in an arm, or with a value there that is not finite."""

    seed: int
    reason: str


@dataclass(frozen=True)
class Term:
    """One arm in a signed sum: its name for messages, its sign (+1 or -1), its value per seed."""

    name: str
    sign: int
    values: Values


@dataclass(frozen=True)
class Paired:
    """Paired differences: seeds in ascending order, differences float64 [n], and what was dropped."""

    seeds: tuple[int, ...]
    differences: Sample
    dropped: tuple[DroppedSeed, ...]


def pair(treatment: Values, control: Values) -> Paired:
    """Treatment minus control for every seed that has a finite value in both.

    A value that is not finite counts as missing. Plain sequences must have equal lengths (ConfigError)."""
    return signed_sum([Term("treatment", 1, treatment), Term("control", -1, control)])


def signed_sum(terms: Sequence[Term]) -> Paired:
    """The signed sum of several arms per complete seed; a sum within rounding of its terms is exactly 0."""
    _check_lengths(terms)
    tables = [(term, _by_seed(term.values)) for term in terms]
    kept: dict[int, float] = {}
    dropped = []
    for seed in sorted({seed for _, table in tables for seed in table}):
        problems = [problem for term, table in tables if (problem := _problem(term.name, table, seed))]
        if problems:
            dropped.append(DroppedSeed(seed, ", ".join(problems)))
        else:
            kept[seed] = _clean_sum([term.sign * table[seed] for term, table in tables])
    return Paired(tuple(kept), np.array(list(kept.values()), dtype=np.float64), tuple(dropped))


def _by_seed(values: Values) -> dict[int, float]:
    items = values.items() if isinstance(values, Mapping) else enumerate(values)
    return {seed: float(value) for seed, value in items}


def _check_lengths(terms: Sequence[Term]) -> None:
    lengths = {term.name: len(term.values) for term in terms if not isinstance(term.values, Mapping)}
    if len(set(lengths.values())) > 1:
        raise ConfigError(
            f"unnamed seeds cannot be paired: lengths are {lengths}; pass seed -> value mappings"
        )


def _problem(name: str, table: Mapping[int, float], seed: int) -> str | None:
    if seed not in table:
        return f"missing in {name}"
    return None if math.isfinite(table[seed]) else f"{name} is {table[seed]}"


def _clean_sum(parts: Sequence[float]) -> float:
    total = math.fsum(parts)
    return 0.0 if abs(total) <= ROUNDING * max(abs(part) for part in parts) else total
