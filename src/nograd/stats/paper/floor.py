"""The floor test (Table 2, §5.8, §5.10), the doubled budget (§5.6), capacity (§5.13), and other TOSTs."""

from __future__ import annotations

from math import sqrt

from nograd.stats.intervals import t_interval_of
from nograd.stats.paper.printed import Printed, printed
from nograd.stats.paper.rows import PaperRow, attainable, decision, equal, exactly, holds, implied
from nograd.stats.paper.summaries import (
    centre_row,
    other_tost_p,
    sd_from_interval,
    side_row,
    signs_must_agree,
    span,
    tost_p,
    two_sided_p,
)
from nograd.stats.sign_flip import smallest_p

UNFLOORED, UNFLOORED_SD = printed("-0.0273", "0.0332")
FLOORED, FLOORED_SD = printed("-0.0056", "0.0124")
BFCL_UNFLOORED, BFCL_FLOORED, RESCUE, RESCUE_LOW, RESCUE_HIGH = printed(
    "-0.107", "0.026", "0.133", "0.121", "0.145"
)
DOUBLED, DOUBLED_SD = printed("-0.0172", "0.0038")
CAPACITY, CAPACITY_LOW, CAPACITY_HIGH = printed("-0.072", "-0.107", "-0.037")

ORACLE = (
    ("stationary, tight", Printed("-0.009"), "< 0.001", "0.021"),
    ("non-stationary, wide", Printed("-0.001"), "< 0.001", "< 0.001"),
    ("non-stationary, tight", Printed("-0.006"), "0.006", "0.057"),
    ("non-stationary, wide (d=32)", Printed("0.001"), "< 0.001", "< 0.001"),
)
"""Table 6: regime, Δ of the oracle, p_upper, p_lower; n = 10."""


def floor_checks() -> list[PaperRow]:
    """All rows of this part."""
    return [*_in_house(), *_rescue(), *_doubled_budget(), *_capacity(), *_other_tosts()]


def _in_house() -> list[PaperRow]:
    floored = [FLOORED, FLOORED_SD]
    share = attainable("un-floored hard~0.5, in 4320ths", "Table 2", UNFLOORED, 1 / 4320)
    rest = attainable("floored hard~0.5, in 4320ths", "Table 2", FLOORED, 1 / 4320)
    removed = 1 - round(FLOORED.value * 4320) / round(UNFLOORED.value * 4320)
    return [
        equal(
            "floored TOST p_upper", "Table 2", Printed("0.002"), lambda v: tost_p(v[0], v[1], 6, 1), floored
        ),
        equal(
            "floored TOST p_lower", "Table 2", Printed("0.018"), lambda v: tost_p(v[0], v[1], 6, -1), floored
        ),
        share,
        rest,
        equal(
            "share of the penalty removed",
            "§5.8",
            Printed("0.80"),
            lambda v: 1 - v[0] / v[1],
            [FLOORED, UNFLOORED],
        ),
        exactly("share of the penalty removed, in 4320ths", "§5.8", Printed("0.80"), removed),
        equal(
            "share removed that |Δ| < 0.015 stands for",
            "§5.8",
            Printed("0.60"),
            lambda v: 1 - 0.015 / abs(v[0]),
            [Printed("-0.034")],
            note="of the predicted penalty 0.034: the text gives both bounds as one, but 0.015 leaves 44%",
        ),
        side_row(
            "un-floored hard~0.5",
            "§5.8",
            Printed("0.062"),
            two_sided_p(UNFLOORED.value, UNFLOORED_SD.value, 6),
        ),
    ]


def _rescue() -> list[PaperRow]:
    sd = sd_from_interval(RESCUE_LOW.value, RESCUE_HIGH.value, 6)
    return [
        equal(
            "BFCL rescue, floored less un-floored",
            "§5.10",
            RESCUE,
            lambda v: v[0] - v[1],
            [BFCL_FLOORED, BFCL_UNFLOORED],
        ),
        centre_row("BFCL rescue", "§5.10", RESCUE, RESCUE_LOW, RESCUE_HIGH),
        _one_sign("BFCL rescue", "§5.10", RESCUE, sd, 6, Printed("0.031")),
        implied("SD of the BFCL rescue", "§5.10", sd, "from the 95% interval as a t interval with n = 6"),
    ]


def _one_sign(what: str, source: str, mean: Printed, sd: float, n: int, p: Printed) -> PaperRow:
    """Where mean and SD force one sign on all seeds, the sign-flip p must be the smallest possible."""
    return exactly(
        f"{what}: sign-flip p forced by mean and SD",
        source,
        p,
        smallest_p(n) if signs_must_agree(mean.value, sd, n) else float("inf"),
        note=f"|t| = {abs(mean.value) * sqrt(n) / sd:.2f} exceeds n - 1 = {n - 1}, so all {n} signs agree",
    )


def _doubled_budget() -> list[PaperRow]:
    interval = t_interval_of(DOUBLED.value, DOUBLED_SD.value, 5)
    p_lower = tost_p(DOUBLED.value, DOUBLED_SD.value, 5, -1)
    source = "§5.6"
    return [
        attainable("doubled-budget Δ of soft, in 3600ths", source, DOUBLED, 1 / 3600),
        decision(
            "doubled budget: signs of the 5 seeds",
            source,
            "5/5 negative",
            "5/5 negative" if signs_must_agree(DOUBLED.value, DOUBLED_SD.value, 5) else "undetermined",
            "|t| > n - 1 forces one sign",
        ),
        implied("doubled budget: 95% interval", source, span(interval), "mean, SD, n = 5"),
        implied("doubled budget: weaker TOST p", source, p_lower, "mean, SD, n = 5: not certified at 0.05"),
        implied("smallest sign-flip p at n = 5", source, smallest_p(5), "5/5 negative cannot reach 0.05"),
    ]


def _capacity() -> list[PaperRow]:
    sd = sd_from_interval(CAPACITY_LOW.value, CAPACITY_HIGH.value, 6)
    return [
        centre_row("capacity-matched uniform", "§5.13", CAPACITY, CAPACITY_LOW, CAPACITY_HIGH),
        _one_sign("capacity-matched uniform", "§5.13", CAPACITY, sd, 6, Printed("0.031")),
        equal(
            "capacity deficit from its halves",
            "§5.13",
            CAPACITY,
            lambda v: (v[0] + v[1]) / 2,
            printed("-0.041", "-0.105"),
            slack=(0.105 - 0.041) / 90,
            note="45 generations have no middle: the slack covers halves of 22 and 23 either way round",
        ),
    ]


def _other_tosts() -> list[PaperRow]:
    mean_3b = Printed("-0.003")
    rows = [
        equal(
            "3B soft: the smaller TOST p from the larger",
            "§5.4",
            Printed("0.002"),
            lambda v: other_tost_p(v[0], v[1], 6, -1),
            [mean_3b, Printed("0.006")],
        ),
        equal(
            "oracle, non-stationary tight: TOST p_upper from p_lower",
            "Table 6",
            Printed("0.006"),
            lambda v: other_tost_p(v[0], v[1], 10, -1),
            [ORACLE[2][1], Printed("0.057")],
        ),
    ]
    first = other_tost_p(ORACLE[0][1].value, 0.021, 10, -1)
    rows.append(
        holds(
            "oracle, stationary tight: TOST p_upper from p_lower",
            "Table 6",
            "< 0.001",
            first,
            first < 0.001,
            "from Δ = -0.009 and p_lower = 0.021 at n = 10",
        )
    )
    certified = sum(max(_bound(upper), _bound(lower)) < 0.05 for _, _, upper, lower in ORACLE)
    rows.append(decision("oracle regimes certified within ±0.02", "Table 6", "3 of 4", f"{certified} of 4"))
    return rows


def _bound(p: str) -> float:
    return float(p.removeprefix("< "))
