"""The paper check: what must agree agrees, what disagrees is known, and the machinery can disagree."""

import dataclasses
import json
from decimal import ROUND_HALF_EVEN, Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nograd.errors import ConfigError
from nograd.stats import fit_line
from nograd.stats.paper import not_recomputable, paper_check, starvation_rows
from nograd.stats.paper import starvation as table_5
from nograd.stats.paper.printed import Printed, printed, propagated
from nograd.stats.paper.rows import equal, exactly
from nograd.stats.paper.summaries import (
    sd_from_interval,
    sd_from_tost,
    signs_must_agree,
    tost_p,
)

ROWS = {row.what: row for row in paper_check()}

KNOWN_DISAGREEMENTS = {
    "share removed that |Δ| < 0.015 stands for",
    "largest in-house cost of misrouting",
    "mean step per moved module of uniform",
    "mean step per moved module of random",
}


def test_exactly_the_known_disagreements_and_no_duplicate_rows():
    assert {what for what, row in ROWS.items() if row.agrees is False} == KNOWN_DISAGREEMENTS
    assert len(ROWS) == len(paper_check()) > 200


@pytest.mark.parametrize(
    ("what", "digits"),
    [
        ("slope of ΔAUC on nominal starvation, finest digits", 3),
        ("intercept of ΔAUC on nominal starvation", 3),
        ("slope of ΔAUC on measured starvation", 3),
        ("fit at starvation 0.5: sparse, retrodicted", 3),
        ("fit at starvation 0.75: catch-up arm", 3),
        ("floored TOST p_upper", 3),
        ("floored TOST p_lower", 3),
        ("hard - random", 4),
        ("soft+sigma - uniform, AUC columns in 5760ths", 4),
        ("hard - uniform, AUC columns in 5760ths", 4),
        ("random - uniform, AUC columns in 5760ths", 4),
        ("pooled Δ of soft, in 14400ths", 4),
        ("BFCL rescue, floored less un-floored", 3),
        ("smallest sign-flip p, n = 6", 5),
        ("smallest sign-flip p, n = 8", 7),
    ],
)
def test_headline_figures_round_to_the_printed_ones(what, digits):
    row = ROWS[what]
    assert row.published == round(row.recomputed, digits)


def test_table_5_gives_r_squared_of_the_abstract():
    nominal = [number.value for number in table_5.NOMINAL]
    delta = [number.value for number in table_5.DELTA]
    assert round(fit_line(nominal, delta).r2, 2) == 0.94


def test_finer_nominal_rates_are_the_closed_form():
    assert tuple(number.value for number in table_5.FINER_NOMINAL) == table_5.CLOSED_FORM


def test_a_wrong_figure_is_a_disagreement(monkeypatch):
    wrong = (Printed("-0.033"), *table_5.DELTA[1:])
    monkeypatch.setattr(table_5, "DELTA", wrong)
    failed = {row.what for row in table_5.starvation_checks() if row.agrees is False}
    assert "slope of ΔAUC on nominal starvation" in failed
    assert "hard: centre of the interval is the mean" in failed


def test_rows_are_json():
    for row in [*ROWS.values(), *not_recomputable()]:
        assert json.loads(json.dumps(dataclasses.asdict(row), allow_nan=False))["what"] == row.what


def test_what_cannot_be_recomputed_says_why():
    items = not_recomputable()
    assert len({item.what for item in items}) == len(items) > 10
    assert all(item.reason and item.source for item in items)


def test_starvation_rows_compare_an_allocator_with_table_5():
    generator = np.random.default_rng(0)
    draws = 20_000
    noisy = float(np.mean((generator.random(draws) < 0.5) & (generator.integers(0, 4, draws) != 3)))
    good, bad = starvation_rows({"hard~0.5": noisy, "sparse": 0.6}, draws=draws)
    assert (good.agrees, bad.agrees) == (True, False)
    assert starvation_rows({"hard": 0.001})[0].agrees is False
    assert len(starvation_rows(dict(zip(table_5.SCHEMES, table_5.CLOSED_FORM, strict=True)))) == 6
    with pytest.raises(ConfigError, match="hrad"):
        starvation_rows({"hrad": 0.0})


@given(st.decimals(-2, 2, places=6), st.integers(1, 4))
@settings(deadline=None)
def test_a_number_is_within_half_a_unit_of_its_print(exact, digits):
    text = str(exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_EVEN))
    row = exactly("x", "here", Printed(text), float(exact))
    assert row.tolerance == pytest.approx(0.5 * 10**-digits)
    assert row.agrees
    assert not exactly("x", "here", Printed(text), float(exact) + 1.01 * 10**-digits).agrees


@given(st.lists(st.decimals(-1, 1, places=5), min_size=2, max_size=6))
@settings(deadline=None)
def test_a_sum_of_rounded_numbers_stays_within_its_tolerance(exact):
    def rounded(value):
        return str(value.quantize(Decimal("0.001"), ROUND_HALF_EVEN))

    inputs = printed(*(rounded(value) for value in exact))
    assert propagated(sum, inputs) == pytest.approx(0.0005 * len(exact))
    assert equal("sum", "here", Printed(rounded(sum(exact))), sum, inputs).agrees


@given(st.floats(-0.019, 0.019), st.floats(0.001, 0.1), st.integers(3, 20))
@settings(deadline=None)
def test_a_tost_p_gives_back_its_sd(mean, sd, n):
    for side in (-1, 1):
        p = tost_p(mean, sd, n, side)
        if 1e-9 < p < 0.499:
            assert sd_from_tost(mean, p, n, side) == pytest.approx(sd, rel=1e-5)


@given(st.integers(0, 100_000), st.integers(3, 8), st.floats(0.0, 4.0))
@settings(deadline=None)
def test_forced_signs_are_right(seed, n, shift):
    sample = np.random.default_rng(seed).normal(shift, 1.0, n)
    if signs_must_agree(sample.mean(), sample.std(ddof=1), n):
        assert len(set(np.sign(sample))) == 1


def test_sd_from_interval_inverts_the_t_interval():
    assert sd_from_interval(-2.570582, 2.570582, 6) == pytest.approx(6**0.5, rel=1e-6)
