"""Table 3 and §5.11: the held-out BFCL evaluation on 96 tasks."""

from __future__ import annotations

from nograd.stats.paper.printed import Printed, printed
from nograd.stats.paper.rows import PaperRow, attainable, equal

TASKS, SEEDS = 96, 6
ARMS = ("untrained", "uniform", "soft+sigma", "random", "hard")
SUCCESS = dict(zip(ARMS, printed("0.583", "0.696", "0.743", "0.717", "0.660"), strict=True))
CALLER = dict(zip(ARMS, printed("0.698", "0.696", "0.745", "0.727", "0.733"), strict=True))
RELAY = dict(zip(ARMS, printed("0.836", "1.000", "0.998", "0.986", "0.901"), strict=True))
CALLER_SD = dict(zip(ARMS, (0.0, 0.031, 0.014, 0.019, 0.025), strict=True))
RELAY_SD = dict(zip(ARMS, (0.0, 0.000, 0.006, 0.022, 0.059), strict=True))

GAINS = (
    ("success", "soft+sigma", SUCCESS, Printed("0.047")),
    ("success", "random", SUCCESS, Printed("0.021")),
    ("success", "hard", SUCCESS, Printed("-0.036")),
    ("caller accuracy", "soft+sigma", CALLER, Printed("0.049")),
    ("caller accuracy", "random", CALLER, Printed("0.031")),
    ("caller accuracy", "hard", CALLER, Printed("0.036")),
    ("relay", "hard", RELAY, Printed("-0.099")),
)
"""Differences from uniform printed in §5.11."""


def held_out_checks() -> list[PaperRow]:
    """All rows of this part."""
    rows = []
    for arm in ARMS:
        rows.append(_product(arm))
        for metric, table in (("success", SUCCESS), ("caller accuracy", CALLER)):
            count = TASKS if arm == "untrained" else TASKS * SEEDS
            rows.append(
                attainable(f"held-out {metric} of {arm}, in {count}ths", "Table 3", table[arm], 1 / count)
            )
    rows += [
        equal(
            f"held-out {metric}, {arm} - uniform",
            "§5.11",
            published,
            lambda v: v[0] - v[1],
            [table[arm], table["uniform"]],
        )
        for metric, arm, table, published in GAINS
    ]
    rows.append(
        equal(
            "held-out success, uniform - untrained",
            "§5.11",
            Printed("0.113"),
            lambda v: v[0] - v[1],
            [SUCCESS["uniform"], SUCCESS["untrained"]],
        )
    )
    return rows


def _product(arm: str) -> PaperRow:
    """Success is caller accuracy x relay in every seed; between means it differs by their covariance."""
    covariance = CALLER_SD[arm] * RELAY_SD[arm] * (SEEDS - 1) / SEEDS
    return equal(
        f"held-out success of {arm} = caller accuracy x relay",
        "Table 3",
        SUCCESS[arm],
        lambda v: v[0] * v[1],
        [CALLER[arm], RELAY[arm]],
        slack=covariance,
        note="slack: the largest covariance over seeds that the printed SDs allow",
    )
