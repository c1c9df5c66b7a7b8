"""What every test asks of a sample of differences: is it usable, and does it vary."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nograd.errors import ConfigError

Sample = NDArray[np.float64]

LARGEST = 1e100
"""Beyond this a square overflows float64, and a success or fitness difference is an accident anyway."""

ROUNDING = 1e-12
"""Relative size under which a difference or a spread is float rounding: means over a few hundred
generations err by about 1e-14."""


def as_sample(differences: ArrayLike) -> Sample:
    """Differences as float64 [n]; ConfigError for another shape."""
    sample = np.asarray(differences, dtype=np.float64)
    if sample.ndim != 1:
        raise ConfigError(f"differences must be one number per seed, got shape {sample.shape}; flatten them")
    return sample


def why_unusable(sample: Sample, least: int, unit: str = "seeds") -> str | None:
    """Why a statistic that needs `least` values (called `unit`) is undefined here, or None if it is not."""
    infinite = int(np.count_nonzero(~np.isfinite(sample)))
    if infinite:
        return f"{infinite} of {sample.size} values are not finite"
    if sample.size < least:
        return f"needs {least} {unit}, got {sample.size}"
    if sample.size and np.abs(sample).max() > LARGEST:
        return f"a value exceeds {LARGEST:g} in size"
    return None


def mean_of(sample: Sample) -> float | None:
    """Mean, or None where it is undefined (no seeds, or a value that is not finite)."""
    return None if why_unusable(sample, 1) else float(sample.mean())


def sd_of(sample: Sample) -> float | None:
    """Standard deviation (n - 1), or None where undefined; 0.0 where the values differ by rounding only."""
    if why_unusable(sample, 2):
        return None
    if np.ptp(sample) <= ROUNDING * np.abs(sample).max():
        return 0.0
    return float(sample.std(ddof=1))


def why_undefined_summary(mean: float, sd: float, n: int) -> str | None:
    """Why a t statistic is undefined for a mean, standard deviation and n seeds, or None if it is defined."""
    if n < 2:
        return f"needs 2 seeds, got {n}"
    if not np.isfinite(mean):
        return f"the mean is {mean}"
    if not (np.isfinite(sd) and sd >= 0):
        return f"the standard deviation is {sd}"
    return None


def check_open_unit(name: str, value: float) -> None:
    """ConfigError unless 0 < value < 1 (a confidence, a power, an alpha)."""
    if not 0 < value < 1:
        raise ConfigError(f"{name} must lie between 0 and 1, got {value}; 0.95 is meant as 0.95, not 95")


def check_margin(margin: float) -> None:
    """ConfigError unless the margin is positive and finite."""
    if not (np.isfinite(margin) and margin > 0):
        raise ConfigError(f"the equivalence margin must be positive, got {margin}; the paper's is 0.02")
