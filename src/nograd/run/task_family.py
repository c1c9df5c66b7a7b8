"""From a configuration, or what a command was given, to a task family; no model is loaded for it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from nograd.errors import ConfigError
from nograd.run.config import TasksConfig
from nograd.run.load import RunRecord
from nograd.tasks.family import TaskFamily
from nograd.tasks.own.family import JsonlTasks
from nograd.tasks.registry import family as build_family

JSONL = "jsonl"


def task_family(config: TasksConfig) -> TaskFamily:
    """The family that a configuration names. Raises NogradError with what to change."""
    return build_family(config.family, **own_files(config))


def own_files(config: TasksConfig) -> dict[str, str]:
    """The files that a configuration names, as options of the family. Raises ConfigError if it takes none."""
    files = {key: value for key, value in {"path": config.path, "tools": config.tools}.items() if value is not None}
    if files and config.family.replace("-", "_") != JSONL:
        key, value = next(iter(files.items()))
        raise ConfigError(
            f'tasks.{key} = {value!r} goes with the family jsonl, but tasks.family = {config.family!r}; set '
            f'tasks.family = "jsonl", or leave tasks.{key} out'
        )
    return files


def file_hashes(family: TaskFamily) -> Mapping[str, str]:
    """sha256 (hex) of a person's own files by their role; empty for a family that has none."""
    return family.hashes if isinstance(family, JsonlTasks) else {}


def is_file(tasks: str) -> bool:
    """Whether `--tasks` names a tasks file and not a family."""
    return Path(tasks).suffix.lower() in (".jsonl", ".ndjson", ".json") or os.sep in tasks


def task_settings(tasks: str | None, tools: Path | str | None) -> list[str]:
    """`--tasks` and `--tools` as settings. A family takes the place of a file that the configuration names."""
    settings = [] if tools is None else [f"tasks.tools={tools}"]
    if tasks is None:
        return settings
    if is_file(tasks):
        return [f"tasks.family={JSONL}", f"tasks.path={tasks}", *settings]
    return [f"tasks.family={tasks}", "tasks.path=", "tasks.tools=", *settings]


def tasks_of(tasks: str | None, tools: Path | str | None) -> TaskFamily:
    """The family, or the tasks file, of this name. Raises NogradError with what to change."""
    if tasks is not None and is_file(tasks):
        return build_family(JSONL, path=tasks, tools=None if tools is None else str(tools))
    if tools is not None:
        raise ConfigError(f"--tools {tools} goes with a tasks file, not with {tasks or 'no tasks'}; give a .jsonl file")
    return build_family(tasks or "")


def other_tasks(runs: Sequence[RunRecord], tasks: str, tools: str | None = None) -> TaskFamily:
    """The family, or the tasks file, on which to evaluate runs.

    A file's tools are those of the runs unless others are given; and as long as they are the same, tasks that
    mark no worked examples are asked with those of the runs, as in their training.
    Raises ConfigError if the runs were tuned with different files."""
    if not is_file(tasks):
        return tasks_of(tasks, tools)
    own = {(run.config.tasks.path, run.config.tasks.tools) for run in runs}
    if len(own) > 1:
        raise ConfigError("these runs were tuned with different tasks files or tools; evaluate them one by one")
    (path, own_tools), = own
    tools = own_tools if tools is None else os.path.abspath(tools)
    borrow = path is not None and tools == own_tools and os.path.abspath(tasks) != path
    return build_family(JSONL, path=tasks, tools=tools, examples=path if borrow else None)
