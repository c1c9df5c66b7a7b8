"""What a benchmark runs on: the embedded model's agent, as a run would build it."""

from __future__ import annotations

from dataclasses import dataclass

from nograd.agent.evaluator import AgentEvaluator
from nograd.agent.scheduler import Scheduler
from nograd.bench.workload import Workload, candidates
from nograd.llm.engine import Engine
from nograd.llm.loading import DeviceName, DTypeName
from nograd.llm.subspace import Subspace
from nograd.run.build_agent import build_agent
from nograd.run.config import ExecutionConfig, ModelConfig, RunConfig, TasksConfig

_SEED = 1


@dataclass(frozen=True)
class Setting:
    """The default agent on the default tasks."""

    evaluator: AgentEvaluator
    scheduler: Scheduler
    engine: Engine
    subspace: Subspace


def build(dtype: DTypeName, device: DeviceName, batch: int) -> Setting:
    """Load the model and build the agent, with scoring on."""
    config = RunConfig(
        seed=_SEED,
        model=ModelConfig(dtype=dtype),
        tasks=TasksConfig(batch=batch),
        execution=ExecutionConfig(device=device),
    )
    evaluator = build_agent(config).evaluator
    assert isinstance(evaluator, AgentEvaluator)
    engine = evaluator.scheduler.engine
    assert isinstance(engine, Engine)
    assert engine.perturbation is not None
    return Setting(evaluator, evaluator.scheduler, engine, engine.perturbation.subspace)


def workload(setting: Setting, pairs: int) -> Workload:
    """Generation 0 of seed 1 under `uniform`."""
    evaluator = setting.evaluator
    thetas = candidates(evaluator.modules, evaluator.dim, pairs, _SEED)
    return Workload(evaluator.agent, evaluator.tasks(0), thetas)
