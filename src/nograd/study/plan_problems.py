"""Everything that is wrong with a plan, one line each."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from nograd.errors import ConfigError, unknown_name
from nograd.study.cells import arm_config
from nograd.study.metrics import check_metric
from nograd.study.plan import Criterion, HeldOut, Plan, Prediction, Replay
from nograd.study.scaling import Scaling
from nograd.tasks.registry import FAMILIES

_TABLES: Mapping[str, type[BaseModel]] = {
    "predictions": Prediction,
    "criteria": Criterion,
    "replay": Replay,
    "heldout": HeldOut,
    "": Plan,
}


def form_problems(error: ValidationError) -> list[str]:
    """Mistakes of form: a key that is unknown, missing or holds the wrong thing."""
    details: list[dict[str, Any]] = [dict(detail) for detail in error.errors()]
    places = [detail["loc"] for detail in details]
    return [_form_line(detail) for detail in details if not _follows(detail, places)]


def meaning_problems(plan: Plan) -> list[str]:
    """Mistakes of meaning in a plan of good form: names that nothing has, settings that cannot be used."""
    return [*_arm_problems(plan), *_config_problems(plan), *_heldout_problems(plan), *_prediction_problems(plan)]


def _follows(detail: Mapping[str, Any], places: list[tuple[str | int, ...]]) -> bool:
    """Whether a list is called too short only because an item of it has a mistake."""
    own = detail["loc"]
    return detail["type"] == "too_short" and any(place[: len(own)] == own != place for place in places)


def _form_line(detail: Mapping[str, Any]) -> str:
    key = ".".join(str(part) for part in detail["loc"])
    if detail["type"] == "extra_forbidden":
        return f"{key}: unknown key; {_known(detail['loc'])}"
    if detail["type"] == "missing":
        return f"{key} is missing; add it"
    if detail["type"] == "value_error":
        return f"{key} = {detail['input']!r}: {detail['ctx']['error']}"
    return f"{key} = {detail['input']!r}: {str(detail['msg']).replace('Input should', 'must')}"


def _known(location: tuple[str | int, ...]) -> str:
    names = [part for part in location[:-1] if isinstance(part, str)]
    known = list(_TABLES.get(names[-1] if names else "", Plan).model_fields)
    near = difflib.get_close_matches(str(location[-1]), known, n=1)
    return f"did you mean {near[0]}?" if near else f"known here: {', '.join(known)}"


def _arm_problems(plan: Plan) -> Iterator[str]:
    if plan.baseline not in plan.arms:
        yield f"baseline = {plan.baseline!r}: {_no_arm(plan)}"
    for label, arm in plan.arms.items():
        if arm.baseline is not None and arm.baseline not in plan.arms:
            yield f"arms.{label}.baseline = {arm.baseline!r}: {_no_arm(plan)}"
    folded: dict[str, str] = {}
    for label in plan.arms:
        other = folded.setdefault(label.lower(), label)
        if other != label:
            yield f"arms {other!r} and {label!r} would share a folder on some disks; rename one"


def _config_problems(plan: Plan) -> Iterator[str]:
    for label in plan.arms:
        try:
            arm_config(plan, label, plan.seeds[0], Scaling())
        except ConfigError as error:
            yield str(error)


def _heldout_problems(plan: Plan) -> Iterator[str]:
    if plan.heldout is None:
        return
    if plan.replay is not None:
        yield "a replay trains nothing to evaluate; leave out [heldout], or name its family in [replay]"
    if plan.heldout.family not in FAMILIES:
        yield f"heldout.family: {unknown_name('task family', plan.heldout.family, FAMILIES)}"
    elif FAMILIES[plan.heldout.family].info.size is None:
        yield f"heldout.family = {plan.heldout.family!r}: must be a family that comes with nograd"


def _prediction_problems(plan: Plan) -> Iterator[str]:
    seen: set[str] = set()
    for prediction in plan.predictions:
        if prediction.id in seen:
            yield f"prediction id {prediction.id!r} is there twice; give each its own"
        seen.add(prediction.id)
        for criterion in prediction.criteria:
            for problem in _criterion_problems(plan, criterion):
                yield f"prediction {prediction.id!r}: {problem}"


def _criterion_problems(plan: Plan, criterion: Criterion) -> Iterator[str]:
    for name in (criterion.of, criterion.minus):
        if name is not None and name not in plan.arms:
            yield f"arm {name!r}: {_no_arm(plan)}"
    low, high = criterion.low, criterion.high
    if low is None and high is None:
        yield "a criterion needs low, high or both; as it is, nothing could miss it"
    if low is not None and high is not None and low > high:
        yield f"low = {low} is above high = {high}; no number could hit"
    if criterion.statistic != "estimate" and criterion.minus is None:
        yield f"statistic {criterion.statistic!r} is about a difference; name the arm to subtract in `minus`"
    if criterion.pooled and plan.extends is None:
        yield "pooled = true needs `extends`, the plan whose seeds to pool with"
    try:
        check_metric(criterion.metric)
    except ConfigError as error:
        yield str(error)


def _no_arm(plan: Plan) -> str:
    return f"the plan has no such arm; it has {', '.join(plan.arms)}"
