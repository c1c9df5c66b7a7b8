"""A black box of one's own is tuned like any evaluator: concurrency and transient failures change nothing."""

from __future__ import annotations

import asyncio
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from black_box_worlds import DIM, MODULES, Flaky, smooth
from numpy.typing import NDArray
from run_bytes import run_bytes

import nograd
from nograd.errors import ConfigError, NogradError, RunError
from nograd.run.black_box import BlackBox
from nograd.run.tune_black_box import tune_black_box
from nograd.search.evaluation import Evaluation

Theta = NDArray[np.float32]


def one_number(theta: Theta, generation: int, seed: int) -> float:
    return float(smooth(theta, generation, seed)["success"])


async def smooth_async(theta: Theta, generation: int, seed: int) -> dict[str, Any]:
    await asyncio.sleep(0.001 * (abs(hash(theta.tobytes())) % 3))
    return smooth(theta, generation, seed)


@pytest.fixture
def small(tmp_path: Path) -> Callable[..., Any]:
    """tune_black_box with small settings."""
    defaults: dict[str, Any] = {"out": tmp_path / "run", "generations": 3, "pause": 0.001, "progress": False}
    return lambda function=smooth, modules=MODULES, dim=DIM, **options: tune_black_box(
        function, modules, dim, **{**defaults, **options}
    )


def test_a_function_is_climbed(small: Callable[..., Any], tmp_path: Path) -> None:
    result = small(generations=25, settings=["search.arm=soft"])
    assert result.theta.shape == (2, 3)
    assert result.summary.zero_theta_success < 0.1
    assert result.summary.last5_success > 0.9
    record = nograd.load_run(tmp_path / "run")
    assert np.array_equal(record.theta[-1], result.theta)
    assert record.generations[0].metrics["distance"] > 4 * record.generations[-1].metrics["distance"]
    assert record.generations[0].counts == {"evaluations": 9}
    assert record.generations[0].blame is not None


def test_one_number_is_success_fitness_and_reward(small: Callable[..., Any], tmp_path: Path) -> None:
    small(one_number)
    for record in nograd.load_run(tmp_path / "run").generations:
        assert record.success == record.fitness == record.reward
        assert 0 < record.success < 1


@pytest.mark.parametrize("function", [Flaky(seconds=0.002), smooth_async], ids=["threads", "async"])
def test_concurrency_changes_nothing(small: Callable[..., Any], tmp_path: Path, function: Any) -> None:
    for concurrency in (1, 3, 20):
        small(function, out=tmp_path / str(concurrency), concurrency=concurrency)
    assert run_bytes(tmp_path / "1") == run_bytes(tmp_path / "3") == run_bytes(tmp_path / "20")


@pytest.mark.parametrize("concurrency", [1, 4])
def test_so_many_are_under_way_at_once(small: Callable[..., Any], concurrency: int) -> None:
    function = Flaky(transient=3, seconds=0.02)
    small(function, concurrency=concurrency, generations=1)
    assert function.most_under_way == concurrency


def test_slow_evaluations_wait_together(small: Callable[..., Any]) -> None:
    meeting = threading.Barrier(9, timeout=20)

    def waits_for_all(theta: Theta, generation: int, seed: int) -> float:
        meeting.wait()
        return one_number(theta, generation, seed)

    small(waits_for_all, concurrency=9, generations=2)


def test_a_run_with_transient_failures_is_the_same_run(small: Callable[..., Any], tmp_path: Path) -> None:
    flaky = Flaky(transient=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small(flaky, out=tmp_path / "flaky")
        small(Flaky(), out=tmp_path / "steady")
    assert max(flaky.attempts.values()) == 2
    assert run_bytes(tmp_path / "flaky") == run_bytes(tmp_path / "steady")


def test_a_candidate_that_always_fails_drops_its_pair(small: Callable[..., Any], tmp_path: Path) -> None:
    flaky = Flaky(permanent=17)
    with pytest.warns(UserWarning, match=r"evaluations failed .* ConnectionError: question \d+ .*\(2 attempts\)"):
        result = small(flaky, retries=1, generations=6)
    generations = nograd.load_run(tmp_path / "run").generations
    lost = {
        (record.generation, row // 2)
        for record in generations
        for row, candidate in enumerate(record.candidates)
        if np.isnan(candidate.fitness)
    }
    assert lost
    assert {(record.generation, pair) for record in generations for pair in record.dropped} == lost
    assert sum(count == 2 for count in flaky.attempts.values()) >= len(lost)
    assert np.isfinite(result.theta).all()


def test_a_center_that_always_fails_stops_the_run_which_goes_on_later(
    small: Callable[..., Any], tmp_path: Path
) -> None:
    class Closes:
        def __init__(self, after: int) -> None:
            self.after = after

        def __call__(self, theta: Theta, generation: int, seed: int) -> dict[str, Any]:
            if generation >= self.after:
                raise OSError("closed for today")
            return smooth(theta, generation, seed)

    with pytest.raises(RunError, match=r"center of generation 2 .* OSError: closed for today \(3 attempts\)") as caught:
        small(Closes(2), out=tmp_path / "stopped")
    assert isinstance(caught.value.__cause__.__cause__, OSError), "--debug shows where it came from"
    assert len(nograd.load_run(tmp_path / "stopped").generations) == 2
    small(Closes(9), out=tmp_path / "stopped", resume=True)
    small(Closes(9), out=tmp_path / "whole")
    assert run_bytes(tmp_path / "stopped") == run_bytes(tmp_path / "whole")


def test_a_failing_center_does_not_wait_for_the_others() -> None:
    box = BlackBox(only_candidates_hang, MODULES, DIM, seed=1, concurrency=2, retries=0)
    with pytest.raises(RunError, match="RuntimeError: no center"):
        box.evaluate(0, np.stack([np.zeros((2, DIM)), np.ones((2, DIM))]).astype(np.float32))


async def only_candidates_hang(theta: Theta, generation: int, seed: int) -> float:
    del generation, seed
    if theta.any():
        await asyncio.sleep(3600)
    raise RuntimeError("no center")


def test_the_same_event_loop_serves_all_generations_even_in_a_notebook(small: Callable[..., Any]) -> None:
    loops = set()

    async def remembers(theta: Theta, generation: int, seed: int) -> float:
        loops.add(asyncio.get_running_loop())
        return one_number(theta, generation, seed)

    async def notebook() -> None:
        small(remembers)

    asyncio.run(notebook())
    assert len(loops) == 1


def test_a_black_box_may_write_on_its_theta(small: Callable[..., Any], tmp_path: Path) -> None:
    seen: set[bytes] = set()

    def vandal(theta: Theta, generation: int, seed: int) -> dict[str, Any]:
        result, key = smooth(theta, generation, seed), theta.tobytes()
        theta[:] = np.nan
        if key not in seen:
            seen.add(key)
            raise OSError("asked for the first time")
        return result

    small(vandal)
    small(out=tmp_path / "tidy")
    theta = nograd.load_run(tmp_path / "run").theta
    assert np.array_equal(theta, nograd.load_run(tmp_path / "tidy").theta)


def test_a_candidate_without_a_result_is_no_mistake(small: Callable[..., Any], tmp_path: Path) -> None:
    def undecided(theta: Theta, generation: int, seed: int) -> Evaluation | float:
        if theta[0, 0] > 0.1:
            return float("nan")
        number = one_number(theta, generation, seed)
        return Evaluation(number, number, number)

    small(undecided, generations=1)
    (record,) = nograd.load_run(tmp_path / "run").generations
    assert record.dropped


def test_resumed_only_with_the_same_function_and_facts(small: Callable[..., Any]) -> None:
    whole = small(facts={"service": "v1"})
    again = small(facts={"service": "v1"}, resume=True, concurrency=2, retries=5, timeout=9.0)
    assert np.array_equal(again.theta, whole.theta)
    with pytest.raises(RunError, match="already holds a run"):
        small()
    with pytest.raises(RunError, match=r"facts\.function was"):
        small(one_number, facts={"service": "v1"}, resume=True)
    with pytest.raises(RunError, match=r"facts\.service was 'v1' and is now 'v2'"):
        small(facts={"service": "v2"}, resume=True)
    with pytest.raises(RunError, match="seed was 1 and is now 2"):
        small(facts={"service": "v1"}, seed=2, resume=True)


@pytest.mark.parametrize("arm", ["soft", "soft_sigma", "hard", "hard_noisy:q=0.2"])
def test_an_arm_that_needs_blame_and_gets_none_is_warned_about_once(small: Callable[..., Any], arm: str) -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        small(one_number, settings=[f"search.arm={arm}"])
    assert [str(warning.message).partition(",")[0] for warning in seen] == ["the evaluator gives no blame"]


def test_nothing_to_warn_about(small: Callable[..., Any], tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small(one_number, settings=["search.arm=bandit"])
        small(settings=["search.arm=hard"], out=tmp_path / "blame")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"modules": []}, "distinct names"),
        ({"modules": "first"}, "distinct names"),
        ({"modules": {"first": 3, "second": 2}}, "all modules have dim coefficients"),
        ({"modules": ["a", "a"]}, "distinct names"),
        ({"modules": ["a", ""]}, "distinct names"),
        ({"dim": 0}, "dim must be a whole number, 1 or more, got 0"),
        ({"dim": [3, 2]}, "dim must be a whole number"),
        ({"concurrency": 0}, "concurrency must be a whole number"),
        ({"retries": -1}, "retries is a number of attempts after the first, 0 or more, got -1"),
        ({"timeout": 0.0}, "timeout is in seconds, more than 0"),
        ({"timeout": float("nan")}, "timeout is in seconds, more than 0"),
        ({"pause": float("inf")}, "pause is in seconds"),
        ({"function": lambda _: 1.0}, "called with theta, generation and seed"),
        ({"function": 3}, "called with theta, generation and seed"),
        ({"function": lambda *_: "good"}, "returned value 'good'; it must return a number"),
        ({"function": lambda *_: None}, "returned value None"),
        ({"function": lambda *_: 7.5}, "returned success 7.5; it must be a share between 0 and 1"),
        ({"function": lambda *_: float("nan")}, "success nan for the center"),
        ({"facts": {"function": "mine"}}, "the key 'function'"),
        ({"facts": {"data": object()}}, "facts must be JSON-able"),
        ({"settings": ["search.sgima=1"]}, "search.sigma"),
        ({"settings": ["tasks.batch=4"]}, "'tasks.batch=4' means nothing to a black box"),
        ({"generations": 0}, "search.generations"),
        ({"settings": ["search.arm=oracle"]}, "needs a known bottleneck"),
    ],
)
def test_mistakes_are_sentences(change: dict[str, Any], sentence: str, small: Callable[..., Any]) -> None:
    with pytest.raises(NogradError, match=sentence):
        small(**change)


def test_a_mistake_of_the_function_is_not_tried_again(small: Callable[..., Any]) -> None:
    calls = []

    def refuses(theta: Theta, generation: int, seed: int) -> float:
        del generation, seed
        calls.append(theta.tobytes())
        raise ConfigError("the service wants a key; set SERVICE_KEY")

    with pytest.raises(ConfigError, match="set SERVICE_KEY"):
        small(refuses, concurrency=1)
    time.sleep(0.2)
    assert len(calls) == len(set(calls)) < 9, "and the others are not asked any more"
