"""The 400 questions of BFCL simple-python with their gold calls, from the two pinned JSON-lines files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nograd.assets import asset_path

ID_PREFIX = "simple_python_"


@dataclass(frozen=True)
class Entry:
    """One question with one function.

    function: the function document {"name", "description", "parameters": {"properties", "required"}}.
    ground_truth: [{name: {parameter: accepted values}}]; "" among the values means "may be absent".
    """

    id: str
    question: str
    function: Mapping[str, Any]
    ground_truth: tuple[Mapping[str, Any], ...]

    @property
    def number(self) -> int:
        """The number that BFCL discussions use for the task."""
        return int(self.id.removeprefix(ID_PREFIX))

    @property
    def name(self) -> str:
        return str(self.function["name"])

    @property
    def gold(self) -> Mapping[str, list[Any]]:
        """Accepted values of every parameter: the first value of the first ground truth."""
        gold: Mapping[str, list[Any]] = next(iter(self.ground_truth[0].values()))
        return gold


def load_entries() -> tuple[Entry, ...]:
    """All entries in file order; fetches the files if they are missing (AssetError if that fails)."""
    return read_entries(asset_path("bfcl-questions"), asset_path("bfcl-answers"))


def read_entries(questions: Path, answers: Path) -> tuple[Entry, ...]:
    """Join the question and answer files by id; both in BFCL's JSON-lines form."""
    truths = {row["id"]: tuple(row["ground_truth"]) for row in _rows(answers)}
    return tuple(_entry(row, truths[row["id"]]) for row in _rows(questions))


def _entry(row: Mapping[str, Any], ground_truth: tuple[Mapping[str, Any], ...]) -> Entry:
    """Simple tasks hold one conversation of one user turn, and one function."""
    ((turn,),) = row["question"]
    (function,) = row["function"]
    return Entry(row["id"], turn["content"], function, ground_truth)


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]
