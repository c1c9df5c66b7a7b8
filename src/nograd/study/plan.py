"""A plan: an experiment as data. Arms × seeds on shared settings, and what was predicted before the runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from nograd.errors import NogradError
from nograd.run.config import Count, Name, Section
from nograd.study.seeds import distinct, parse_seeds

LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~+=-]*")
"""An arm's label also names its folder in the sweep directory."""

ARM_KEYS = ("arm", "baseline")


def _seeds(value: object) -> tuple[int, ...]:
    try:
        if isinstance(value, str):
            return parse_seeds(value)
        if isinstance(value, list | tuple) and value and all(type(seed) is int for seed in value):
            return distinct(value, "seeds")
    except NogradError as error:
        raise ValueError(str(error)) from error
    raise ValueError('must be a text such as "1-8", or a list of whole numbers')


def _arm(value: object) -> object:
    """ "soft", or a table {arm = "soft", baseline = "…", and settings that differ from the plan's}."""
    if isinstance(value, str):
        return {"arm": value}
    if not isinstance(value, Mapping) or "settings" in value:
        return value
    own = {key: value[key] for key in ARM_KEYS if key in value}
    return own | {"settings": {key: item for key, item in value.items() if key not in ARM_KEYS}}


def _label(text: str) -> str:
    if LABEL.fullmatch(text) is None:
        raise ValueError("an arm's label is made of letters, digits and . _ ~ + = -, as it names a folder")
    return text


class ArmSpec(Section):
    """One configuration under test. arm: scheme and options (`nograd arms`). baseline: label of the arm it is
    compared with, None for the plan's. settings: sections of the run configuration that differ."""

    arm: Name
    baseline: str | None = None
    settings: dict[str, Any] = Field(default_factory=dict)


class Criterion(Section):
    """A number that must lie in a closed interval.

    metric: a name of `study.metrics`. of, minus: arms; without `minus` the number is about the mean of `of`
    over seeds, else about the paired difference. statistic: which number. pooled: over the seeds of this plan
    and of the one it extends.
    """

    metric: Name = "auc"
    of: Name
    minus: str | None = None
    statistic: Literal["estimate", "p", "ci_low", "ci_high", "tost_p"] = "estimate"
    low: float | None = None
    high: float | None = None
    pooled: bool = False


class Prediction(Section):
    """Something said before the runs. It hits if all its criteria hold.

    scored: false for a control or a two-sided diagnostic, which is reported but neither hit nor miss.
    """

    id: Name
    claim: Name
    why: Name
    scored: bool = True
    criteria: Annotated[tuple[Criterion, ...], Field(strict=False, min_length=1)]


class Replay(Section):
    """Evaluate coefficients that another sweep has trained, without training.

    source: the plan of that sweep. family, batch: the tasks, all of them in one batch. last: how many of the
    last generations' coefficients to evaluate, besides θ = 0.
    """

    source: Name
    family: Name
    batch: Count
    last: Count = 1


class HeldOut(Section):
    """Evaluate every run's coefficients on tasks that it was not tuned on, once it is done.

    family: all its tasks. every: the coefficients after each so many generations, and after the last; θ = 0 is
    always among them.
    """

    family: Name
    every: Count = 5

    def after(self, generations: int) -> tuple[int, ...]:
        """The coefficients to evaluate of a run with so many generations, by how many made them."""
        return tuple(sorted({*range(0, generations, self.every), generations}))


class Plan(Section):
    """title, paper (where it is published), notes: for people. extends: the plan whose seeds this adds to.
    settings: sections of the run configuration, shared by all arms. baseline: label of an arm."""

    title: Name
    paper: str = ""
    notes: str = ""
    extends: str | None = None
    baseline: Name
    seeds: Annotated[tuple[int, ...], BeforeValidator(_seeds)]
    settings: dict[str, Any] = Field(default_factory=dict)
    arms: Annotated[
        dict[Annotated[str, AfterValidator(_label)], Annotated[ArmSpec, BeforeValidator(_arm)]],
        Field(min_length=1),
    ]
    predictions: Annotated[tuple[Prediction, ...], Field(strict=False)] = ()
    replay: Replay | None = None
    heldout: HeldOut | None = None

    def baseline_of(self, label: str) -> str | None:
        """Label of the arm that this arm is compared with; None for a baseline itself."""
        baseline = self.arms[label].baseline or self.baseline
        return None if baseline == label else baseline
