"""`nograd compare`: two runs side by side, or two folders of runs paired by seed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from nograd.run.load import RunRecord


def compare(
    run_a: Annotated[Path, typer.Argument(metavar="RUN_A", help="A run directory, or a folder of one arm's runs.")],
    run_b: Annotated[Path, typer.Argument(metavar="RUN_B", help="The run or the folder to compare it with.")],
    json: Annotated[bool, typer.Option("--json", help="Print a last line of strict JSON.")] = False,
) -> None:
    """Compare two runs: what differs, by how much, and where they part.

    Prints the settings that differ, the differences of success, reward and fitness (B less A), the first
    generation in which anything differs to the bit, how far the coefficients are apart, and which tasks of the
    recorded trajectories went another way. That describes two runs and says nothing about other seeds. Two
    folders with several runs each are paired by seed, with the exact test over the seeds.

    \b
    Examples:
      nograd compare runs/first runs/second
      nograd compare sweeps/main/uniform sweeps/main/soft
      nograd compare runs/first runs/second --json

    \b
    The keys of --json: a, b, verdict, settings, facts, identical; of two runs also execution, surroundings,
    shared, differences, divergence, distance, trajectories; of two folders seeds, left_out, contrasts.
    """
    from nograd.cli.compare_print import print_runs, print_seeds
    from nograd.cli.compare_values import run_values, seed_values
    from nograd.cli.output import print_json
    from nograd.run.compare import compare_runs
    from nograd.run.compare_seeds import compare_seeds

    one, other = _load(run_a), _load(run_b)
    names = {"a": str(run_a), "b": str(run_b)}
    if len(one) == len(other) == 1:
        runs = compare_runs(one[0], other[0])
        verdict = print_runs(runs)
        values = run_values(runs)
    else:
        seeds = compare_seeds(one, other)
        verdict = print_seeds(seeds)
        values = seed_values(seeds)
    if json:
        print_json({**names, "verdict": verdict, **values})


def _load(path: Path) -> list[RunRecord]:
    from nograd.run.load import find_runs, load_run

    return [load_run(found) for found in find_runs(path)]
