"""What a detector says: a verdict with its numbers, and what to change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Verdict = Literal["ok", "warning", "failed"]


@dataclass(frozen=True)
class Finding:
    """One detector's verdict, on one module or on the whole.

    detector: its name, e.g. "inert_basis". module: None where the verdict is on the whole. sentence: what was
    found, with its numbers. advice: what to change, "" where nothing is wrong. figures: the numbers by name, JSON-able.
    """

    detector: str
    module: str | None
    verdict: Verdict
    sentence: str
    advice: str = ""
    figures: Mapping[str, float | int | str | None] = field(default_factory=dict)
