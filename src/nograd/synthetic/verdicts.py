"""What the pre-study says beside the paper: agreement per number, and the structure of its table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nograd.stats import MARGIN
from nograd.synthetic.prestudy import CONTROL, Row
from nograd.synthetic.table6 import ARMS

TOLERANCE = 0.03
"""For uniform's AUC, which the constants were calibrated to."""


def agrees(row: Row) -> bool | None:
    """Whether a number is the paper's: uniform's AUC within TOLERANCE, a difference within the paper's margin
    of ±0.02. None where the paper has no number."""
    if row.published is None:
        return None
    return abs(row.value - row.published) <= (TOLERANCE if row.arm == CONTROL else MARGIN)


@dataclass(frozen=True)
class Statement:
    """Something that the paper's Table 6 shows. holds: whether these rows show it too; evidence: the numbers
    that decide."""

    text: str
    holds: bool
    evidence: str


def structure(rows: Sequence[Row]) -> list[Statement]:
    """The statements that these rows can decide; one whose arms or regimes were not run is left out."""
    contrasts = [row for row in rows if row.contrast is not None]
    tight = [row for row in contrasts if row.regime.tight]
    wide = [row for row in contrasts if not row.regime.tight]
    candidates = (
        ("oracle is nowhere ahead of uniform by more than 0.02", _of(contrasts, "oracle"), _none_ahead),
        ("soft is nowhere ahead of uniform by more than 0.02", _of(contrasts, "soft"), _none_ahead),
        (
            "hard and random are significantly behind in the tight regimes",
            _of(tight, "hard", "random"),
            _all_behind,
        ),
        ("random is the worst arm in every tight regime", _of(tight, *ARMS[1:]), _random_worst),
        (
            "hard and random are within ±0.02 of uniform in the wide regimes",
            _of(wide, "hard", "random"),
            _all_near,
        ),
    )
    return [Statement(text, test(used), _evidence(used)) for text, used, test in candidates if used]


def _of(rows: Sequence[Row], *arms: str) -> list[Row]:
    """The rows of these arms; none unless every arm is there."""
    return [row for row in rows if row.arm in arms] if {row.arm for row in rows} >= set(arms) else []


def _none_ahead(rows: Sequence[Row]) -> bool:
    return all(row.value <= MARGIN for row in rows)


def _all_behind(rows: Sequence[Row]) -> bool:
    return all(row.value < 0 and row.significant for row in rows)


def _all_near(rows: Sequence[Row]) -> bool:
    return all(abs(row.value) <= MARGIN for row in rows)


def _random_worst(rows: Sequence[Row]) -> bool:
    """In every regime the smallest difference is random's."""
    worst: dict[str, Row] = {}
    for row in rows:
        if row.regime.name not in worst or row.value < worst[row.regime.name].value:
            worst[row.regime.name] = row
    return all(row.arm == "random" for row in worst.values())


def _evidence(rows: Sequence[Row]) -> str:
    return "; ".join(f"{row.regime.title}: {row.arm} {row.value:+.3f}" for row in rows)
