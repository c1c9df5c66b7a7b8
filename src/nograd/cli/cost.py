"""What a run will cost: rollouts and requests from its configuration, time from earlier runs like it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median

from nograd.errors import NogradError
from nograd.run.config import RunConfig, TasksConfig

COMPLETIONS = 4
SCORES = 3


@dataclass(frozen=True)
class Cost:
    """requests: fewest and most that the rollouts ask for; an engine computes each distinct one once.
    seconds: of the whole run, at the speed of the newest comparable run; None without one."""

    rollouts_per_generation: int
    rollouts: int
    requests: tuple[int, int]
    seconds: float | None


def estimate(config: RunConfig, runs: Path) -> Cost:
    """The cost of a run of the four-stage agent; `runs` is a folder with earlier ones."""
    per_generation = rollouts_per_generation(config)
    total = per_generation * config.search.generations
    scores = SCORES if config.reward.shaping else 0
    pace = _seconds_per_rollout(config, runs)
    return Cost(
        rollouts_per_generation=per_generation,
        rollouts=total,
        requests=(
            total * (COMPLETIONS - 1 + scores),
            total * (COMPLETIONS - 1 + config.agent.attempts + scores),
        ),
        seconds=None if pace is None else pace * total,
    )


def rollouts_per_generation(config: RunConfig) -> int:
    """The center and both sides of every pair, on every task of the batch."""
    return (1 + 2 * config.search.pairs) * config.tasks.batch


def _seconds_per_rollout(config: RunConfig, runs: Path) -> float | None:
    """Of the newest run with the same model and tasks."""
    from nograd.run import layout
    from nograd.run.config_source import load_config
    from nograd.run.generation import read_generations

    files = sorted(runs.glob(f"*/{layout.CONFIG}"), key=lambda file: file.stat().st_mtime, reverse=True)
    for file in files:
        try:
            other, records = load_config(file), read_generations(file.parent)
        except NogradError:
            continue
        alike = other.model == config.model and _same_tasks(other.tasks, config.tasks)
        if alike and other.evaluator == config.evaluator and records:
            seconds = median(record.seconds["generation"] for record in records)
            return seconds / rollouts_per_generation(other)
    return None


def _same_tasks(one: TasksConfig, other: TasksConfig) -> bool:
    return (one.family, one.path) == (other.family, other.path)
