"""One contract for every scheme, then what each scheme is for."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from search_worlds import MODULES, example_arm, settings_for

from nograd.errors import ConfigError
from nograd.search.allocation import Allocation, allocate
from nograd.search.arms import SCHEMES
from nograd.search.settings import SearchSettings

UNIFORM_CREDIT = np.full(4, 0.25)
SKEWED = np.array([0.1, 0.2, 0.3, 0.4])


@st.composite
def situations(draw: st.DrawFn, scheme: str) -> tuple[SearchSettings, NDArray[np.float64], int]:
    count = draw(st.integers(1, 6))
    floor = draw(st.integers(0, 2))
    names = tuple(f"m{index}" for index in range(count))
    search = SearchSettings(
        modules=names,
        dim=2,
        seed=draw(st.integers(-3, 50)),
        pairs=floor * count + draw(st.integers(0 if floor else 1, 9)),
        arm=example_arm(scheme, floor, module=draw(st.sampled_from(names))),
    )
    raw = np.array(draw(st.lists(st.floats(0, 1), min_size=count, max_size=count)))
    credit = raw / raw.sum() if raw.sum() > 1e-3 else np.full(count, 1 / count)
    return search, credit, draw(st.integers(0, 44))


def at(search: SearchSettings, credit: NDArray[np.float64], generation: int) -> Allocation:
    return allocate(search, credit, generation, bottleneck=search.count - 1)


@pytest.mark.parametrize("scheme", SCHEMES)
@given(data=st.data())
@settings(deadline=None, max_examples=60)
def test_contract(scheme: str, data: st.DataObject) -> None:
    search, credit, generation = data.draw(situations(scheme))
    before = credit.copy()
    split = at(search, credit, generation)

    assert split.pairs.dtype == np.int64
    assert split.pairs.sum() == search.pairs
    assert (split.pairs >= search.arm.floor).all()
    assert ((split.inclusion >= 0) & (split.inclusion <= 1)).all()
    assert (split.inclusion[split.pairs > 0] > 0).all()
    assert (split.pairs[split.inclusion == 1] > 0).all()
    assert ((split.sigma >= search.sigma / 2) & (split.sigma <= search.sigma * 2)).all()

    np.testing.assert_array_equal(credit, before)
    again = at(search, credit, generation)
    np.testing.assert_array_equal(split.pairs, again.pairs)
    np.testing.assert_array_equal(split.inclusion, again.inclusion)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    "credit",
    [
        np.zeros(4),
        np.array([np.nan, 0.5, 0.5, 0.0]),
        np.array([-0.5, 0.5, 0.5, 0.5]),
        np.array([np.inf, 0.0, 0.0, 0.0]),
        np.full(4, 0.5),
        np.full(3, 1 / 3),
    ],
)
def test_credit_off_the_simplex_is_refused(scheme: str, credit: NDArray[np.float64]) -> None:
    search = settings_for(arm=example_arm(scheme))
    with pytest.raises(ConfigError, match="credit must be 4 non-negative shares that sum to 1, got"):
        at(search, credit, 0)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_floor_of_one_starves_nobody(scheme: str) -> None:
    search = settings_for(arm=example_arm(scheme, floor=1), pairs=6)
    for generation in range(45):
        split = at(search, SKEWED, generation)
        assert (split.pairs >= 1).all()
        np.testing.assert_array_equal(split.inclusion, 1)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_floor_that_takes_all_pairs_is_uniform(scheme: str) -> None:
    search = settings_for(arm=example_arm(scheme, floor=1), pairs=4)
    np.testing.assert_array_equal(at(search, SKEWED, 5).pairs, 1)


def drawn(arm: str, count: int = 1500, pairs: int = 4) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Pairs of many generations at fixed credit, and the inclusion claimed for them."""
    search = settings_for(arm, pairs=pairs, generations=count)
    gain = np.array([0.1, 0.0, 0.3, 0.2])
    splits = [allocate(search, SKEWED, generation, gain) for generation in range(count)]
    return np.stack([split.pairs for split in splits]), splits[0].inclusion


@pytest.mark.parametrize(
    ("arm", "pairs"),
    [
        ("random", 4),
        ("hard_noisy:q=0.5", 4),
        ("hard_noisy:q=0.25", 2),
        ("sparse", 4),
        ("sparse", 1),
        ("bandit", 4),
        ("bandit:explore=1", 2),
    ],
)
def test_inclusion_is_the_measured_frequency(arm: str, pairs: int) -> None:
    counts, inclusion = drawn(arm, pairs=pairs)
    measured = (counts > 0).mean(axis=0)
    error = np.sqrt(inclusion * (1 - inclusion) / len(counts))
    assert (np.abs(measured - inclusion) <= 4 * error).all()


@pytest.mark.parametrize(
    ("arm", "nominal"),
    [
        ("hard", 0.0),
        ("hard_noisy:q=0.25", 0.188),
        ("hard_noisy:q=0.5", 0.375),
        ("sparse", 0.5),
        ("hard_noisy:q=0.75", 0.562),
        ("random", 0.75),
    ],
)
def test_nominal_starvation_of_the_bottleneck_is_the_papers(arm: str, nominal: float) -> None:
    """Paper Table 5, column "starv. (nominal)"; the bottleneck has the most credit."""
    _, inclusion = drawn(arm, count=1)
    assert 1 - inclusion[-1] == pytest.approx(nominal, abs=6e-4)


def test_hard_ties_to_module_0_at_uniform_credit() -> None:
    np.testing.assert_array_equal(at(settings_for("hard"), UNIFORM_CREDIT, 0).pairs, [4, 0, 0, 0])
    np.testing.assert_array_equal(at(settings_for("hard"), SKEWED, 0).pairs, [0, 0, 0, 4])


def test_noise_ends_are_hard_and_random_and_more_noise_keeps_the_less_noisy_draws() -> None:
    np.testing.assert_array_equal(drawn("hard_noisy:q=0", 60)[0], drawn("hard", 60)[0])
    np.testing.assert_array_equal(drawn("hard_noisy:q=1", 60)[0], drawn("random", 60)[0])
    little, much = drawn("hard_noisy:q=0.2", 60)[0], drawn("hard_noisy:q=0.6", 60)[0]
    diverted = little[:, -1] == 0
    assert diverted.any()
    np.testing.assert_array_equal(little[diverted], much[diverted])


@pytest.mark.parametrize("pairs", [1, 2, 4, 6, 7])
def test_uniform_is_fair_over_m_generations(pairs: int) -> None:
    search = settings_for(pairs=pairs)
    splits = np.stack([at(search, SKEWED, generation).pairs for generation in range(8)])
    assert (np.ptp(splits, axis=1) <= 1).all()
    np.testing.assert_array_equal(splits[:4].sum(axis=0), pairs)
    np.testing.assert_array_equal(splits[4:].sum(axis=0), pairs)


def test_soft_follows_softmax_and_sharpens_from_1_to_3() -> None:
    search = settings_for("soft", pairs=1000, generations=11)
    for generation, beta in ((0, 1.0), (5, 2.0), (10, 3.0)):
        weights = np.exp(beta * SKEWED)
        quota = 1000 * weights / weights.sum()
        assert (np.abs(at(search, SKEWED, generation).pairs - quota) < 1).all()


def test_soft_in_a_run_of_one_generation_uses_beta_1() -> None:
    first = at(settings_for("soft", pairs=1000, generations=9), SKEWED, 0).pairs
    only = at(settings_for("soft", pairs=1000, generations=1), SKEWED, 0).pairs
    np.testing.assert_array_equal(first, only)


def test_soft_does_not_depend_on_the_order_of_the_modules() -> None:
    search, order = settings_for("soft", pairs=9), [2, 0, 3, 1]
    straight, permuted = at(search, SKEWED, 20).pairs, at(search, SKEWED[order], 20).pairs
    np.testing.assert_array_equal(straight[order], permuted)


def test_soft_sigma_scales_sigma_with_credit_and_splits_as_soft() -> None:
    credit = np.array([0.0, 0.05, 0.15, 0.8])
    split = at(settings_for("soft_sigma", sigma=0.2), credit, 3)
    np.testing.assert_allclose(split.sigma, 0.2 * np.array([0.5, 0.6, 0.8, 2.0]))
    np.testing.assert_array_equal(split.pairs, at(settings_for("soft"), credit, 3).pairs)
    np.testing.assert_allclose(at(settings_for("soft_sigma"), UNIFORM_CREDIT, 0).sigma, 0.3)


def test_sparse_serves_a_random_half_equally() -> None:
    counts, _ = drawn("sparse", 300)
    assert ((counts == 2).sum(axis=1) == 2).all()
    assert len(Counter(map(tuple, counts.tolist()))) == 6


def test_lock_and_oracle_serve_their_module() -> None:
    np.testing.assert_array_equal(at(settings_for("lock:module=caller"), SKEWED, 9).pairs, [0, 0, 4, 0])
    split = allocate(settings_for("oracle"), SKEWED, 0, bottleneck=1)
    np.testing.assert_array_equal(split.pairs, [0, 4, 0, 0])
    with pytest.raises(ConfigError, match="known bottleneck"):
        allocate(settings_for("oracle"), SKEWED, 0)


def test_arms_of_a_seed_share_the_random_module_whatever_their_floor() -> None:
    plain = [np.argmax(at(settings_for("random"), SKEWED, g).pairs) for g in range(20)]
    floored = [np.argmax(at(settings_for("random:floor=1", pairs=8), SKEWED, g).pairs) for g in range(20)]
    assert plain == floored
    assert len(set(plain)) == len(MODULES)
