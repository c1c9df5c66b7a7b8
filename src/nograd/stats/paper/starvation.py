"""Table 5 and §5.7: the starvation regression, its predictions, and the starvation rates themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt

from nograd.errors import ConfigError
from nograd.stats.paper.printed import Formula, Printed, printed
from nograd.stats.paper.rows import PaperRow, attainable, equal, exactly
from nograd.stats.paper.summaries import centre_row, sd_from_interval, side_row, two_sided_p
from nograd.stats.regression import fit_line

SCHEMES = ("hard", "hard~0.25", "hard~0.5", "sparse", "hard~0.75", "random")
NOMINAL = printed("0.000", "0.188", "0.375", "0.500", "0.562", "0.750")
MEASURED = printed("0.028", "0.200", "0.353", "0.500", "0.519", "0.767")
DEVIATION = printed("0.028", "0.012", "0.022", "0.000", "0.043", "0.017")
DELTA = printed("-0.003", "-0.019", "-0.033", "-0.043", "-0.040", "-0.074")
LOW = printed("-0.024", "-0.041", "-0.061", "-0.064", "-0.063", "-0.100")
HIGH = printed("0.018", "0.002", "-0.005", "-0.021", "-0.017", "-0.049")
P = printed("0.766", "0.070", "0.023", "0.016", "0.008", "0.008")
SEEDS, GENERATIONS, MODULES = 8, 45, 4

CLOSED_FORM = (0.0, 0.25 * 0.75, 0.5 * 0.75, 0.5, 0.75 * 0.75, 0.75)
"""q(M-1)/M for hard~q, 1/2 for sparse, (M-1)/M for random, with M = 4."""

FINER_NOMINAL = printed("0.0000", "0.1875", "0.3750", "0.5000", "0.5625", "0.7500")
"""CLOSED_FORM to one more digit than Table 5 prints."""

FINER_DELTA = printed("-0.0030", "-0.019", "-0.033", "-0.0425", "-0.040", "-0.0743")
"""Table 5's ΔAUC with the extra digit that Table 1 and §5.7 print for hard, random and sparse."""


def starvation_checks() -> list[PaperRow]:
    """All rows of this part."""
    return [*_fits(), *_predictions(), *_rates(), *_intervals()]


def starvation_rows(simulated: Mapping[str, float], draws: int | None = None) -> list[PaperRow]:
    """Nominal starvation per scheme, simulated with the allocator, beside Table 5's column.

    simulated: scheme (as in SCHEMES) -> share of allocations in which the bottleneck got no pair.
    draws: allocations simulated per scheme, adding four binomial standard errors to tolerance; None if exact.
    ConfigError for a scheme that Table 5 does not list."""
    unknown = sorted(set(simulated) - set(SCHEMES))
    if unknown:
        raise ConfigError(f"Table 5 has no schemes {unknown}; it lists {', '.join(SCHEMES)}")
    return [
        exactly(
            f"nominal starvation of {scheme}, from the allocator",
            "Table 5",
            nominal,
            simulated[scheme],
            slack=4 * sqrt(nominal.value * (1 - nominal.value) / draws) if draws else 0.0,
            note="simulated with credit on the true bottleneck",
        )
        for scheme, nominal in zip(SCHEMES, NOMINAL, strict=True)
        if scheme in simulated
    ]


def _fit_part(part: str, at: float = 0.0) -> Formula:
    """Slope, intercept, R² or value at `at` of the line through points given as [x..., y...]."""

    def formula(values: Sequence[float]) -> float:
        half = len(values) // 2
        line = fit_line(values[:half], values[half:])
        result = line.at(at) if part == "at" else getattr(line, part)
        return float(result)

    return formula


def _fits() -> list[PaperRow]:
    fits: list[tuple[str, str, str, tuple[Printed, ...], tuple[Printed, ...]]] = [
        ("slope", "-0.087", "ΔAUC on nominal starvation", NOMINAL, DELTA),
        ("intercept", "-0.001", "ΔAUC on nominal starvation", NOMINAL, DELTA),
        ("r2", "0.941", "ΔAUC on nominal starvation", NOMINAL, DELTA),
        ("slope", "-0.087", "ΔAUC on nominal starvation, finest digits", FINER_NOMINAL, FINER_DELTA),
        ("intercept", "-0.001", "ΔAUC on nominal starvation, finest digits", FINER_NOMINAL, FINER_DELTA),
        ("r2", "0.941", "ΔAUC on nominal starvation, finest digits", FINER_NOMINAL, FINER_DELTA),
        ("slope", "-0.091", "ΔAUC on measured starvation", MEASURED, DELTA),
        ("r2", "0.973", "ΔAUC on measured starvation", MEASURED, DELTA),
    ]
    return [
        equal(f"{part} of {on}", "§5.7, Table 5", Printed(text), _fit_part(part), [*x, *y])
        for part, text, on, x, y in fits
    ]


def _predictions() -> list[PaperRow]:
    points = [*NOMINAL, *DELTA]
    rows = [
        equal(f"fit at starvation {at}: {what}", source, Printed(text), _fit_part("at", at), points)
        for what, source, text, at in [
            ("sparse, retrodicted", "§5.7", "-0.044", 0.5),
            ("catch-up arm", "§5.14", "-0.066", 0.75),
            ("un-floored hard~0.5, predicted", "§5.8", "-0.034", 0.375),
        ]
    ]
    rows.append(equal("sparse ΔAUC, §5.7 against Table 5", "§5.7", Printed("-0.0425"), sum, DELTA[3:4]))
    rows.append(
        exactly("burst starvation, one generation in four", "§5.14", Printed("0.75"), 1 - 1 / MODULES)
    )
    return rows


def _rates() -> list[PaperRow]:
    by_scheme = list(zip(SCHEMES, NOMINAL, MEASURED, DEVIATION, CLOSED_FORM, strict=True))
    rows = [
        exactly(
            f"nominal starvation of {scheme}, closed form",
            "Table 5",
            nominal,
            rate,
            note="q(M-1)/M for hard~q, 1/2 for sparse, (M-1)/M for random; M = 4",
        )
        for scheme, nominal, _, _, rate in by_scheme
    ]
    rows += [
        equal(
            f"|nominal - measured| of {scheme}",
            "Table 5",
            gap,
            lambda v: abs(v[0] - v[1]),
            [nominal, measured],
        )
        for scheme, nominal, measured, gap, _ in by_scheme
    ]
    rows += [
        attainable(
            f"measured starvation of {scheme}, in 360ths", "Table 5", measured, 1 / (SEEDS * GENERATIONS)
        )
        for scheme, _, measured, _, _ in by_scheme
    ]
    rows.append(
        equal(
            "hard's share of pairs on the synthesizer, %",
            "§5.2",
            Printed("97.2"),
            lambda v: 100 * (1 - v[0]),
            MEASURED[:1],
            note="hard gives all pairs to one module, so this is 1 - measured starvation",
        )
    )
    return rows


def _intervals() -> list[PaperRow]:
    rows = []
    for scheme, delta, low, high, p in zip(SCHEMES, DELTA, LOW, HIGH, P, strict=True):
        t_p = two_sided_p(delta.value, sd_from_interval(low.value, high.value, SEEDS), SEEDS)
        rows += [centre_row(scheme, "Table 5", delta, low, high), side_row(scheme, "Table 5", p, t_p)]
    return rows
