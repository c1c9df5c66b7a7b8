"""What a run has to serve: a model name for each stage, the untouched model, and the whole agent if it is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nograd.agent.evaluator import Agent
from nograd.errors import ConfigError
from nograd.llm.chat import ChatTokenizer
from nograd.llm.engine import Engine
from nograd.run.build_agent import LoadedEngine, engine_spec, four_stage, load_engine, set_threads
from nograd.run.load import RunRecord
from nograd.run.rebuild import as_it_ran, rebuild
from nograd.run.resume import check_identity
from nograd.serve.one_at_a_time import OneAtATime
from nograd.tasks.family import TaskFamily

AGENT = "agent"
BASE = "base"


@dataclass(frozen=True)
class Stage:
    """What a model name stands for. theta: float32 bytes [size], as engine requests carry it."""

    module: int
    theta: bytes


@dataclass(frozen=True)
class WholeAgent:
    """A run's agent with the tasks that it was tuned on. stages: in the order of θ.

    thetas: "untouched" and "tuned", float32 [modules, size]."""

    agent: Agent
    family: TaskFamily
    chat: ChatTokenizer
    stages: tuple[str, ...]
    thetas: Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True, eq=False)
class Served:
    """stages: model name -> what it stands for. agent: None where only its own program knows it."""

    engine: Engine
    chat: ChatTokenizer
    stages: Mapping[str, Stage]
    agent: WholeAgent | None

    @property
    def names(self) -> tuple[str, ...]:
        """All model names."""
        return (*self.stages, AGENT) if self.agent and AGENT not in self.stages else tuple(self.stages)


def check_served(record: RunRecord, generation: int | None) -> None:
    """Raise ConfigError if the run has no language model, or not this generation. Cheap: loads nothing."""
    if record.config.evaluator not in ("agent", "own"):
        raise ConfigError(
            f"{record.path} tuned the evaluator {record.config.evaluator!r}, which has no language model to serve"
        )
    last = len(record.generations)
    if generation is not None and not 0 <= generation <= last:
        raise ConfigError(
            f"{record.path} has no coefficients after {generation} generations; choose from 0 (untouched) to {last}"
        )


def load_served(record: RunRecord, generation: int | None = None, device: str = "auto") -> Served:
    """Load the model of a run and its coefficients after so many generations, None for the newest.

    Raises ConfigError as `check_served`, RunError if the model or the tasks are no longer the run's."""
    check_served(record, generation)
    tuned = record.theta[-1 if generation is None else generation]
    untouched = np.zeros_like(tuned)
    stages = {name: Stage(module, tuned[module].tobytes()) for module, name in enumerate(record.modules)}
    stages.setdefault(BASE, Stage(0, untouched[0].tobytes()))
    if record.config.evaluator == "own":
        loaded = _loaded(record, device)
        return Served(loaded.engine, loaded.chat, stages, None)
    evaluator = rebuild(record, device)
    engine, chat = evaluator.scheduler.engine, evaluator.scheduler.chat
    assert isinstance(engine, Engine)
    family = OneAtATime(evaluator.family)
    agent = replace(four_stage(record.config, family), scoring=False)
    thetas = {"untouched": untouched, "tuned": tuned}
    return Served(engine, chat, stages, WholeAgent(agent, family, chat, record.modules, thetas))


def _loaded(record: RunRecord, device: str) -> LoadedEngine:
    """The engine of a run whose agent lives in a program of its own; its source is not compared."""
    config = as_it_ran(record, device)
    set_threads(config.execution.threads)
    loaded = load_engine(engine_spec(config, len(record.modules)))
    recorded = record.environment["identity"]
    now = {"dim": loaded.size, "facts": {**recorded["facts"], **loaded.facts}}
    check_identity(record.path, {**recorded, **now})
    return loaded
