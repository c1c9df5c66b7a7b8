"""What a prediction or a table may speak of: one number per run, by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nograd.errors import ConfigError, unknown_name
from nograd.search import metrics as summaries

Curve = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Measured:
    """What one finished run measured. A replay has one step per evaluated θ (θ = 0 first) and no tables.

    success, and each of evaluator (tool_accuracy, call_ok, relay …): float64 [steps].
    allocation, step_norms, credit: [steps, modules]. heldout: success of the evaluated coefficients on the
    plan's held-out family, θ = 0 first; empty without one.
    """

    modules: tuple[str, ...]
    success: Curve
    evaluator: Mapping[str, Curve]
    allocation: Curve = field(default_factory=lambda: np.empty((0, 0)))
    step_norms: Curve = field(default_factory=lambda: np.empty((0, 0)))
    credit: Curve = field(default_factory=lambda: np.empty((0, 0)))
    heldout: Curve = field(default_factory=lambda: np.empty(0))


Metric = Callable[[Measured], float]


def _of_evaluator(name: str, summarise: Callable[[Curve], float]) -> Metric:
    def metric(measured: Measured) -> float:
        curve = measured.evaluator.get(name)
        return math.nan if curve is None else summarise(curve)

    return metric


def _of_heldout(summarise: Callable[[Curve], float]) -> Metric:
    return lambda measured: summarise(measured.heldout) if measured.heldout.size else math.nan


def _halves(measured: Measured) -> tuple[Curve, Curve]:
    """The earlier and the later half; a middle generation belongs to the later one."""
    middle = len(measured.success) // 2
    return measured.success[:middle], measured.success[middle:]


def _concentration(measured: Measured) -> float:
    pairs = measured.allocation
    return float((pairs.max(axis=1) / pairs.sum(axis=1)).mean()) if pairs.size else math.nan


METRICS: dict[str, tuple[str, Metric]] = {
    "auc": ("mean success over the generations", lambda m: summaries.auc(m.success)),
    "final_success": ("success in the last generation", lambda m: summaries.final(m.success)),
    "last5_success": ("mean success in the last five generations", lambda m: summaries.last_five(m.success)),
    "zero_theta_success": ("success of the untouched model", lambda m: float(m.success[0])),
    "gain": ("auc less zero_theta_success", lambda m: summaries.auc(m.success) - float(m.success[0])),
    "final_gain": (
        "final_success less zero_theta_success",
        lambda m: summaries.final(m.success) - float(m.success[0]),
    ),
    "first_half_auc": (
        "mean success in the first half of the generations",
        lambda m: summaries.auc(early) if (early := _halves(m)[0]).size else math.nan,
    ),
    "second_half_auc": (
        "mean success in the second half of the generations",
        lambda m: summaries.auc(_halves(m)[1]),
    ),
    "caller_accuracy": ("mean share of accepted calls", _of_evaluator("call_ok", summaries.auc)),
    "final_caller_accuracy": ("its last value", _of_evaluator("call_ok", summaries.final)),
    "relay": ("mean P(success | call ok)", _of_evaluator("relay", summaries.auc)),
    "final_relay": ("its last value", _of_evaluator("relay", summaries.final)),
    "tool_accuracy": ("mean share of right tools", _of_evaluator("tool_accuracy", summaries.auc)),
    "final_tool_accuracy": ("its last value", _of_evaluator("tool_accuracy", summaries.final)),
    "heldout_auc": ("mean held-out success over the evaluated coefficients", _of_heldout(summaries.auc)),
    "heldout_success": ("held-out success after the last generation", _of_heldout(summaries.final)),
    "heldout_gain": (
        "heldout_success less that of the untouched model",
        _of_heldout(lambda curve: summaries.final(curve) - float(curve[0])),
    ),
    "heldout_decline": (
        "the highest held-out success less heldout_success",
        _of_heldout(lambda curve: float(curve.max()) - summaries.final(curve)),
    ),
    "concentration": ("mean share of the pairs that go to the most funded module", _concentration),
}
"""Metric → description and how to compute it; NaN where the run has no such thing."""

MODULE_METRICS: dict[str, tuple[str, Callable[[Measured], Curve]]] = {
    "starvation": (
        "share of the generations in which the module got no pair",
        lambda m: summaries.starvation(m.allocation),
    ),
    "share": ("the module's share of all pairs", lambda m: m.allocation.sum(axis=0) / m.allocation.sum()),
    "movement": ("Σ‖step‖ of the module", lambda m: summaries.movement(m.step_norms)),
    "credit": ("the module's mean credit", lambda m: np.asarray(m.credit.mean(axis=0))),
}
"""The same by module [modules], written METRIC:MODULE, e.g. starvation:synthesizer."""


def check_metric(name: str) -> None:
    """Raises ConfigError if there is no such metric. Whether a module exists shows only in its runs."""
    family, colon, module = name.partition(":")
    if colon and family in MODULE_METRICS:
        if not module:
            raise ConfigError(f"metric {name!r} needs a module; write e.g. {family}:caller")
    elif name not in METRICS:
        raise unknown_name("metric", name, [*METRICS, *(f"{metric}:MODULE" for metric in MODULE_METRICS)])


def measure(name: str, measured: Measured) -> float:
    """The metric of one run, NaN where it has none. Raises ConfigError for an unknown metric or module."""
    check_metric(name)
    family, colon, module = name.partition(":")
    if not colon:
        return METRICS[name][1](measured)
    if module not in measured.modules:
        raise unknown_name(f"module in metric {name!r}", module, measured.modules)
    if not measured.allocation.size:
        return math.nan
    return float(MODULE_METRICS[family][1](measured)[measured.modules.index(module)])
