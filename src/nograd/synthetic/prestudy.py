"""The pre-study: every arm in every regime under the same seeds, as contrasts with `uniform` (paper §5.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nograd.errors import ConfigError
from nograd.search.arms import parse_arm
from nograd.stats import Contrast, compare
from nograd.synthetic.regimes import REGIMES, Regime, find_regime
from nograd.synthetic.simulate import GENERATIONS, simulate
from nograd.synthetic.table6 import ARMS, DELTA_AUC, UNIFORM_AUC

SEEDS = range(1, 11)
CONTROL = "uniform"
OnArm = Callable[[Regime, str], None]


@dataclass(frozen=True)
class Row:
    """One arm in one regime.

    auc: mean center success by seed. contrast: AUC against uniform's, paired by seed; None for uniform.
    """

    regime: Regime
    arm: str
    auc: dict[int, float]
    contrast: Contrast | None

    @property
    def value(self) -> float:
        """What Table 6 shows: the mean AUC of uniform, another arm's mean difference from it."""
        if self.contrast is None or self.contrast.estimate is None:
            return sum(self.auc.values()) / len(self.auc)
        return self.contrast.estimate

    @property
    def published(self) -> float | None:
        """The paper's number for `value`; None for an arm that the paper did not run."""
        if self.arm == CONTROL:
            return UNIFORM_AUC.get(self.regime.name)
        return DELTA_AUC.get(self.regime.name, {}).get(self.arm)

    @property
    def significant(self) -> bool:
        """Whether the paired sign-flip p is below 0.05."""
        return self.contrast is not None and self.contrast.p is not None and self.contrast.p < 0.05


def prestudy(
    arms: Sequence[str] = ARMS,
    regimes: Sequence[str] = tuple(REGIMES),
    seeds: Sequence[int] = SEEDS,
    generations: int = GENERATIONS,
    on_arm: OnArm | None = None,
) -> list[Row]:
    """Run the arms in the named regimes; `uniform` always runs, first. Rows: by regime, then by arm.

    on_arm: called before each simulation. Raises ConfigError for an unknown arm or regime, for fewer than two
    seeds or one twice, and for no generations.
    """
    _check(seeds, generations)
    labels = list(dict.fromkeys([CONTROL, *(parse_arm(arm).label for arm in arms)]))
    rows: list[Row] = []
    for regime in [find_regime(name) for name in dict.fromkeys(regimes)]:
        control: dict[int, float] = {}
        for arm in labels:
            if on_arm is not None:
                on_arm(regime, arm)
            auc = simulate(regime, arm, seeds, generations).auc
            control = control or auc
            rows.append(Row(regime, arm, auc, None if arm == CONTROL else compare(auc, control)))
    return rows


def _check(seeds: Sequence[int], generations: int) -> None:
    if len(seeds) < 2 or len(set(seeds)) != len(seeds):
        raise ConfigError(f"the pre-study pairs by seed: give two or more distinct seeds, got {list(seeds)}")
    if generations < 1:
        raise ConfigError(f"generations must be 1 or more, got {generations}")
