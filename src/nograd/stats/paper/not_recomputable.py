"""Published figures that cannot be recomputed from what was published, and why."""

from __future__ import annotations

from dataclasses import dataclass

PER_SEED = "needs per-seed values; the dataset that holds them is not printed in the paper"
SWEEP = "needs the trained runs; a nograd sweep can measure it, arithmetic on the paper cannot"


@dataclass(frozen=True)
class NotRecomputable:
    """A figure, where it is printed, why it cannot be recomputed, and what was checked instead."""

    what: str
    source: str
    reason: str
    instead: str = ""


def not_recomputable() -> tuple[NotRecomputable, ...]:
    """All of them."""
    return (
        NotRecomputable(
            "every sign-flip p-value itself",
            "Tables 1, 5, 6; §5",
            PER_SEED,
            "attainable at its n; its sign count",
        ),
        NotRecomputable(
            "95% intervals of Table 5 and §5.13",
            "Table 5, §5.13",
            PER_SEED,
            "symmetry; side of zero against p",
        ),
        NotRecomputable(
            "n = 20 interval [-0.0204, -0.0029]",
            "§5.2",
            "the SD of the 20 differences is not printed, nor that of the first 8",
            "centre, pooled mean, and half-width within the range that both batches allow",
        ),
        NotRecomputable(
            "12-seed p_lower = 0.040",
            "§5.2",
            "the SD of the 12 differences is not printed",
            "p_upper from p_lower",
        ),
        NotRecomputable(
            "soft not certified at n = 8",
            "Table 1",
            "the paired SD is not printed",
            "with the SD implied by n = 20",
        ),
        NotRecomputable(
            "AUC columns and their SDs", "Table 1", SWEEP, "the AUC columns are whole task counts"
        ),
        NotRecomputable(
            "interval [+0.121, +0.145] of the BFCL rescue", "§5.10", PER_SEED, "symmetry; forced sign-flip p"
        ),
        NotRecomputable(
            "within-seed fit and seed-level bootstrap of the slope",
            "§5.7",
            "announced, but no numbers are printed",
        ),
        NotRecomputable("measured starvation rates", "Table 5", SWEEP, "whole counts out of 360 generations"),
        NotRecomputable(
            "SDs and p-values of the held-out metrics", "Table 3, §5.11", PER_SEED, "counts of tasks"
        ),
        NotRecomputable(
            "capacity-matched against random (+0.005) and hard (+0.069)",
            "§5.13",
            "the six-seed means of hard and random are not printed, only their eight-seed means",
        ),
        NotRecomputable(
            "synthetic AUC, differences and both-tiny TOST rows",
            "Table 6",
            "the environment's constants and per-seed values are not printed",
        ),
        NotRecomputable(
            "TOST of the floored soft arm and of the catch-up arm",
            "§5.14",
            "neither SD nor p-values are printed",
        ),
        NotRecomputable(
            "ledger rows 2 and 6 to 26 as rows",
            "Table 4",
            "row 2 states no bound, and the rows after 5 are missing in the copy at hand; rows 1 to 26 with "
            "4b, less the two unscored, make 25 of the 28, so three more sub-rows must be among the missing",
            "predictions quoted in the text; the count of misses",
        ),
        NotRecomputable("last-five means, final success, zero-θ levels", "Figure 1, §5", SWEEP),
        NotRecomputable("clip-bind rates, credit mass, concentration", "§5.10-5.13", SWEEP),
        NotRecomputable(
            "logit gaps and flip counts of the failure modes", "§4", "single diagnostics, no data printed"
        ),
        NotRecomputable("compute total of 280 GPU-hours", "reproducibility", "no per-run times are printed"),
    )
