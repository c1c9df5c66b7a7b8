"""The run loop: allocate, evaluate, update, write down; from the beginning or from where a run stopped."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

from nograd.errors import RunError, unknown_name
from nograd.run.config import DEFAULT_CLIP, RunConfig
from nograd.run.directory import RunDirectory, open_run
from nograd.run.environment import environment
from nograd.run.generation import GenerationRecord, make_record
from nograd.run.summary import RunSummary, summarise
from nograd.run.track import tracker
from nograd.search.arms import parse_arm
from nograd.search.es import SearchSettings, SearchState, ask, init, tell
from nograd.search.evaluation import Evaluator

OnGeneration = Callable[[GenerationRecord], None]
ROUTED_BY_CREDIT = ("soft", "soft_sigma", "hard", "hard_noisy")


def run(
    config: RunConfig,
    evaluator: Evaluator,
    directory: Path | str,
    *,
    facts: Mapping[str, Any] | None = None,
    machine: Mapping[str, Any] | None = None,
    resume: bool = False,
    on_generation: OnGeneration | None = None,
) -> RunSummary:
    """Tune with an evaluator and keep everything in a run directory.

    facts: what results depend on beyond the configuration (fingerprint of the weights, resolved revision and
    dtype …), JSON-able; no run is resumed under other facts. machine: what it runs on (resolved device,
    threads …); a change is warned about. resume: go on with the run in the directory, if there is one.
    on_generation: called after each generation is safely written.
    Raises RunError if the directory is in use, damaged or holds another run; ConfigError if the configuration
    does not fit the evaluator's modules."""
    settings = search_settings(config, evaluator)
    identity = {"modules": list(settings.modules), "dim": settings.dim, "facts": dict(facts or {})}
    now = environment(config, identity, machine or {})
    with (
        open_run(Path(directory), config, now, resume) as opened,
        tracker(config.execution.track, opened.root, len(opened.generations)) as track,
    ):
        state = _restore(opened, settings)
        while state.generation < settings.generations:
            state, record = _advance(settings, state, evaluator, opened)
            track(record)
            _warn_without_blame(settings, record)
            if on_generation is not None:
                on_generation(record)
        return summarise(opened.generations, opened.root)


def search_settings(config: RunConfig, evaluator: Evaluator) -> SearchSettings:
    """The search that the configuration asks for, on the evaluator's modules. Raises ConfigError if they do
    not fit."""
    modules = tuple(evaluator.modules)
    search = config.search
    return SearchSettings(
        modules=modules,
        dim=evaluator.dim,
        seed=config.seed,
        generations=search.generations,
        pairs=search.pairs,
        sigma=search.sigma,
        lr=search.lr,
        clip=module_clips(search.clip, modules),
        credit_rate=search.credit_rate,
        arm=parse_arm(search.arm),
    )


def module_clips(clip: float | dict[str, float], modules: tuple[str, ...]) -> float | tuple[float, ...]:
    """The clip of every module, from one for all or a table. Raises ConfigError for a name that is no module."""
    if not isinstance(clip, dict):
        return clip
    for name in clip:
        if name not in modules:
            raise unknown_name("module in search.clip", name, modules)
    return tuple(clip.get(name, DEFAULT_CLIP) for name in modules)


def _restore(directory: RunDirectory, settings: SearchSettings) -> SearchState:
    arrays = directory.newest_state()
    return init(settings) if arrays is None else SearchState.from_arrays(arrays)


def _advance(
    settings: SearchSettings, before: SearchState, evaluator: Evaluator, directory: RunDirectory
) -> tuple[SearchState, GenerationRecord]:
    """One generation, from the state before it to the state after it, committed."""
    start = perf_counter()
    proposal = ask(settings, before, evaluator.bottleneck(before.generation))
    asked = perf_counter()
    result = evaluator.evaluate(before.generation, proposal.thetas)
    evaluated = perf_counter()
    after, update = tell(settings, before, proposal, result.evaluations)
    _check_success(result.evaluations[0].success, before.generation)
    seconds = {"evaluation": evaluated - asked, "generation": perf_counter() - start}
    record = make_record(settings.modules, before, proposal, result, update, seconds)
    return after, directory.commit(record, after.arrays(), result.trajectories)


def _warn_without_blame(settings: SearchSettings, record: GenerationRecord) -> None:
    """An own evaluator may know nothing of blame; said once, after the first generation."""
    needs_credit = settings.arm.scheme in ROUTED_BY_CREDIT and settings.count > 1
    if needs_credit and record.generation == 0 and record.blame is None and record.success < 1:
        warnings.warn(
            f"the evaluator gives no blame, so credit stays uniform and arm {settings.arm.label!r} has nothing to "
            f"go by (ties go to {settings.modules[0]!r}); return blame, or choose uniform or bandit",
            stacklevel=3,
        )


def _check_success(success: float, generation: int) -> None:
    """An evaluator is an outsider's code: catch what would end up in the curves unseen."""
    if not 0 <= success <= 1:
        raise RunError(
            f"the evaluator returned success {success} for the center in generation {generation}; "
            f"it must return a share between 0 and 1"
        )
