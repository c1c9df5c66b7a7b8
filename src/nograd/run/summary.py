"""The few numbers that a finished run comes down to."""

from __future__ import annotations

import resource
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nograd.errors import RunError
from nograd.run.generation import GenerationRecord
from nograd.search import metrics


@dataclass(frozen=True)
class RunSummary:
    """zero_theta_success: the center's success in generation 0, the untouched model. auc: mean success per
    generation. tokens: prefilled and decoded. seconds: wall time of all generations, over all resumptions.
    peak_memory_bytes: largest resident size of this process so far."""

    zero_theta_success: float
    last5_success: float
    final_success: float
    auc: float
    generations: int
    requests_asked: int
    requests_computed: int
    tokens: int
    seconds: float
    peak_memory_bytes: int
    run_dir: str


def summarise(generations: Sequence[GenerationRecord], root: Path) -> RunSummary:
    """Summary of a run's generations; counts that its evaluator does not give are 0. Raises RunError if there
    are none."""
    if not generations:
        raise RunError(f"{root} has no complete generation yet; resume the run first")
    success = [record.success for record in generations]
    return RunSummary(
        zero_theta_success=success[0],
        last5_success=metrics.last_five(success),
        final_success=metrics.final(success),
        auc=metrics.auc(success),
        generations=len(generations),
        requests_asked=_total(generations, "requests_asked"),
        requests_computed=_total(generations, "requests_computed"),
        tokens=_total(generations, "tokens_prefilled") + _total(generations, "tokens_decoded"),
        seconds=sum(record.seconds["generation"] for record in generations),
        peak_memory_bytes=peak_memory_bytes(),
        run_dir=str(root),
    )


def peak_memory_bytes() -> int:
    """Largest resident size of this process so far (getrusage counts KiB on Linux, bytes on macOS)."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _total(generations: Sequence[GenerationRecord], count: str) -> int:
    return sum(record.counts.get(count, 0) for record in generations)
