"""From a configuration to the LLM agent's evaluator: model, subspace, engine, family, agent."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numba
import torch
from numba.core import config as numba_config

from nograd.agent.evaluator import AgentEvaluator
from nograd.agent.four_stage import STAGES, FourStageAgent, TokenLimits
from nograd.agent.prompts import Prompts
from nograd.agent.scheduler import Scheduler
from nograd.agent.trajectory import RewardWeights
from nograd.assets import cache_dir
from nograd.errors import ConfigError
from nograd.llm.chat import ChatTokenizer
from nograd.llm.checkpoint import weight_files
from nograd.llm.delta import Perturbation
from nograd.llm.engine import Engine
from nograd.llm.fingerprint import fingerprint
from nograd.llm.loading import LoadedModel, load_model, pick_device
from nograd.llm.sources import find_model
from nograd.llm.subspace import Subspace, SubspaceSpec, build_subspace
from nograd.llm.transformer import Transformer
from nograd.run.config import ModelConfig, RunConfig
from nograd.run.evaluators import Built
from nograd.run.task_family import file_hashes, task_family
from nograd.tasks.family import TaskFamily

_MAX_THREADS: int = vars(numba_config)["NUMBA_NUM_THREADS"]
_NEWEST: dict[EngineSpec, LoadedEngine] = {}


def build_agent(config: RunConfig) -> Built:
    """Load everything that the configuration names. Raises NogradError with what to change."""
    set_threads(config.execution.threads)
    family = task_family(config.tasks)
    if config.tasks.batch > len(family.tasks):
        raise ConfigError(
            f"tasks.batch = {config.tasks.batch}, but {family.name} has {len(family.tasks)} tasks; "
            f"ask for at most that many"
        )
    loaded = load_engine(engine_spec(config, len(STAGES)))
    evaluator = AgentEvaluator(
        four_stage(config, family),
        family,
        Scheduler(loaded.engine, loaded.chat, STAGES),
        loaded.size,
        seed=config.seed,
        batch_size=config.tasks.batch,
        shaping=config.reward.shaping,
        reward=RewardWeights(config.reward.tool, config.reward.call, config.reward.attempt_cost),
    )
    facts = {**loaded.facts, "tasks": tasks_hash(family), **file_hashes(family)}
    machine = {"device": loaded.engine.transformer.device.type, "threads": torch.get_num_threads()}
    return Built(evaluator, facts, machine)


@dataclass(frozen=True)
class EngineSpec:
    """All that an engine is made from. device: resolved; weights: fingerprint of what the spec now names."""

    model: ModelConfig
    weights: str
    subspace: SubspaceSpec
    device: Literal["cpu", "cuda"]
    token_budget: int | None


@dataclass(frozen=True, eq=False)
class LoadedEngine:
    """An engine with its model's tokenizer. size: coefficients per module. facts: what identifies the model."""

    engine: Engine
    chat: ChatTokenizer
    size: int
    facts: Mapping[str, str | None]


def engine_spec(config: RunConfig, modules: int) -> EngineSpec:
    """What the configuration asks for, of an agent with so many stages; no weights are read for it."""
    subspace = subspace_spec(config, modules)
    if subspace.kind == "svd" and subspace.binding == "round_robin":
        subspace = replace(subspace, seed=0)  # nothing random in it: runs of all seeds share one engine
    found = find_model(config.model.spec, config.model.revision)
    return EngineSpec(
        config.model,
        fingerprint(weight_files(found.folder)),
        subspace,
        "cuda" if pick_device(config.execution.device).type == "cuda" else "cpu",
        config.execution.token_budget,
    )


def load_engine(spec: EngineSpec) -> LoadedEngine:
    """The engine, loaded once for all evaluators in a row with the same spec; the one before makes way first,
    so that two are never in memory because of this."""
    if spec not in _NEWEST:
        _NEWEST.clear()
        _NEWEST[spec] = _load(spec)
    return _NEWEST[spec]


def _load(spec: EngineSpec) -> LoadedEngine:
    """Load model and subspace. The weights as loaded are dropped; the engine has its own."""
    model = load_model(
        spec.model.spec, revision=spec.model.revision, dtype=spec.model.dtype, device=spec.device
    )
    subspace = build_subspace(
        model.architecture, model.weights, spec.subspace, model.fingerprint, cache_dir() / "subspaces"
    )
    facts = {
        "model": model.name,
        "revision": model.revision,
        "fingerprint": model.fingerprint,
        "dtype": str(model.dtype).removeprefix("torch."),
        "directions": subspace.digest(),
    }
    return LoadedEngine(build_engine(model, subspace, spec.token_budget), model.chat, subspace.size, facts)


def tasks_hash(family: TaskFamily) -> str:
    """sha256 (hex) of the questions and gold targets, in order, and of the files that they come from."""
    lines = [
        json.dumps(
            [t.id, t.question, t.answer, t.tool, dict(t.arguments), t.tool_output, t.offered, t.relay], sort_keys=True
        )
        for t in family.tasks
    ]
    lines += [f"{role} {digest}" for role, digest in sorted(file_hashes(family).items())]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def set_threads(threads: int | None) -> None:
    """Use this many threads, in torch and in the kernels alike; None keeps torch's choice for both.

    The kernels first: where they share OpenMP with torch, their first start sets torch's threads, too."""
    chosen = torch.get_num_threads() if threads is None else threads
    numba.set_num_threads(min(chosen, _MAX_THREADS))
    torch.set_num_threads(chosen)


def build_engine(model: LoadedModel, subspace: Subspace | None, token_budget: int | None = None) -> Engine:
    """An engine for a loaded model; without a subspace, the plain model."""
    transformer = Transformer(model.architecture, model.weights)
    perturbation = (
        None if subspace is None else Perturbation(model.architecture, subspace, model.device, model.dtype)
    )
    return Engine(transformer, perturbation, model.chat.eos_ids, token_budget)


def four_stage(config: RunConfig, family: TaskFamily) -> FourStageAgent:
    """The paper's agent under this configuration."""
    limits = TokenLimits(**config.agent.token_limits.model_dump())
    return FourStageAgent(
        family, Prompts(family), limits, config.agent.attempts, scoring=config.reward.shaping > 0
    )


def subspace_spec(config: RunConfig, modules: int) -> SubspaceSpec:
    """The subspace that the configuration asks for, of an agent with so many stages."""
    subspace = config.subspace
    return SubspaceSpec(
        modules=modules,
        dim=subspace.dim,
        kind=subspace.basis,
        binding=subspace.binding,
        per_layer=subspace.parameterisation == "per_layer",
        strength=subspace.injection,
        seed=config.seed,
    )
