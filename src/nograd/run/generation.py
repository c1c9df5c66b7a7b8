"""What is written down of one generation: a line of generations.jsonl."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from nograd.errors import RunError
from nograd.run import layout
from nograd.run.files import whole_lines
from nograd.run.strict_json import dumps, loads
from nograd.search.es import Proposal, SearchState, Update
from nograd.search.evaluation import GenerationResult


@dataclass(frozen=True)
class Candidate:
    """One perturbed theta: θ + sign·σ·ε in one module. pair: its number within the module."""

    module: str
    pair: int
    sign: int
    success: float
    reward: float
    fitness: float


@dataclass(frozen=True)
class GenerationRecord:
    """One generation; tuples by module are in the order of `modules`.

    success, reward, fitness, metrics: the center's batch means. credit_before routed this generation's pairs.
    allocation: mirrored pairs. inclusion: probability of getting a pair. starved: got none.
    step_raw, step_applied: step norms before and after the trust region; clip_bound: whether it bound.
    dropped: pairs with a non-finite fitness. gains: mean fitness gain per pair, NaN where not measured.
    counts: what the evaluation cost. checkpoint: sha256 of the state after this generation.
    seconds: wall times; they and nothing else differ between two runs of one configuration.
    """

    generation: int
    modules: tuple[str, ...]
    success: float
    reward: float
    fitness: float
    metrics: Mapping[str, float]
    candidates: tuple[Candidate, ...]
    allocation: tuple[int, ...]
    inclusion: tuple[float, ...]
    starved: tuple[bool, ...]
    sigma: tuple[float, ...]
    blame: tuple[float, ...] | None
    credit_before: tuple[float, ...]
    credit_after: tuple[float, ...]
    step_raw: tuple[float, ...]
    step_applied: tuple[float, ...]
    clip_bound: tuple[bool, ...]
    dropped: tuple[int, ...]
    gains: tuple[float, ...]
    counts: Mapping[str, int]
    seconds: Mapping[str, float]
    checkpoint: str = ""

    def with_checkpoint(self, digest: str) -> GenerationRecord:
        """The same record, with the hash of its checkpoint."""
        return replace(self, checkpoint=digest)


def make_record(
    modules: tuple[str, ...],
    before: SearchState,
    proposal: Proposal,
    result: GenerationResult,
    update: Update,
    seconds: Mapping[str, float],
) -> GenerationRecord:
    """Gather a generation's facts, all as plain numbers."""
    center = result.evaluations[0]
    return GenerationRecord(
        generation=before.generation,
        modules=modules,
        success=float(center.success),
        reward=float(center.reward),
        fitness=float(center.fitness),
        metrics={name: float(value) for name, value in center.metrics.items()},
        candidates=_candidates(modules, proposal, result),
        allocation=tuple(proposal.allocation.pairs.tolist()),
        inclusion=tuple(proposal.inclusion.tolist()),
        starved=tuple(proposal.starved.tolist()),
        sigma=tuple(proposal.sigma.tolist()),
        blame=None if update.blame is None else tuple(update.blame.tolist()),
        credit_before=tuple(before.credit.tolist()),
        credit_after=tuple(update.credit.tolist()),
        step_raw=tuple(update.raw_norm.tolist()),
        step_applied=tuple(update.step_norm.tolist()),
        clip_bound=tuple(update.clip_bound.tolist()),
        dropped=update.dropped,
        gains=tuple(update.gains.tolist()),
        counts={name: int(value) for name, value in result.counts.items()},
        seconds=dict(seconds),
    )


def encode(record: GenerationRecord) -> bytes:
    """The record's line, without the newline."""
    return dumps(asdict(record))


def read_generations(root: Path) -> list[GenerationRecord]:
    """The complete generations of a run; a torn last line is not one. Raises RunError for a damaged line."""
    path = root / layout.GENERATIONS
    lines = whole_lines(path.read_bytes()) if path.exists() else []
    return [_decode(path, number, line) for number, line in enumerate(lines)]


def _decode(path: Path, number: int, line: bytes) -> GenerationRecord:
    try:
        values = loads(line)
        values["candidates"] = tuple(Candidate(**candidate) for candidate in values["candidates"])
        record = GenerationRecord(
            **{field.name: _frozen(values.pop(field.name)) for field in fields(GenerationRecord)}
        )
        if record.generation != number or values:
            raise ValueError(f"generation {record.generation}, unknown keys {sorted(values)}")
    except (ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
        raise RunError(
            f"line {number + 1} of {path} is damaged or of another version of nograd ({error!r}); restore it "
            f"from a copy, or delete it and all later lines and resume to compute them again"
        ) from error
    return record


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _candidates(
    modules: tuple[str, ...], proposal: Proposal, result: GenerationResult
) -> tuple[Candidate, ...]:
    """Rows 1, 2, 3, 4 … of the proposal are the plus and minus of pair 0, the plus and minus of pair 1, …"""
    return tuple(
        Candidate(
            module=modules[proposal.modules[row // 2]],
            pair=int(proposal.pair_index[row // 2]),
            sign=-1 if row % 2 else 1,
            success=float(evaluation.success),
            reward=float(evaluation.reward),
            fitness=float(evaluation.fitness),
        )
        for row, evaluation in enumerate(result.evaluations[1:])
    )
