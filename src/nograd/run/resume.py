"""Whether a run may go on: nothing that its results depend on may have changed."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nograd.errors import RunError
from nograd.run import layout
from nograd.run.config import RunConfig, results_bearing
from nograd.run.config_source import make_config
from nograd.run.strict_json import dumps, loads


def check_config(root: Path, config: RunConfig) -> None:
    """Refuse a configuration under which this run was not started. Cheap: call it before loading a model."""
    started = results_bearing(make_config(read_environment(root)["config"]))
    _refuse(root, changes(started, results_bearing(config)))


def check_identity(root: Path, identity: Mapping[str, Any]) -> None:
    """Refuse another model, other modules or another dim.

    identity: {"modules": [names], "dim": n, "facts": {...}}, see `run.loop.run`."""
    _refuse(root, changes(read_environment(root)["identity"], loads(dumps(identity))))


def warn_of_surroundings(root: Path, now: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Warn if versions, machine or source tree differ from those of the start; the new bits may then differ
    from those of an uninterrupted run. Returns key → [then, now]."""
    then = read_environment(root)
    kinds = ("versions", "machine", "git")
    changed = changes({kind: then[kind] for kind in kinds}, {kind: now[kind] for kind in kinds})
    if changed:
        warnings.warn(
            f"{root} was started in other surroundings, so the generations to come may differ from those of "
            f"an uninterrupted run: {_listing(changed)}",
            stacklevel=2,
        )
    return changed


def read_environment(root: Path) -> dict[str, Any]:
    """environment.json of a run. Raises RunError if there is none or it is damaged."""
    path = root / layout.ENVIRONMENT
    if not layout.holds_run(root):
        raise RunError(f"{root} holds no run; check the path")
    try:
        return loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise RunError(
            f"{path} cannot be read ({error}); restore it from a copy or start a new run"
        ) from error


def changes(then: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Dotted key → [then, now] of every leaf that differs; None stands for a leaf that is absent."""
    before, after = _leaves(then, ""), _leaves(now, "")
    keys = sorted(before.keys() | after.keys())
    return {key: [before.get(key), after.get(key)] for key in keys if before.get(key) != after.get(key)}


def _leaves(value: Any, prefix: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {prefix: value}
    leaves: dict[str, Any] = {}
    for key, item in value.items():
        leaves |= _leaves(item, f"{prefix}.{key}" if prefix else str(key))
    return leaves


def _refuse(root: Path, changed: Mapping[str, list[Any]]) -> None:
    if changed:
        raise RunError(
            f"{root} was started with other settings, which its results depend on: {_listing(changed)}; "
            f"set them back to go on with it, or start a new run in another directory"
        )


def _listing(changed: Mapping[str, list[Any]]) -> str:
    return ", ".join(f"{key} was {then!r} and is now {now!r}" for key, (then, now) in changed.items())
