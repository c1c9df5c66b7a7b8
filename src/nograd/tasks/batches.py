"""Which tasks a generation sees."""

from __future__ import annotations

import numpy as np

from nograd.errors import ConfigError


def batch(family_size: int, batch_size: int, rng: np.random.Generator) -> tuple[int, ...]:
    """Indices of `batch_size` distinct tasks out of `family_size`, in random order."""
    if not 1 <= batch_size <= family_size:
        raise ConfigError(
            f"a batch of {batch_size} tasks cannot be drawn from {family_size}; "
            f"set the batch size between 1 and {family_size}"
        )
    return tuple(int(index) for index in rng.choice(family_size, size=batch_size, replace=False))
