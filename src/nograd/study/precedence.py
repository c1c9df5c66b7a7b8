"""Was a prediction written before the runs? What git and the sweep's own copy of the plan can show of it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Any, Literal

from nograd.study import git
from nograd.study.plan_file import PlanFile
from nograd.study.sweep_directory import Sweep


@dataclass(frozen=True)
class Precedence:
    """before: the prediction's commit precedes the sweep. after: it does not. unproven: git does not know."""

    kind: Literal["before", "after", "unproven"]
    text: str


def precedence(file: PlanFile, prediction: str, sweep: Sweep, *, own: bool = True) -> Precedence:
    """Compare the prediction (by id) with the start of a sweep, which precedes its first run record.

    own: the sweep is of this plan, so its copy of the plan must hold the prediction word for word."""
    wanted = _prediction(file.text, prediction)
    if own and _prediction(sweep.file.text, prediction) != wanted:
        return Precedence("after", f"{sweep.root} began with another wording of it, or without it")
    versions = git.history(file.path)
    if not versions:
        return Precedence("unproven", f"{file.path.name} is not in git, so nothing shows when it was written")
    commit = _since(versions, prediction, wanted)
    if commit is None:
        return Precedence("unproven", f"it is not committed in {file.path.name} as it stands")
    return _against_start(file, commit, sweep)


def _against_start(file: PlanFile, commit: git.Commit, sweep: Sweep) -> Precedence:
    said = f"committed in {commit.short} at {commit.at.isoformat()}"
    start = f"{sweep.root} began at {sweep.started.isoformat(timespec='seconds')}"
    if commit.at > sweep.started:
        return Precedence("after", f"{said}, after {start}")
    head = sweep.record["plan_repository_head"]
    if head is None or git.ask(file.path.parent, "cat-file", "-e", head) is None:
        return Precedence("before", f"{said}, {start} (by the clocks alone: from an unknown commit)")
    if not git.is_ancestor(file.path.parent, commit.sha, head):
        return Precedence("after", f"{said}, but {start} from {head[:10]}, which does not contain it")
    return Precedence("before", f"{said}, {start} from {head[:10]}, which contains it")


def _since(versions: list[tuple[git.Commit, str]], prediction: str, wanted: Any) -> git.Commit | None:
    """The commit since which the prediction has stood unchanged."""
    since = None
    for commit, text in reversed(versions):
        if _prediction(text, prediction) != wanted:
            break
        since = commit
    return since


def _prediction(text: str, name: str) -> Any:
    """The prediction's table in a plan, None if there is none."""
    try:
        predictions = tomllib.loads(text).get("predictions", [])
        return next((table for table in predictions if table.get("id") == name), None)
    except (ValueError, AttributeError, TypeError):
        return None
