"""The paper's own ledger, as far as it is published: predictions of its plans with their outcomes.

28 predictions were scored, 19 hits and 9 misses. All 9 misses and 17 hits can be told from the tables and the
text; 2 hits are in rows of Table 4 that are cut off in the published copy.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("paper_ledger.csv")
SCORED, HITS, MISSES = 28, 19, 9
"""Counts in the caption of Table 4."""


@dataclass(frozen=True)
class Published:
    """A row. row: its number in Table 4, empty where the copy does not show it. plan, prediction: the plan
    file and the id in it; no id where the criterion is not published. outcome: hit, miss or not scored.
    observed: the number of the prediction's first criterion, None where none is printed. commit, date: of the
    preregistration, where printed."""

    row: str
    plan: str
    prediction: str
    outcome: str
    observed: float | None
    commit: str
    date: str
    source: str
    note: str


def published() -> tuple[Published, ...]:
    """All rows, in the paper's order."""
    with FILE.open(encoding="utf-8", newline="") as file:
        return tuple(_row(values) for values in csv.DictReader(file))


def _row(values: dict[str, str]) -> Published:
    observed = float(values["observed"]) if values["observed"] else None
    texts = {name: text for name, text in values.items() if name != "observed"}
    return Published(observed=observed, **texts)
