"""Somebody's own function as an evaluator: called once per candidate, several at a time, failures retried."""

from __future__ import annotations

import asyncio
import inspect
import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nograd.errors import ConfigError, RunError
from nograd.run.attempts import CallError, Patience, call
from nograd.run.loop_thread import LoopThread
from nograd.run.returned import read_returned
from nograd.search.evaluation import Evaluation, GenerationResult
from nograd.search.streams import stream

Returned = Evaluation | Mapping[str, Any] | float
"""See `run.returned.read_returned`."""

BlackBoxFunction = Callable[[NDArray[np.float32], int, int], Returned | Awaitable[Returned]]
"""theta (float32 [modules, dim], its own copy), generation, seed -> what it is worth; may be async."""

NO_RESULT = Evaluation(fitness=float("nan"), success=float("nan"), reward=float("nan"))
"""A candidate that could not be evaluated; the search drops its pair."""


class BlackBox:
    """An `Evaluator` around a function.

    The function is called once per candidate with theta, generation and seed, and must be a pure function of
    the three: theta = 0 is the untouched system, and whatever is random in it (which tasks, which luck) must
    be keyed by generation and seed, so that all candidates of a generation, and all arms of a seed, meet the
    same. A plain function runs in threads and must bear that; an async one must not block.

    modules: names; all have the same number of coefficients, dim. concurrency: calls under way at once; no
    results depend on it. retries, timeout (seconds per attempt), pause (seconds before the first retry;
    doubles): see `run.attempts.Patience`. A candidate that fails at every attempt has no result, which is
    warned about, and its pair is dropped; where it is the center, the run stops with a RunError and can be
    resumed. Raises ConfigError for arguments out of range."""

    def __init__(
        self,
        function: BlackBoxFunction,
        modules: Sequence[str],
        dim: int,
        *,
        seed: int,
        concurrency: int = 4,
        retries: int = 2,
        timeout: float | None = None,
        pause: float = 0.5,
    ) -> None:
        _check(function, modules, dim, concurrency)
        self.function, self.seed, self.concurrency = function, seed, concurrency
        self.patience = Patience(retries, timeout, pause)
        self._modules, self._dim = tuple(modules), dim
        self._thread = LoopThread()

    @property
    def modules(self) -> Sequence[str]:
        return self._modules

    @property
    def dim(self) -> int:
        return self._dim

    def bottleneck(self, generation: int) -> int | None:
        """Unknown."""
        del generation
        return None

    def evaluate(self, generation: int, thetas: NDArray[np.float32]) -> GenerationResult:
        """See `search.evaluation.Evaluator`. counts: evaluations, without further attempts, so that a run with
        transient failures is the same run."""
        results = self._thread.run(self._evaluate(generation, thetas))
        failures = {row: result for row, result in enumerate(results) if isinstance(result, CallError)}
        if failures:
            row, failure = next(iter(failures.items()))
            warnings.warn(
                f"generation {generation}: {len(failures)} of {len(thetas)} evaluations failed and their pairs "
                f"are dropped; the first, of candidate {row}: {failure}",
                stacklevel=2,
            )
        evaluations = tuple(NO_RESULT if isinstance(result, CallError) else result for result in results)
        return GenerationResult(evaluations, {"evaluations": len(thetas)})

    async def _evaluate(self, generation: int, thetas: NDArray[np.float32]) -> list[Evaluation | CallError]:
        """In the order of the candidates, the center first. The first exception ends all the others."""
        slots = asyncio.Semaphore(self.concurrency)
        tasks = [
            asyncio.create_task(self._candidate(generation, row, theta, slots)) for row, theta in enumerate(thetas)
        ]
        try:
            return await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    async def _candidate(
        self, generation: int, row: int, theta: NDArray[np.float32], slots: asyncio.Semaphore
    ) -> Evaluation | CallError:
        draws = stream(self.seed, "pause", generation, row)
        try:
            returned = await call(
                lambda: self.function(theta.copy(), generation, self.seed), self.patience, slots, draws
            )
        except CallError as failure:
            if row:
                return failure
            raise RunError(
                f"the center of generation {generation} could not be evaluated: {failure}; the generations "
                f"before it are safe, resume the run once this is repaired"
            ) from failure
        return read_returned(returned, self._modules)


def _check(function: BlackBoxFunction, modules: Sequence[str], dim: int, concurrency: int) -> None:
    names_fit = not isinstance(modules, str | Mapping) and all(isinstance(name, str) and name for name in modules)
    if not names_fit or not modules or len(set(modules)) != len(modules):
        raise ConfigError(
            f"modules must be one or more distinct names in a list, got {modules!r}; all modules have dim "
            f"coefficients, so leave unused the last ones of a smaller module"
        )
    for name, count in (("dim", dim), ("concurrency", concurrency)):
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ConfigError(f"{name} must be a whole number, 1 or more, got {count!r}")
    try:
        inspect.signature(function).bind(np.zeros((len(modules), dim), np.float32), 0, 1)
    except TypeError as error:
        raise ConfigError(
            f"the black box is called with theta, generation and seed, and {function!r} does not take them "
            f"({error}); write it as def function(theta, generation, seed)"
        ) from error
    except ValueError:
        return  # a builtin that tells no signature
