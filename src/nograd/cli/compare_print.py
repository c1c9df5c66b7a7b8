"""How `nograd compare` shows a comparison to a person: short tables, then one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nograd.cli.compare_verdict import verdict_of_runs, verdict_of_seeds
from nograd.cli.output import console, print_table
from nograd.cli.trajectories import short
from nograd.run.changed_trajectories import ChangedTrajectories
from nograd.run.compare import Changes, Comparison
from nograd.run.compare_seeds import METRICS, SeedComparison
from nograd.run.divergence import ASPECTS
from nograd.run.load import RunRecord

SHOWN = 8
"""Tasks, or columns of generations, that a table shows; --json has all."""
WIDTH = 44
"""Characters of a value or a text in a table."""


def print_runs(comparison: Comparison) -> str:
    """Print two runs side by side; returns the verdict."""
    c = comparison
    for name, run in (("A", c.a), ("B", c.b)):
        console().print(f"{name}  {_describe(run)}", soft_wrap=True)
    _print_changes("settings that differ", {**c.settings, **_named("execution", c.execution), **c.facts})
    _print_changes("surroundings that differ", c.surroundings)
    if c.shared:
        _print_differences(c)
        _print_divergence(c)
        _print_distance(c)
        for found in c.trajectories.values():
            if found is not None:
                _print_trajectories(found)
    verdict = verdict_of_runs(c)
    console().print(f"\n{verdict}", soft_wrap=True)
    return verdict


def print_seeds(comparison: SeedComparison) -> str:
    """Print two folders paired by seed; returns the verdict."""
    c = comparison
    _print_changes("settings that differ", {**c.settings, **c.facts})
    _print_pairs(c)
    for seed, reason in c.left_out.items():
        console().print(f"seed {seed} is left out: {reason}", soft_wrap=True)
    _print_contrasts(c)
    verdict = verdict_of_seeds(c)
    console().print(f"\n{verdict}", soft_wrap=True)
    return verdict


def _describe(run: RunRecord) -> str:
    done, planned = len(run.generations), run.config.search.generations
    return f"{run.path}: {run.config.search.arm}, seed {run.config.seed}, {done} of {planned} generations"


def _named(prefix: str, changes: Changes) -> dict[str, tuple[Any, Any]]:
    return {f"{prefix}.{key}": values for key, values in changes.items()}


def _print_changes(title: str, changes: Mapping[str, tuple[Any, Any]]) -> None:
    if changes:
        print()
        rows = [(key, _text(one), _text(other)) for key, (one, other) in changes.items()]
        print_table((title, "A", "B"), rows)


def _print_differences(c: Comparison) -> None:
    rows = []
    for name, found in c.differences.items():
        means = (found.mean, found.first_half, found.second_half, found.last_five)
        rows.append((name, *map(_signed, means), *map(str, found.signs)))
    print()
    columns = ("B less A", "mean", "first half", "second half", "last five", "above", "below", "equal")
    print_table(columns, rows, title=f"by generation, {c.shared} shared")
    console().print(
        "Mean success is the AUC. Descriptive: the generations of a run depend on each other, so no test over "
        "them\nspeaks of other seeds; compare two folders of runs for that."
    )


def _print_divergence(c: Comparison) -> None:
    rows = [
        (what, "never" if (first := c.divergence[aspect]) is None else str(first)) for aspect, what in ASPECTS.items()
    ]
    print()
    print_table(("differs to the bit", "first in generation"), rows)


def _print_distance(c: Comparison) -> None:
    print()
    if c.distance is None:
        console().print("The coefficients cannot be compared: other modules, or more of them per module.")
        return
    places = sorted({round(place) for place in np.linspace(0, c.shared, min(SHOWN, c.shared + 1))})
    rows = [(module, *(f"{c.distance[place, m]:.3f}" for place in places)) for m, module in enumerate(c.a.modules)]
    print_table(("‖θ_B − θ_A‖ after generations", *map(str, places)), rows)


def _print_trajectories(found: ChangedTrajectories) -> None:
    console().print(
        f"\ntrajectories of generation {found.generation}: {len(found.changed)} of {found.tasks} tasks went another "
        f"way ({found.gained} gained, {found.lost} lost)",
        soft_wrap=True,
    )
    if found.only_a or found.only_b:
        console().print(f"other tasks: {len(found.only_a)} only in A, {len(found.only_b)} only in B")
    rows = [
        (task.task, task.what if task.step is None else f"{task.step}: {task.what}", _text(task.a), _text(task.b))
        for task in found.changed[:SHOWN]
    ]
    if rows:
        print_table(("task", "first change", "A", "B"), rows)
    if len(found.changed) > SHOWN:
        console().print(f"… and {len(found.changed) - SHOWN} more; --json has all")


def _print_pairs(c: SeedComparison) -> None:
    rows = []
    auc = c.contrasts["auc"]
    differences = dict(zip(auc.seeds, auc.differences, strict=True))
    for seed, pair in c.pairs.items():
        parts = [first for first in pair.divergence.values() if first is not None]
        parting = "identical" if pair.identical else str(min(parts)) if parts else "–"
        rows.append((str(seed), str(pair.shared), _signed(differences.get(seed)), parting))
    print()
    print_table(("seed", "generations", "AUC, B less A", "first differs in"), rows)


def _print_contrasts(c: SeedComparison) -> None:
    rows = []
    for name, contrast in c.contrasts.items():
        interval = f"[{_signed(contrast.interval.low)}, {_signed(contrast.interval.high)}]"
        ps = (contrast.p, c.holm_p[name], contrast.equivalence.p)
        signs = f"{contrast.positive} up, {contrast.negative} down of {contrast.n}"
        rows.append((METRICS[name].description, _signed(contrast.estimate), interval, *map(_p, ps), signs))
    print()
    columns = ("B less A, paired by seed", "difference", "95% interval", "p", "Holm p", "TOST p", "seeds")
    print_table(columns, rows)


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.3f}"


def _p(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _text(value: object) -> str:
    """On one line, cut where it gets long; a dash where there is nothing."""
    if value is None:
        return "–"
    text = short(value if isinstance(value, str) else str(value))
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 2]} …"
