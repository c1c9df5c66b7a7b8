"""Table 1, §5.2 and §5.3: main arms, hard against random, the seed extension, the falsified dose-response.

Success is counted in whole tasks, so a mean AUC over n seeds is a multiple of 1/(45 generations x 16 tasks
x n). At four printed digits that recovers the exact AUC columns of Table 1, and with them the differences.
"""

from __future__ import annotations

from collections.abc import Sequence

from nograd.stats.intervals import t_interval_of
from nograd.stats.paper.printed import Printed, printed
from nograd.stats.paper.rows import PaperRow, attainable, decision, equal, exactly, holds, implied
from nograd.stats.paper.starvation import HIGH, LOW
from nograd.stats.paper.summaries import (
    centre_row,
    other_tost_p,
    sd_from_interval,
    sd_from_tost,
    side_row,
    span,
    tost_p,
    two_sided_p,
)
from nograd.stats.regression import fit_line

ROLLOUTS_PER_SEED = 45 * 16
ARMS = ("uniform", "soft+sigma", "hard", "random")
CONCENTRATION = printed("0.25", "0.64", "1.00", "1.00")
AUC = printed("0.8418", "0.8280", "0.8389", "0.7675")
AUC_SD = printed("0.0250", "0.0145", "0.0215", "0.0075")
DIFFERENCE = dict(zip(ARMS[1:], printed("-0.0139", "-0.0030", "-0.0743"), strict=True))

FIRST, TWELVE, POOLED = printed("-0.0139", "-0.0102", "-0.0117")
POOLED_LOW, POOLED_HIGH = printed("-0.0204", "-0.0029")
TWELVE_P_LOWER = Printed("0.040")


def main_checks() -> list[PaperRow]:
    """All rows of this part."""
    return [*_table_1(), *_paired_spread(), *_dose_response(), *_extension(), *_pooled_interval()]


def _table_1() -> list[PaperRow]:
    step = 1 / (ROLLOUTS_PER_SEED * 8)
    rows = [
        attainable(f"AUC of {arm}, in 5760ths", "Table 1", auc, step)
        for arm, auc in zip(ARMS, AUC, strict=True)
    ]
    exact = {arm: round(auc.value / step) * step for arm, auc in zip(ARMS, AUC, strict=True)}
    for arm, auc in zip(ARMS[1:], AUC[1:], strict=True):
        gap = exact[arm] - exact["uniform"]
        published = DIFFERENCE[arm]
        rows.append(
            equal(f"{arm} - uniform, AUC columns as printed", "Table 1", published, _minus, [auc, AUC[0]])
        )
        rows.append(exactly(f"{arm} - uniform, AUC columns in 5760ths", "Table 1", published, gap))
    rows.append(equal("hard - random", "§5.2", Printed("0.0714"), _minus, [AUC[2], AUC[3]]))
    rows.append(
        equal(
            "weaker TOST p of hard, SD from Table 5's interval",
            "Table 1",
            Printed("0.0497"),
            lambda v: tost_p(v[0], sd_from_interval(v[1], v[2], 8), 8, -1),
            [DIFFERENCE["hard"], LOW[0], HIGH[0]],
        )
    )
    return rows


def _minus(pair: Sequence[float]) -> float:
    return pair[0] - pair[1]


def _paired_spread() -> list[PaperRow]:
    """The SD of a paired difference lies between the difference and the sum of the arms' SDs."""
    rows = []
    for arm, row, sd in (("hard", 0, AUC_SD[2]), ("random", 5, AUC_SD[3])):
        paired = sd_from_interval(LOW[row].value, HIGH[row].value, 8)
        low, high = abs(AUC_SD[0].value - sd.value), AUC_SD[0].value + sd.value
        rows.append(
            holds(
                f"SD of {arm} - uniform fits the arms' SDs",
                "Tables 1 and 5",
                f"{low:.4f} to {high:.4f}",
                paired,
                low <= paired <= high,
                "Table 5's interval at n = 8 gives the SD; outside the range no correlation could produce it",
            )
        )
        rows.append(
            centre_row(f"{arm}, Table 1 mean", "Tables 1 and 5", DIFFERENCE[arm], LOW[row], HIGH[row])
        )
    return rows


def _dose_response() -> list[PaperRow]:
    """With one concentration per arm, the mean of the per-seed slopes is the slope of the arm means."""

    def slope(values: Sequence[float]) -> float:
        fitted = fit_line(values[:3], values[3:]).slope
        assert fitted is not None
        return fitted

    note = "concentration taken as one number per arm; the paper's per-seed values are not published"
    return [
        equal(
            f"slope of AUC on concentration, uniform/soft/{arm}",
            "§5.3",
            Printed(text),
            slope,
            [*CONCENTRATION[:3], *AUC[:2], AUC[position]],
            note=note,
        )
        for arm, position, text in (("random", 3, "-0.099"), ("hard", 2, "-0.005"))
    ]


def _extension() -> list[PaperRow]:
    """Seeds 9-20 on their own: everything follows from the mean and p_lower."""
    p_upper = other_tost_p(TWELVE.value, TWELVE_P_LOWER.value, 12, -1)
    sd = sd_from_tost(TWELVE.value, TWELVE_P_LOWER.value, 12, -1)
    interval = t_interval_of(TWELVE.value, sd, 12)
    return [
        attainable("12-seed Δ of soft, in 8640ths", "§5.2", TWELVE, 1 / (ROLLOUTS_PER_SEED * 12)),
        holds(
            "12-seed p_upper, from the mean and p_lower = 0.040",
            "§5.2",
            "< 0.001",
            p_upper,
            p_upper < 0.001,
            f"p_lower implies an SD of {sd:.4f}",
        ),
        side_row("12-seed Δ of soft", "§5.2", Printed("0.078"), two_sided_p(TWELVE.value, sd, 12)),
        implied("12-seed 95% interval of soft", "§5.2", span(interval), "mean and p_lower"),
    ]


def _pooled_interval() -> list[PaperRow]:
    """The n = 20 interval against its parts: mean, and the split of the sum of squares over both batches."""
    sd_20 = sd_from_interval(POOLED_LOW.value, POOLED_HIGH.value, 20)
    sd_12 = sd_from_tost(TWELVE.value, TWELVE_P_LOWER.value, 12, -1)
    between = 8 * 12 / 20 * (FIRST.value - TWELVE.value) ** 2
    sd_8 = ((19 * sd_20**2 - 11 * sd_12**2 - between) / 7) ** 0.5
    low, high = AUC_SD[0].value - AUC_SD[1].value, AUC_SD[0].value + AUC_SD[1].value
    bounds = [_half_width(sd, sd_12, between) for sd in (low, high)]
    half = (POOLED_HIGH.value - POOLED_LOW.value) / 2
    first_p = max(tost_p(FIRST.value, sd_8, 8, -1), tost_p(FIRST.value, sd_8, 8, 1))
    exact_sum = sum(round(mean.value * ROLLOUTS_PER_SEED * n) for mean, n in ((FIRST, 8), (TWELVE, 12)))
    source = "§5.2"
    return [
        equal(
            "pooled Δ of soft, n = 20", source, POOLED, lambda v: (8 * v[0] + 12 * v[1]) / 20, [FIRST, TWELVE]
        ),
        exactly("pooled Δ of soft, in 14400ths", source, POOLED, exact_sum / (ROLLOUTS_PER_SEED * 20)),
        centre_row("soft, n = 20", source, POOLED, POOLED_LOW, POOLED_HIGH),
        holds(
            "half-width of the n = 20 interval fits its two batches",
            source,
            half,
            f"{bounds[0]:.4f} to {bounds[1]:.4f}",
            bounds[0] <= half <= bounds[1],
            "SD of the 12 from p_lower; SD of the first 8 anywhere that Table 1's arm SDs allow",
        ),
        implied(
            "SD of soft - uniform over the first 8 seeds", source, sd_8, "n = 20 interval less the 12 seeds"
        ),
        decision(
            "soft's equivalence over the first 8 seeds",
            "Table 1",
            "not certified",
            "certified" if first_p < 0.05 else "not certified",
            f"TOST p {first_p:.3f} with the implied SD",
        ),
        side_row("soft, first 8 seeds", "Table 1", Printed("0.156"), two_sided_p(FIRST.value, sd_8, 8)),
        side_row("soft, n = 20", source, Printed("0.013"), two_sided_p(POOLED.value, sd_20, 20)),
    ]


def _half_width(sd_8: float, sd_12: float, between: float) -> float:
    sd = ((7 * sd_8**2 + 11 * sd_12**2 + between) / 19) ** 0.5
    interval = t_interval_of(0.0, sd, 20)
    assert interval.high is not None
    return interval.high
