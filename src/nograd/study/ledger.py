"""The ledger: what a plan predicted, what came of it, and whether the prediction came first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from nograd.study.plan import Prediction
from nograd.study.plan_file import PlanFile
from nograd.study.precedence import Precedence, precedence
from nograd.study.results import Results, collect
from nograd.study.scoring import Scored, Verdict, overall, score_criterion
from nograd.study.sweep_directory import Sweep

Standing = Literal["preregistered", "descriptive", "unproven"]


@dataclass(frozen=True)
class LedgerRow:
    """A prediction with its outcome.

    outcome: "not scored" for a control or a diagnostic; its criteria still show what came of it.
    standing: preregistered if git shows that it preceded all data it speaks of; descriptive if some of the
    data were there before it; unproven if git cannot tell. precedence: why, one for each sweep.
    """

    plan: str
    prediction: Prediction
    outcome: Verdict | Literal["not scored"]
    standing: Standing
    criteria: tuple[Scored, ...]
    precedence: tuple[Precedence, ...]

    @property
    def evidence(self) -> tuple[str, ...]:
        """All that the outcome and the standing rest on, a sentence each."""
        return (*(one.text for one in self.criteria), *(one.text for one in self.precedence))


def score(sweeps: Sequence[Sweep], file: PlanFile) -> tuple[LedgerRow, ...]:
    """The plan's predictions against those of the sweeps that are of this plan or of the one it extends.

    Raises RunError if sweeps do not go together (see `results.collect`)."""
    own = [sweep for sweep in sweeps if sweep.file.name == file.name]
    extended = [sweep for sweep in sweeps if sweep.file.name == file.plan.extends]
    alone, pooled = collect(own), collect([*own, *extended])
    return tuple(_row(file, prediction, own, extended, alone, pooled) for prediction in file.plan.predictions)


def _row(
    file: PlanFile,
    prediction: Prediction,
    own: Sequence[Sweep],
    extended: Sequence[Sweep],
    alone: Results,
    pooled: Results,
) -> LedgerRow:
    looks_back = any(criterion.pooled for criterion in prediction.criteria)
    lacking = _missing_sweep(file, own, extended if looks_back else own)
    scored = tuple(
        Scored(criterion, "not scorable", None, None, lacking)
        if lacking
        else score_criterion(criterion, pooled if criterion.pooled else alone)
        for criterion in prediction.criteria
    )
    order = [precedence(file, prediction.id, sweep) for sweep in own]
    if looks_back:
        order += [precedence(file, prediction.id, sweep, own=False) for sweep in extended]
    outcome = overall(scored) if prediction.scored else "not scored"
    return LedgerRow(file.name, prediction, outcome, _standing(order), scored, tuple(order))


def _missing_sweep(file: PlanFile, own: Sequence[Sweep], extended: Sequence[Sweep]) -> str:
    if not own:
        return f"not scorable, no sweep of plan {file.name!r} was given"
    return "" if extended else f"not scorable, it needs a sweep of plan {file.plan.extends!r} beside"


def _standing(order: Sequence[Precedence]) -> Standing:
    kinds = {one.kind for one in order}
    if "after" in kinds:
        return "descriptive"
    return "preregistered" if kinds == {"before"} else "unproven"
