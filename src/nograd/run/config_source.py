"""A configuration from a TOML file and "dotted.key=value" settings, and back to TOML."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from nograd.errors import ConfigError
from nograd.run.config import RunConfig
from nograd.run.config_errors import config_error, known_keys

_FILES = ("path", "tools")
"""Keys of the tasks section that name files."""


def load_config(path: Path | str | None = None, overrides: Sequence[str] = ()) -> RunConfig:
    """The defaults, changed by a TOML file, changed by settings such as "search.sigma=0.2".

    A value is read as TOML, or as plain text where that fails or the key takes text; an empty value goes
    back to the default. Paths of own files are relative to the TOML file, in a setting to the current folder.
    Raises ConfigError that lists everything that is wrong."""
    values = _read_toml(Path(path)) if path is not None else {}
    if path is not None:
        _place_files(values, Path(path).parent)
    for setting in overrides:
        _apply(values, setting)
    return make_config(values)


def make_config(values: Mapping[str, Any]) -> RunConfig:
    """The checked configuration of nested tables. Raises ConfigError that lists everything that is wrong."""
    try:
        return RunConfig.model_validate(values)
    except ValidationError as error:
        raise config_error(error, RunConfig) from error


def to_toml(config: RunConfig) -> str:
    """TOML text that `load_config` reads back to an equal configuration; None is left out."""
    return "\n".join(_table_lines(config.model_dump(), ""))


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"cannot read the configuration {path}: {error.strerror}; check the path"
        ) from error
    except ValueError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}; correct it there") from error


def _place_files(values: Mapping[str, Any], folder: Path) -> None:
    """In place: paths of own files, which are relative to this folder."""
    tasks = values.get("tasks")
    for key in _FILES:
        if isinstance(tasks, dict) and isinstance(tasks.get(key), str) and tasks[key]:
            tasks[key] = str(folder / tasks[key])


def _apply(values: dict[str, Any], setting: str) -> None:
    key, equals, text = setting.partition("=")
    key = key.strip()
    if not equals or not all(key.split(".")):
        raise ConfigError(
            f"{setting!r} is not a setting; write it as section.key=value, e.g. search.sigma=0.2"
        )
    *sections, last = key.split(".")
    table = values
    for name in sections:
        if not isinstance(table.get(name), dict):
            table[name] = {}
        table = table[name]
    if text.strip():
        table[last] = _parse(key, text.strip())
    else:
        table.pop(last, None)


def _parse(key: str, text: str) -> Any:
    quoted = text[0] in "\"'"
    kind = known_keys(RunConfig).get(key)
    if not quoted and (kind is str or str in get_args(kind)):
        return text
    try:
        parsed = tomllib.loads(f"value = {text}")
    except ValueError:
        return text
    return parsed["value"] if len(parsed) == 1 else text


def _table_lines(table: Mapping[str, Any], prefix: str) -> list[str]:
    scalars = {
        key: value for key, value in table.items() if not isinstance(value, dict) and value is not None
    }
    lines = [f"{_key(key)} = {_value(value)}" for key, value in scalars.items()]
    for key, value in table.items():
        if isinstance(value, dict):
            lines += ["", f"[{prefix}{_key(key)}]", *_table_lines(value, f"{prefix}{_key(key)}.")]
    return lines if prefix else [*lines, ""]


def _key(key: str) -> str:
    bare = key.isascii() and key.replace("_", "").replace("-", "").isalnum()
    return key if bare else _value(key)


def _value(value: str | bool | float) -> str:
    """TOML of a scalar. A basic string is a JSON string, save that TOML also wants U+007F escaped."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower()
