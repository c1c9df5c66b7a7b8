"""Settings: defaults of the paper, and every setting out of range named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load, save
from search_worlds import MODULES, run, settings_for

from nograd.errors import ConfigError
from nograd.search.es import SearchSettings, SearchState, init


def test_defaults_are_the_papers() -> None:
    search = SearchSettings(MODULES, dim=32, seed=0)
    found = (search.generations, search.pairs, search.sigma, search.lr, search.clip, search.credit_rate)
    assert found == (45, 4, 0.3, 0.3, 0.5, 0.2)
    assert search.arm.label == "uniform"
    np.testing.assert_array_equal(search.clips, [0.5] * 4)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"modules": ()}, "modules must be one or more distinct names"),
        ({"modules": ("a", "a")}, "distinct names, got ('a', 'a')"),
        ({"dim": 0}, "dim must be 1 or more, got 0"),
        ({"pairs": 0}, "pairs must be 1 or more, got 0"),
        ({"generations": 0}, "generations must be 1 or more, got 0"),
        ({"sigma": 0.0}, "sigma must be a positive number, got 0.0"),
        ({"lr": float("nan")}, "lr must be a positive number, got nan"),
        ({"sigma": float("inf")}, "sigma must be a positive number, got inf"),
        ({"clip": 0.0}, "clip must be positive, got 0.0"),
        ({"clip": float("nan")}, "clip must be positive, got nan"),
        ({"clip": (0.5, 0.5)}, "one per module (4), got 2"),
        ({"clip": (0.5, 0.5, -1.0, 0.5)}, "clip must be positive"),
        ({"credit_rate": 1.5}, "credit_rate must be between 0 and 1, got 1.5"),
        ({"arm": "uniform:floor=2"}, "floor 2 for 4 modules takes 8 pairs of 4; lower the floor to 1"),
        ({"arm": "hard:floor=1", "pairs": 3}, "lower the floor to 0 or raise pairs to 4"),
        ({"arm": "lock:module=caler"}, "did you mean 'caller'"),
    ],
)
def test_what_is_out_of_range_is_named(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as error:
        settings_for(**changes)
    assert says in str(error.value)


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as error:
        settings_for(sigma=-1.0, dim=0, credit_rate=2.0)
    assert all(name in str(error.value) for name in ("sigma", "dim", "credit_rate"))


def test_state_round_trips_through_safetensors() -> None:
    search = settings_for("burst:module=caller,spread=true")
    state = run(search, 6)[-1][0]
    assert state.queued.any()
    back = SearchState.from_arrays(load(save(state.arrays())))
    assert back.generation == 6
    for name, array in state.arrays().items():
        assert back.arrays()[name].dtype == array.dtype
        np.testing.assert_array_equal(back.arrays()[name], array)


def test_the_start_is_the_untouched_model_and_uniform_credit() -> None:
    state = init(settings_for())
    assert state.generation == 0
    assert not state.theta.any()
    np.testing.assert_array_equal(state.credit, 0.25)
