"""What a black box returned for one candidate, read as an evaluation or refused in a sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

from nograd.errors import ConfigError, unknown_name
from nograd.search.evaluation import Evaluation

KEYS = ("success", "fitness", "reward", "blame", "metrics")
"""Of a mapping; all but success may be left out."""


def read_returned(returned: object, modules: Sequence[str]) -> Evaluation:
    """A number is success, and fitness and reward as well. A mapping has success; fitness (default: success),
    reward (default: fitness), blame (a share per module, by name or in order) and metrics (name → number).

    Success must be in [0, 1], save where a non-finite fitness says that there is no result. Raises ConfigError
    for anything else."""
    if isinstance(returned, Evaluation):
        evaluation = returned
    elif isinstance(returned, Mapping):
        evaluation = _of_mapping(returned, modules)
    else:
        number = _number("value", returned)
        evaluation = Evaluation(number, number, number)
    if math.isfinite(evaluation.fitness) and not 0 <= evaluation.success <= 1:
        raise ConfigError(
            f"the black box returned success {evaluation.success!r}; it must be a share between 0 and 1 (a "
            f'number of any size goes beside it: {{"success": …, "fitness": …}})'
        )
    return evaluation


def _of_mapping(values: Mapping[str, Any], modules: Sequence[str]) -> Evaluation:
    for key in values:
        if key not in KEYS:
            raise unknown_name("key in what the black box returned", str(key), KEYS)
    if "success" not in values:
        raise ConfigError(f"the black box returned {dict(values)!r} without success, a share between 0 and 1")
    success = _number("success", values["success"])
    fitness = _number("fitness", values.get("fitness", success))
    return Evaluation(
        fitness=fitness,
        success=success,
        reward=_number("reward", values.get("reward", fitness)),
        blame=_blame(values.get("blame"), modules),
        metrics=_metrics(values.get("metrics") or {}),
    )


def _metrics(metrics: object) -> dict[str, float]:
    if not isinstance(metrics, Mapping):
        raise ConfigError(f"the black box returned metrics {metrics!r}; it must be a mapping of names to numbers")
    return {str(name): _number(str(name), value) for name, value in metrics.items()}


def _blame(blame: object, modules: Sequence[str]) -> tuple[float, ...] | None:
    """Shares in the order of the modules; modules left out of a mapping have none."""
    if blame is None:
        return None
    if isinstance(blame, Mapping):
        for name in blame:
            if name not in modules:
                raise unknown_name("module in blame", str(name), modules)
        return tuple(_number("blame", blame.get(name, 0.0)) for name in modules)
    if not isinstance(blame, Sequence) or isinstance(blame, str) or len(blame) != len(modules):
        raise ConfigError(
            f"blame must be one share for each of {', '.join(modules)}, by name or in this order, got {blame!r}"
        )
    return tuple(_number("blame", share) for share in blame)


def _number(what: str, value: object) -> float:
    if not isinstance(value, Real):
        raise ConfigError(
            f"the black box returned {what} {value!r}; it must return a number, a mapping with "
            f"{', '.join(KEYS)}, or an Evaluation"
            if what == "value"
            else f"the black box returned {what} {value!r}; it must be a number"
        )
    return float(value)
