"""The allocation schemes: each says where the free pairs of a generation go (DESIGN §4, table)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from nograd.errors import ConfigError
from nograd.search import bandit
from nograd.search.apportion import deal, largest_remainder
from nograd.search.arms import SCHEMES
from nograd.search.burst import is_burst
from nograd.search.settings import SearchSettings
from nograd.search.streams import stream


@dataclass(frozen=True, eq=False)
class Situation:
    """What a scheme may look at. credit, gain: float64 [modules]; bottleneck: index, where it is known."""

    settings: SearchSettings
    generation: int
    credit: NDArray[np.float64]
    gain: NDArray[np.float64]
    bottleneck: int | None

    @property
    def free(self) -> int:
        return self.settings.free_pairs

    @property
    def modules(self) -> int:
        return self.settings.count

    def draws(self, what: str) -> np.random.Generator:
        """Randomness of this generation; arms with the same seed share it."""
        return stream(self.settings.seed, "allocation", what, self.generation)


@dataclass(frozen=True, eq=False)
class Routing:
    """pairs: int64 [modules], sums to the free pairs. inclusion: float64 [modules], the probability, before
    the generation's draw, that the module gets a free pair."""

    pairs: NDArray[np.int64]
    inclusion: NDArray[np.float64]


def uniform(s: Situation) -> Routing:
    return _certain(deal(s.free, range(s.modules), s.generation * s.free, s.modules))


def soft(s: Situation) -> Routing:
    progress = s.generation / max(1, s.settings.generations - 1)
    scores = (1 + 2 * progress) * s.credit
    return _certain(largest_remainder(s.free, np.exp(scores - scores.max())))


def hard(s: Situation) -> Routing:
    return _certain(_all_to(s, int(np.argmax(s.credit))))


def hard_noisy(s: Situation) -> Routing:
    """q = 0 is `hard`, q = 1 is `random`, and a larger q is noisy wherever a smaller one is."""
    q = s.settings.arm.q
    routed, blind = hard(s), random(s)
    pairs = blind.pairs if s.draws("noise").random() < q else routed.pairs
    return Routing(pairs, (1 - q) * routed.inclusion + q * blind.inclusion)


def random(s: Situation) -> Routing:
    module = int(np.argmax(s.draws("routing").random(s.modules)))
    return Routing(_all_to(s, module), np.full(s.modules, float(s.free > 0) / s.modules))


def sparse(s: Situation) -> Routing:
    half = max(1, s.modules // 2)
    chosen = np.zeros(s.modules)
    chosen[s.draws("routing").permutation(s.modules)[:half]] = 1.0
    return Routing(largest_remainder(s.free, chosen), _sparse_inclusion(s.modules, half, s.free))


def oracle(s: Situation) -> Routing:
    if s.bottleneck is None:
        raise ConfigError("arm 'oracle' needs a known bottleneck; use it with the synthetic environment only")
    return _certain(_all_to(s, s.bottleneck))


def lock(s: Situation) -> Routing:
    return _certain(_all_to(s, s.settings.target))


def burst(s: Situation) -> Routing:
    target, generation = s.settings.target, s.generation
    if is_burst(s.settings, generation):
        return _certain(_all_to(s, target))
    others = [module for module in range(s.modules) if module != target]
    quiet_generations = generation - generation // s.modules - 1
    return _certain(deal(s.free, others, quiet_generations * s.free, s.modules))


def bandit_draws(s: Situation) -> Routing:
    chances = bandit.probabilities(s.gain, s.settings.arm.explore)
    drawn = s.draws("routing").choice(s.modules, size=s.free, p=chances)
    return Routing(np.bincount(drawn, minlength=s.modules).astype(np.int64), 1 - (1 - chances) ** s.free)


ROUTES: dict[str, Callable[[Situation], Routing]] = {
    "uniform": uniform,
    "soft": soft,
    "soft_sigma": soft,
    "hard": hard,
    "hard_noisy": hard_noisy,
    "random": random,
    "sparse": sparse,
    "oracle": oracle,
    "lock": lock,
    "burst": burst,
    "bandit": bandit_draws,
}


def route(situation: Situation) -> Routing:
    """Where the settings' scheme sends the free pairs. Raises ConfigError if another package's scheme does not
    send them all."""
    scheme = situation.settings.arm.scheme
    if scheme in ROUTES:
        return ROUTES[scheme](situation)
    plugged = SCHEMES[scheme].route
    assert plugged is not None, scheme
    routing = plugged(situation)
    pairs = np.asarray(routing.pairs)
    if pairs.shape != (situation.modules,) or pairs.min() < 0 or pairs.sum() != situation.free:
        raise ConfigError(
            f"scheme {scheme!r} sent the pairs {pairs.tolist()}; it must return {situation.modules} integers, "
            f"0 or more, that sum to {situation.free}"
        )
    return Routing(pairs.astype(np.int64), np.asarray(routing.inclusion, np.float64))


def _certain(pairs: NDArray[np.int64]) -> Routing:
    return Routing(pairs, (pairs > 0).astype(np.float64))


def _all_to(s: Situation, module: int) -> NDArray[np.int64]:
    pairs = np.zeros(s.modules, np.int64)
    pairs[module] = s.free
    return pairs


def _sparse_inclusion(modules: int, half: int, free: int) -> NDArray[np.float64]:
    """Module m gets a pair if it is chosen and fewer than `free` modules before it are (hypergeometric)."""
    return np.array(
        [
            sum(comb(m, j) * comb(modules - 1 - m, half - 1 - j) for j in range(min(half, free)))
            / comb(modules, half)
            for m in range(modules)
        ]
    )
