"""Table 6 of the paper: the pre-study's AUC under uniform, and what the other arms differ from it by."""

from __future__ import annotations

from collections.abc import Mapping

ARMS = ("uniform", "oracle", "soft", "hard", "random")

UNIFORM_AUC: Mapping[str, float] = {
    "stationary_tight": 0.900,
    "nonstationary_wide": 0.821,
    "nonstationary_tight": 0.768,
    "nonstationary_wide_d32": 0.767,
}

DELTA_AUC: Mapping[str, Mapping[str, float]] = {
    "stationary_tight": {"oracle": -0.009, "soft": -0.004, "hard": -0.037, "random": -0.141},
    "nonstationary_wide": {"oracle": -0.001, "soft": -0.006, "hard": -0.003, "random": 0.003},
    "nonstationary_tight": {"oracle": -0.006, "soft": -0.007, "hard": -0.032, "random": -0.220},
    "nonstationary_wide_d32": {"oracle": 0.001, "soft": 0.001, "hard": -0.010, "random": 0.001},
}

SIGNIFICANT = frozenset(
    {
        ("stationary_tight", "hard"),
        ("stationary_tight", "random"),
        ("nonstationary_wide", "soft"),
        ("nonstationary_tight", "hard"),
        ("nonstationary_tight", "random"),
    }
)
"""(regime, arm) with a star: paired sign-flip p < 0.05."""
