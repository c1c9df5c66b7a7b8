"""Preregistered predictions: outcomes from bound and observation, and the ledger's count (Table 4)."""

from __future__ import annotations

from math import inf

from nograd.stats.paper.rows import PaperRow, decision

SCORED, HITS, MISSES = 28, 19, 9

PREDICTIONS = (
    ("row 1: sparse", "Table 4", "miss", -0.0425, (-0.035, -0.015)),
    ("row 3: floored hard~0.5", "Table 4", "hit", -0.0056, (-0.015, 0.015)),
    ("row 4: random at w=1", "Table 4", "hit", -0.073, (-inf, -0.04)),
    ("row 4, its p", "Table 4", "hit", 0.031, (0.0, 0.05)),
    ("row 4b: hard at w=1", "Table 4", "hit", 0.001, (-0.02, 0.02)),
    ("row 5: AUC at w=0", "Table 4", "miss", 0.841, (-inf, 0.78)),
    ("seed extension: pooled mean", "§5.2", "hit", -0.0117, (-0.03, 0.0)),
    ("seed extension: upper end of the interval", "§5.2", "hit", -0.0029, (-inf, 0.01)),
    ("BFCL soft", "§5.10", "miss", -0.044, (-0.03, 0.01)),
    ("BFCL un-floored hard", "§5.10", "hit", -0.107, (-inf, -0.06)),
    ("R1: held-out uniform - untrained", "§5.11", "hit", 0.113, (0.05, inf)),
    ("R2: held-out hard", "§5.11", "hit", -0.036, (-inf, -0.03)),
    ("R3: relay of hard - uniform", "§5.11", "miss", -0.099, (-0.05, 0.05)),
    ("shuffled binding: random", "§5.13", "hit", -0.079, (-inf, -0.04)),
    ("shuffled binding: hard", "§5.13", "hit", -0.005, (-0.02, 0.02)),
    ("shuffled binding: soft", "§5.13", "hit", -0.028, (-inf, 0.01)),
    ("capacity-matched uniform", "§5.13", "miss", -0.072, (-0.02, 0.02)),
)
"""what, source, printed outcome (of this criterion, not always of its row), observed, predicted interval."""

MISSES_IN_TEXT = (
    "sparse band (§5.7)",
    "shaping necessary (§5.9)",
    "SmolLM2 random (§5.5)",
    "BFCL soft band (§5.10)",
    "held-out ordering R2 (§5.11)",
    "held-out relay R3 (§5.11)",
    "gain-weighted regression (§5.12)",
    "capacity (§5.13)",
    "basis direction (§5.14)",
)
"""Every preregistered prediction that the text records as missed."""

ORDER = {
    "main": (0.8418, 0.8389, 0.8280, 0.7675),
    "shuffled binding": (0.0, -0.005, -0.028, -0.079),
}
ARMS = ("uniform", "hard", "soft", "random")
"""Order of the arms in ORDER's AUC values or differences from uniform."""


def ledger_checks() -> list[PaperRow]:
    """All rows of this part."""
    rows = [
        decision(
            f"prediction, {what}",
            source,
            outcome,
            "hit" if low <= observed <= high else "miss",
            f"observed {observed:g}, predicted {low:g} to {high:g}",
        )
        for what, source, outcome, observed, (low, high) in PREDICTIONS
    ]
    rows += [
        decision(
            f"order of the arms, {where}",
            "§5.13",
            " > ".join(ARMS),
            " > ".join(arm for _, arm in sorted(zip(values, ARMS, strict=True), reverse=True)),
        )
        for where, values in ORDER.items()
    ]
    rows.append(
        decision("scored predictions are hits and misses", "Table 4", str(SCORED), str(HITS + MISSES))
    )
    named = "; ".join(MISSES_IN_TEXT)
    rows.append(
        decision("misses that the text names", "Table 4", str(MISSES), str(len(MISSES_IN_TEXT)), named)
    )
    return rows
