"""A tasks file as numbered, checked lines: JSON Lines, one task per line."""

from __future__ import annotations

import codecs
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from nograd.errors import TaskError
from nograd.tasks.own.line import TaskLine
from nograd.tasks.own.problems import Problem, form_problems


@dataclass(frozen=True)
class ReadLines:
    """lines: by number, from 1. problems: of the lines that could not be read."""

    lines: Mapping[int, TaskLine]
    problems: Sequence[Problem]


def read_lines(path: Path, data: bytes) -> ReadLines:
    """The lines of a file's content. Blank ones are skipped, and so is a byte order mark.

    Raises TaskError for a file that is one JSON array instead."""
    lines: dict[int, TaskLine] = {}
    problems: list[Problem] = []
    rows = data.removeprefix(codecs.BOM_UTF8).split(b"\n")
    if rows[0].lstrip().startswith(b"["):
        raise TaskError(f"{path} holds a JSON array; write each task as one JSON object on a line of its own")
    for number, row in enumerate(rows, 1):
        if not row.strip():
            continue
        try:
            lines[number] = TaskLine.model_validate(_object(row))
        except ValidationError as error:
            problems += form_problems(number, error)
        except _LineError as error:
            problems.append(Problem(number, str(error)))
    return ReadLines(lines, problems)


class _LineError(Exception):
    """What is wrong with a line as a whole."""


def _object(row: bytes) -> dict[str, Any]:
    try:
        text = row.decode()
        values = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise _LineError(f"byte {error.start + 1} is not UTF-8; save the file in that encoding") from error
    except json.JSONDecodeError as error:
        raise _LineError(f"column {error.colno}: not valid JSON ({error.msg}); correct it there") from error
    except RecursionError as error:
        raise _LineError("nested too deeply; write it flatter") from error
    if not isinstance(values, dict):
        raise _LineError(f"holds {text.strip()[:30]!r}; write one JSON object, such as {{\"question\": …}}")
    return values


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise _LineError(f"the key {key!r} is there twice; keep one")
        values[key] = value
    return values


def _no_constant(name: str) -> None:
    raise _LineError(f"{name} is not a JSON number; write a finite one")
