"""Tune a system of your own that turns coefficients into a score: a function, a service, a simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nograd.errors import ConfigError
from nograd.run.black_box import BlackBox, BlackBoxFunction
from nograd.run.config import RunConfig
from nograd.run.config_source import load_config
from nograd.run.load import load_run
from nograd.run.loop import OnGeneration, run
from nograd.run.own_tasks import source_hash
from nograd.run.progress import Lines
from nograd.run.start import check_directory
from nograd.run.strict_json import dumps
from nograd.run.summary import RunSummary

SETTINGS = ("search", "execution.track")
"""What a black box leaves open; the other sections are about language models and their tasks."""


@dataclass(frozen=True, eq=False)
class BlackBoxResult:
    """theta: float32 [modules, dim], the tuned coefficients. summary: the run's numbers."""

    theta: NDArray[np.float32]
    summary: RunSummary
    run_dir: Path


def tune_black_box(
    function: BlackBoxFunction,
    modules: Sequence[str],
    dim: int,
    *,
    out: Path | str,
    seed: int = 1,
    generations: int = 45,
    pairs: int = 4,
    concurrency: int = 4,
    retries: int = 2,
    timeout: float | None = None,
    pause: float = 0.5,
    facts: Mapping[str, Any] | None = None,
    settings: Sequence[str] = (),
    resume: bool = False,
    progress: bool | OnGeneration = True,
) -> BlackBoxResult:
    """Tune whatever a function scores and keep the run in the directory `out`.

    function: called as function(theta, generation, seed), once per candidate; plain (then in threads) or async.
    theta: float32 [modules, dim], 0 for the untouched system. It returns success, a share in [0, 1], or a
    mapping with success and any of fitness (what is climbed, of any size), reward, blame (a share per module:
    whose fault the failures were) and metrics; see `run.black_box.BlackBox` for what it must keep to.
    modules: names. dim: coefficients of each. concurrency: calls under way at once; no results depend on it.
    retries, timeout, pause: further attempts at a failed call, seconds per attempt, seconds before the first
    retry (doubles). facts: what the scores depend on besides the function's source (a service's version, a hash
    of the data), JSON-able. A run is resumed only under the same facts and source; as the source of a lambda is
    the whole statement around it, give a named function, or a partial of one. settings: as for
    `nograd run --set`, of the section search, e.g. "search.arm=hard_noisy:floor=1". resume, progress: as for
    `nograd.tune`.
    Raises NogradError with what to change; RunError if the center fails at every attempt."""
    evaluator = BlackBox(
        function,
        modules,
        dim,
        seed=seed,
        concurrency=concurrency,
        retries=retries,
        timeout=timeout,
        pause=pause,
    )
    config = _config(dim, seed, generations, pairs, settings)
    identity = _facts(function, facts or {})
    check_directory(Path(out), config, resume)
    summary = run(
        config,
        evaluator,
        out,
        facts=identity,
        resume=resume,
        on_generation=Lines(config.search.generations) if progress is True else progress or None,
    )
    return BlackBoxResult(load_run(out).theta[-1], summary, Path(out))


def _config(dim: int, seed: int, generations: int, pairs: int, settings: Sequence[str]) -> RunConfig:
    fixed = [
        "evaluator=black_box",
        "model.spec=none",
        "tasks.family=black_box",
        f"subspace.dim={dim}",
        f"seed={seed}",
        f"search.generations={generations}",
        f"search.pairs={pairs}",
    ]
    config = load_config(None, [*fixed, *settings])
    for setting in settings:
        if not setting.strip().startswith(SETTINGS):
            raise ConfigError(
                f"the setting {setting!r} means nothing to a black box; it takes those of the section search, and "
                f"execution.track"
            )
    return config


def _facts(function: BlackBoxFunction, facts: Mapping[str, Any]) -> dict[str, Any]:
    if "function" in facts:
        raise ConfigError("facts has the key 'function', which stands for the function's source; name it otherwise")
    try:
        dumps(facts)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"facts must be JSON-able, got {facts!r} ({error})") from error
    return {**facts, "function": source_hash(function)}
