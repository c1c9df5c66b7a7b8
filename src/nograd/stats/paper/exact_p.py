"""Every printed sign-flip p: is it attainable at its n, and possible with the printed count of signs?

The exact two-sided p at n seeds is a multiple of 2/2^n. If k seeds have the minority sign, the 2^k sign
vectors that only flip those towards the majority are at least as extreme, so p >= 2^(k+1)/2^n. Where the
printed digits are coarser than the multiples, only the second question is asked.
"""

from __future__ import annotations

from dataclasses import dataclass

from nograd.stats.paper.printed import Printed
from nograd.stats.paper.rows import PaperRow, attainable, exactly, holds
from nograd.stats.sign_flip import sign_flip, smallest_p


@dataclass(frozen=True)
class PrintedP:
    """A printed exact p. minority: seeds with the rarer sign, None where the paper does not say."""

    what: str
    source: str
    p: Printed
    n: int
    minority: int | None = None


def _p(what: str, source: str, p: str, n: int, minority: int | None = None) -> PrintedP:
    return PrintedP(what, source, Printed(p), n, minority)


PUBLISHED = (
    _p("soft", "Table 1", "0.156", 8),
    _p("hard", "Table 1", "0.766", 8),
    _p("random", "Table 1", "0.008", 8),
    _p("soft, 12 seeds", "§5.2", "0.078", 12, 5),
    _p("soft, 20 seeds", "§5.2", "0.013", 20),
    _p("hard - random", "§5.2", "0.008", 8, 0),
    _p("slope on concentration, with random", "§5.3", "0.008", 8, 0),
    _p("slope on concentration, with hard", "§5.3", "0.703", 8),
    _p("3B random", "§5.4", "0.031", 6, 0),
    _p("3B hard", "§5.4", "0.031", 6),
    _p("3B hard - random", "§5.4", "0.16", 6, 1),
    _p("SmolLM2 hard", "§5.5", "0.031", 6, 0),
    _p("SmolLM2 random", "§5.5", "0.125", 6, 2),
    _p("uniform at doubled budget", "§5.6", "0.75", 5),
    _p("hard~0.25", "Table 5", "0.070", 8),
    _p("hard~0.5", "Table 5", "0.023", 8),
    _p("sparse", "Table 5", "0.016", 8),
    _p("hard~0.75", "Table 5", "0.008", 8),
    _p("un-floored hard~0.5", "§5.8", "0.062", 6, 1),
    _p("random at w=1", "§5.9", "0.031", 6),
    _p("BFCL random", "§5.10", "0.031", 6, 0),
    _p("BFCL hard", "§5.10", "0.031", 6, 0),
    _p("BFCL hard - random", "§5.10", "0.031", 6),
    _p("BFCL un-floored hard", "§5.10", "0.031", 6, 0),
    _p("BFCL floored hard", "§5.10", "0.219", 6),
    _p("BFCL rescue", "§5.10", "0.031", 6),
    _p("held-out hard", "§5.11", "0.25", 6, 1),
    _p("held-out random", "§5.11", "0.34", 6, 2),
    _p("held-out soft", "§5.11", "0.031", 6, 0),
    _p("held-out soft, generations 28-30", "§5.11", "0.062", 6),
    _p("held-out caller, soft", "§5.11", "0.031", 6),
    _p("held-out caller, hard", "§5.11", "0.062", 6),
    _p("held-out caller, random", "§5.11", "0.062", 6),
    _p("shuffled binding, random", "§5.13", "0.031", 6, 0),
    _p("capacity-matched uniform", "§5.13", "0.031", 6, 0),
    _p("hard - capacity-matched uniform", "§5.13", "0.031", 6, 0),
    _p("IPW - uniform", "§5.14", "0.031", 6, 0),
    _p("IPW - floored soft", "§5.14", "0.031", 6),
    _p("random basis", "§5.14", "0.75", 6),
    _p("matched basis", "§5.14", "0.06", 6),
    _p("matched - random basis", "§5.14", "0.031", 6, 0),
    _p("burst", "§5.14", "0.031", 6, 0),
    _p("catch-up - burst", "§5.14", "0.031", 6, 0),
    _p("synthetic soft, worst regime", "§5.1", "0.008", 10),
    _p("synthetic random, worst regime", "§5.1", "0.002", 10),
    _p("synthetic oracle, smallest p", "§5.1", "0.11", 10),
)


def exact_p_checks() -> list[PaperRow]:
    """All rows of this part."""
    rows = [_floor("0.03125", 6), _floor("0.0078125", 8), _floor("0.002", 10)]
    for item in PUBLISHED:
        name = f"sign-flip p of {item.what}, n = {item.n}"
        step = smallest_p(item.n)
        if step > 2 * item.p.half_unit:
            rows.append(attainable(name, item.source, item.p, step, "nearest multiple of 2/2^n"))
        if item.minority is not None:
            rows.append(_sign_count(item, item.minority))
    return rows


def _floor(text: str, n: int) -> PaperRow:
    p = sign_flip([1.0] * n).p
    assert p is not None
    return exactly(f"smallest sign-flip p, n = {n}", "§3", Printed(text), p, note="n equal differences")


def _sign_count(item: PrintedP, minority: int) -> PaperRow:
    least = smallest_p(item.n) * 2**minority
    signs = f"{item.n - minority}/{item.n} seeds of one sign"
    within = item.p.value >= least - item.p.half_unit * (1 + 1e-9)
    if minority == 0:
        within = within and item.p.value <= least + item.p.half_unit
    relation = "p must be" if minority == 0 else "p must be at least"
    return holds(
        f"p of {item.what} against its signs",
        item.source,
        item.p.value,
        least,
        within,
        f"{signs}: {relation} {least:.5f}",
    )
