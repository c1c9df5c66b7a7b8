"""What stays fixed over one search: modules, budget, step rule, arm."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nograd.errors import ConfigError, unknown_name
from nograd.search.arms import UNIFORM, Arm


@dataclass(frozen=True)
class SearchSettings:
    """Settings of one search (DESIGN §4; the defaults are the paper's).

    modules: names, in the order of theta's first axis. dim: coefficients per module. pairs: mirrored pairs
    per generation. clip: largest norm of a module's step, one for all or one per module; infinity switches
    it off. credit_rate: weight α of the newest blame in the credit.
    Raises ConfigError that names every setting out of range.
    """

    modules: tuple[str, ...]
    dim: int
    seed: int
    generations: int = 45
    pairs: int = 4
    sigma: float = 0.3
    lr: float = 0.3
    clip: float | tuple[float, ...] = 0.5
    credit_rate: float = 0.2
    arm: Arm = UNIFORM

    def __post_init__(self) -> None:
        problems = list(_problems(self))
        if problems:
            raise ConfigError("; ".join(problems))
        if self.arm.module is not None and self.arm.module not in self.modules:
            raise unknown_name("module", self.arm.module, self.modules)

    @property
    def count(self) -> int:
        """Number of modules M."""
        return len(self.modules)

    @property
    def clips(self) -> NDArray[np.float64]:
        """Largest step norm per module, float64 [modules]."""
        return np.broadcast_to(np.asarray(self.clip, np.float64), self.count).copy()

    @property
    def free_pairs(self) -> int:
        """Pairs that are routed: all but the floor's."""
        return self.pairs - self.arm.floor * self.count

    @property
    def target(self) -> int:
        """Index of the arm's module; ConfigError if the arm names none."""
        if self.arm.module is None:
            raise ConfigError(f"arm {self.arm.label!r} names no module")
        return self.modules.index(self.arm.module)


def _problems(settings: SearchSettings) -> Iterator[str]:
    s = settings
    if not s.modules or len(set(s.modules)) != len(s.modules):
        yield f"modules must be one or more distinct names, got {s.modules!r}"
    for name in ("dim", "generations", "pairs"):
        if getattr(s, name) < 1:
            yield f"{name} must be 1 or more, got {getattr(s, name)}"
    for name in ("sigma", "lr"):
        if not 0 < getattr(s, name) < math.inf:
            yield f"{name} must be a positive number, got {getattr(s, name)}"
    if not 0 <= s.credit_rate <= 1:
        yield f"credit_rate must be between 0 and 1, got {s.credit_rate}"
    yield from _clip_problems(s)
    if s.pairs >= 1 and s.free_pairs < 0:
        floor, count = s.arm.floor, s.count
        yield (
            f"floor {floor} for {count} modules takes {floor * count} pairs of {s.pairs}; "
            f"lower the floor to {s.pairs // count} or raise pairs to {floor * count}"
        )


def _clip_problems(settings: SearchSettings) -> Iterator[str]:
    clips = settings.clip if isinstance(settings.clip, tuple) else (settings.clip,)
    if isinstance(settings.clip, tuple) and len(clips) != settings.count:
        yield f"clip must be one number or one per module ({settings.count}), got {len(clips)}"
    if not all(clip > 0 for clip in clips):
        yield f"clip must be positive, got {settings.clip}"
