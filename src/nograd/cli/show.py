"""`nograd show`: what a run learned, spent and moved."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from nograd.run.config import RunConfig
    from nograd.run.load import RunRecord

BLOCKS = "▁▂▃▄▅▆▇█"


def show(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory, or a folder with several.")],
    json: Annotated[
        bool, typer.Option("--json", help="Print a last line of strict JSON, as 'nograd run' does.")
    ] = False,
) -> None:
    """Show what a run learned, moved and spent.

    Prints success and the rates by stage, what each module got and moved, and the cost; also of a run that
    still goes on. A folder with several runs is shown as a list of them.

    \b
    Examples:
      nograd show runs/demo
      nograd show runs
      nograd show runs/demo --json
    """
    from nograd.cli.output import SUMMARY_KEYS, print_json
    from nograd.errors import ConfigError
    from nograd.run.load import find_runs, load_run
    from nograd.run.summary import summarise

    runs = [load_run(path) for path in find_runs(run)]
    if len(runs) > 1:
        if json:
            raise ConfigError(f"{run} holds {len(runs)} runs, --json shows one; give its directory")
        _print_list(runs)
        return
    (record,) = runs
    _print_run(record)
    if json:
        summary = summarise(record.generations, record.path)
        print_json({key: getattr(summary, key) for key in SUMMARY_KEYS})


def sparkline(success: list[float]) -> str:
    """One block per value, empty at 0 and full at 1."""
    return "".join(BLOCKS[min(int(value * len(BLOCKS)), len(BLOCKS) - 1)] for value in success)


def _print_list(runs: list[RunRecord]) -> None:
    from nograd.cli.output import print_table, share
    from nograd.search.metrics import auc, last_five

    rows = []
    for run in runs:
        success = list(run.array("success"))
        numbers = [share(f(success)) for f in (lambda s: s[0], last_five, auc)] if success else ["–"] * 3
        done = f"{len(success)}/{run.config.search.generations}"
        rows.append((str(run.path), run.config.search.arm, str(run.config.seed), done, *numbers))
    print_table(("run", "arm", "seed", "generations", "untouched", "last five", "AUC"), rows)


def _print_run(run: RunRecord) -> None:
    from nograd.cli.output import console

    out = console()
    config = run.config
    out.print(f"{run.path}\n{config.search.arm}, seed {config.seed}, {_subject(run)}", soft_wrap=True)
    done, planned = len(run.generations), config.search.generations
    unfinished = "" if run.complete else f"; go on with: {_resumption(run)}"
    out.print(f"{done} of {planned} generations{unfinished}\n", soft_wrap=True)
    if not done:
        return
    _print_rates(run)
    out.print(f"\nsuccess by generation  {sparkline([g.success for g in run.generations])}\n", soft_wrap=True)
    _print_modules(run)
    out.print(f"\n{_cost(run)}", soft_wrap=True)


def _resumption(run: RunRecord) -> str:
    from nograd.cli.checks import IN_PROGRAMS

    program = IN_PROGRAMS.get(run.config.evaluator)
    return f"{program}(…, out={str(run.path)!r}, resume=True)" if program else f"nograd run --resume {run.path}"


def _cost(run: RunRecord) -> str:
    """Requests where there were any, time, and pairs that were evaluated in vain."""
    from nograd.run.progress import duration
    from nograd.run.summary import summarise

    total = summarise(run.generations, run.path)
    cost = duration(total.seconds)
    if total.requests_asked:
        computed = f"{total.requests_computed:,} of {total.requests_asked:,} requests computed"
        cost = f"{computed}, {total.tokens:,} tokens, {cost}"
    dropped, pairs = sum(len(record.dropped) for record in run.generations), run.array("allocation").sum()
    return f"{cost}\n{dropped:,} of {pairs:,} pairs dropped for want of a finite fitness" if dropped else cost


def _subject(run: RunRecord) -> str:
    """What was tuned: tasks and model, or an evaluator that has neither."""
    config, facts = run.config, run.environment["identity"]["facts"]
    if config.evaluator not in ("agent", "own"):
        return config.evaluator
    model, dtype = facts.get("model", config.model.spec), facts.get("dtype", config.model.dtype)
    return f"{_tasks(config)}, {model} ({dtype})"


def _tasks(config: RunConfig) -> str:
    """The family, or the tasks file by its shorter path: from the root or from here."""
    path = config.tasks.path
    return config.tasks.family if path is None else min(os.path.relpath(path), path, key=len)


def _print_rates(run: RunRecord) -> None:
    """Success and the evaluator's own rates: first generation, last five, whole run."""
    from nograd.cli.output import print_table, share
    from nograd.report.curves import metric_curves

    curves = {"success": run.array("success"), **metric_curves(run)}
    rows = [
        (name, share(values[0]), share(_mean(values[-5:])), share(_mean(values)))
        for name, values in curves.items()
    ]
    print_table(("mean of the batch", "untouched", "last five", "whole run"), rows)


def _mean(values: Iterable[float]) -> float:
    """Mean of the values that are there; nan if none is."""
    there = [float(value) for value in values if value == value]
    return sum(there) / len(there) if there else float("nan")


def _print_modules(run: RunRecord) -> None:
    from nograd.cli.output import print_table, share
    from nograd.search.metrics import movement, starvation

    pairs, moved = run.array("allocation"), movement(run.array("step_applied"))
    starved, bound = starvation(pairs), run.array("clip_bound").mean(axis=0)
    credit = run.generations[-1].credit_after
    rows = [
        (name, str(pairs[:, m].sum()), *map(share, (starved[m], credit[m], moved[m], bound[m])))
        for m, name in enumerate(run.modules)
    ]
    print_table(("module", "pairs", "starved", "credit now", "movement", "clip bound"), rows)
