"""Task batches."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nograd.errors import ConfigError
from nograd.tasks.batches import batch


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 100), st.data())
def test_distinct_indices_from_the_key_alone(size, data):
    count = data.draw(st.integers(1, size))
    seed = data.draw(st.integers(0, 2**32))
    indices = batch(size, count, np.random.default_rng(seed))
    assert len(set(indices)) == count
    assert set(indices) <= set(range(size))
    assert indices == batch(size, count, np.random.default_rng(seed))


def test_every_task_is_drawn_equally_often():
    rng = np.random.default_rng(0)
    counts = np.bincount([index for _ in range(2000) for index in batch(8, 2, rng)], minlength=8)
    assert np.all(np.abs(counts - 500) < 100)


@pytest.mark.parametrize(("size", "count"), [(4, 5), (4, 0), (4, -1), (0, 1)])
def test_impossible_batches_are_refused(size, count):
    with pytest.raises(ConfigError, match=f"a batch of {count} tasks"):
        batch(size, count, np.random.default_rng(0))
