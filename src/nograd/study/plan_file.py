"""Plans in files: those that come with nograd, by name, and anyone's own, by path."""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from nograd.errors import ConfigError, unknown_name
from nograd.study.plan import Plan
from nograd.study.plan_problems import form_problems, meaning_problems

FOLDER = Path(__file__).with_name("plans")


@dataclass(frozen=True)
class PlanFile:
    """A checked plan with the text it was read from. name: the file's stem."""

    name: str
    path: Path
    text: str
    plan: Plan

    @property
    def sha256(self) -> str:
        """Hex digest of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def load_plan(name_or_path: str | Path) -> PlanFile:
    """The plan of this name, or in this TOML file. Raises ConfigError that lists everything that is wrong."""
    text = str(name_or_path)
    if isinstance(name_or_path, Path) or text.endswith(".toml") or "/" in text:
        return read_plan(Path(name_or_path))
    if text not in plan_names():
        error = unknown_name("plan", text, plan_names())
        raise ConfigError(f"{error}; or give the path of a .toml file")
    return read_plan(FOLDER / f"{text}.toml")


def plan_names() -> tuple[str, ...]:
    """The plans that come with nograd, sorted."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


def read_plan(path: Path, name: str | None = None) -> PlanFile:
    """The plan in a file, under its stem or the name given. Raises ConfigError."""
    try:
        text = path.read_bytes().decode()
        values = tomllib.loads(text)
    except OSError as error:
        raise ConfigError(f"cannot read the plan {path}: {error.strerror}; check the path") from error
    except ValueError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}; correct it there") from error
    return PlanFile(name or path.stem, path, text, make_plan(values, str(path)))


def make_plan(values: dict[str, Any], where: str) -> Plan:
    """The checked plan of nested tables. Raises ConfigError that lists everything that is wrong."""
    try:
        plan = Plan.model_validate(values)
        problems = meaning_problems(plan)
    except ValidationError as error:
        problems = form_problems(error)
    if not problems:
        return plan
    if len(problems) == 1:
        raise ConfigError(f"{where}: {problems[0]}")
    raise ConfigError("\n  ".join([f"{where} has {len(problems)} mistakes:", *problems]))
