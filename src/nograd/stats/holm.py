"""Holm's step-down adjustment of several p-values."""

from __future__ import annotations

from collections.abc import Sequence

from statsmodels.stats.multitest import multipletests

from nograd.errors import ConfigError


def holm(p_values: Sequence[float | None]) -> tuple[float | None, ...]:
    """Adjusted p-values in the order given. None (an undefined test) stays None and does not count as a test.

    ConfigError for a p-value outside [0, 1], NaN included."""
    for p in p_values:
        if p is not None and not 0 <= p <= 1:
            raise ConfigError(f"a p-value lies in [0, 1], got {p}; pass None for an undefined test")
    defined = [p for p in p_values if p is not None]
    adjusted = iter(multipletests(defined, method="holm")[1].tolist() if defined else ())
    return tuple(None if p is None else next(adjusted) for p in p_values)
