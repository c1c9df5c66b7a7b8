"""Where two runs part: for each thing that a generation does, the first generation in which it differs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from nograd.run.generation import Candidate, GenerationRecord, encode
from nograd.run.load import RunRecord
from nograd.run.strict_json import dumps

ASPECTS: dict[str, str] = {
    "credit": "the credit that routes the generation",
    "allocation": "the pairs of each module",
    "sigma": "the perturbation size of each module",
    "theta": "the coefficients of the center",
    "center": "what the center scored",
    "candidates": "what candidates of the same module, pair and sign scored",
}
"""Aspect → what it is, in the order in which a generation comes to it."""

Divergence = Mapping[str, int | None]
"""Aspect → number of the first generation in which it differs to the bit, None if it never does."""


def divergence(a: RunRecord, b: RunRecord) -> Divergence:
    """Over the generations that both have. "theta" may be one generation later: what the last one led to."""
    pairs = list(zip(a.generations, b.generations, strict=False))
    thetas = list(zip(a.theta, b.theta, strict=False))
    return {
        "credit": _first(pairs, lambda x, y: _by_module(x, "credit_before") != _by_module(y, "credit_before")),
        "allocation": _first(pairs, lambda x, y: _by_module(x, "allocation") != _by_module(y, "allocation")),
        "sigma": _first(pairs, lambda x, y: _by_module(x, "sigma") != _by_module(y, "sigma")),
        "theta": _first(thetas, lambda x, y: x.shape != y.shape or x.tobytes() != y.tobytes()),
        "center": _first(pairs, lambda x, y: _center(x) != _center(y)),
        "candidates": _first(pairs, _candidates_differ),
    }


def same_generation(a: GenerationRecord, b: GenerationRecord) -> bool:
    """Whether all results are the same bits, those in the checkpoint included. What they cost (seconds, counts)
    is not a result."""
    one, other = (encode(replace(record, seconds={}, counts={})) for record in (a, b))
    return one == other


def _first(pairs: list[tuple[Any, Any]], differ: Callable[[Any, Any], bool]) -> int | None:
    return next((number for number, pair in enumerate(pairs) if differ(*pair)), None)


def _by_module(record: GenerationRecord, field: str) -> bytes:
    return dumps(dict(zip(record.modules, getattr(record, field), strict=True)))


def _center(record: GenerationRecord) -> bytes:
    scores = {name: getattr(record, name) for name in ("success", "reward", "fitness", "metrics", "blame")}
    return dumps(scores)


def _candidates_differ(a: GenerationRecord, b: GenerationRecord) -> bool:
    one, other = ({(c.module, c.pair, c.sign): _scores(c) for c in record.candidates} for record in (a, b))
    return any(one[key] != other[key] for key in one.keys() & other.keys())


def _scores(candidate: Candidate) -> bytes:
    return dumps({"success": candidate.success, "reward": candidate.reward, "fitness": candidate.fitness})
