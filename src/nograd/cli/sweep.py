"""`nograd sweep`: run all arms and seeds of a plan, and go on with a sweep that was stopped."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from nograd.study.executors import Executor
    from nograd.study.scaling import Scaling
    from nograd.study.sweep import SweepOutcome
    from nograd.study.sweep_directory import Sweep

SWEEPS = Path("sweeps")


def sweep(
    plan: Annotated[
        str | None, typer.Argument(metavar="PLAN", help="A name of 'nograd plans', or a .toml file.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The sweep directory (default: a new one in sweeps/)."),
    ] = None,
    model: Annotated[str | None, typer.Option(help="Another model than the plan's.")] = None,
    seeds: Annotated[str | None, typer.Option(help='Other seeds, such as "1-3" or "1-4,9".')] = None,
    generations: Annotated[int | None, typer.Option(help="Other number of generations.")] = None,
    batch: Annotated[int | None, typer.Option(help="Other number of tasks per generation.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Any other setting, for all arms alike."),
    ] = None,
    workers: Annotated[int, typer.Option(help="Runs at a time.")] = 1,
    executor: Annotated[str, typer.Option(help="local, or ray (extra 'ray').")] = "local",
    address: Annotated[
        str | None, typer.Option(help="Address of a running Ray cluster (default: one is started here).")
    ] = None,
    gpus: Annotated[float, typer.Option(help="GPUs that a run takes, for ray.")] = 0,
    copied: Annotated[
        bool, typer.Option("--copied", help="Ray workers do not share this disk: copy run directories.")
    ] = False,
    track: Annotated[
        str | None, typer.Option(help="tensorboard: also write scalars there (extra 'track').")
    ] = None,
    source: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The sweep whose coefficients a replay evaluates.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Go on with the sweep in this directory.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what the sweep would cost; run nothing.")
    ] = False,
) -> None:
    """Run every arm of a plan under every seed.

    A run that fails or whose worker dies does not stop the others, and --resume goes on with whatever is
    missing or half-finished. Every run is a directory of its own, as 'nograd run' makes it.

    \b
    Examples:
      nograd sweep main --model smollm2-135m --seeds 1-3 --generations 15 --dry-run
      nograd sweep main --model smollm2-135m --seeds 1-3 --generations 15 --out sweeps/main
      nograd sweep my-plan.toml --workers 2
      nograd sweep held-out --source sweeps/bfcl-main
      nograd sweep main --executor ray --address head:6379 --gpus 1 --workers 8
      nograd sweep --resume sweeps/main
    """
    from nograd.cli.sweep_scaling import make_scaling
    from nograd.errors import ConfigError
    from nograd.study.executors import ExecutorOptions, make_executor

    options = ExecutorOptions(workers=workers, address=address, gpus=gpus, copied=copied)
    worker = make_executor(executor, options)
    scaling = make_scaling(model, seeds, generations, batch, track, settings or [])
    if resume is not None:
        _check_resume(plan, out, source, scaling)
        _go_on(resume, worker, workers, dry_run)
    elif plan is None:
        raise ConfigError("name a plan (see 'nograd plans') or the sweep to go on with (--resume DIR)")
    else:
        _start(plan, out, scaling, source, worker, workers, dry_run)


def _start(
    plan: str,
    out: Path | None,
    scaling: Scaling,
    source: Path | None,
    executor: Executor,
    workers: int,
    dry_run: bool,
) -> None:
    from nograd.cli.output import console
    from nograd.cli.run import free_directory
    from nograd.cli.sweep_cost import describe
    from nograd.cli.sweep_scaling import check_cells
    from nograd.study.cells import cells
    from nograd.study.plan_file import load_plan
    from nograd.study.sweep_directory import create_sweep

    file = load_plan(plan)
    planned = cells(file.plan, scaling)
    check_cells(planned)
    root = out or free_directory(SWEEPS / file.name)
    if dry_run:
        console().print(f"new sweep {root}", soft_wrap=True)
        console().print(describe(file.plan, [(cell, 0) for cell in planned], workers, source), soft_wrap=True)
    else:
        _run(create_sweep(root, file, scaling, source), executor)


def _go_on(root: Path, executor: Executor, workers: int, dry_run: bool) -> None:
    from nograd.cli.output import console
    from nograd.cli.sweep_cost import describe
    from nograd.study.cell_state import inspect
    from nograd.study.sweep_directory import open_sweep

    opened = open_sweep(root)
    if not dry_run:
        _run(opened, executor)
        return
    states = [(state.cell, state.steps) for state in inspect(opened) if state.kind != "damaged"]
    console().print(f"what is left of {root}", soft_wrap=True)
    console().print(describe(opened.file.plan, states, workers, opened.source), soft_wrap=True)


def _check_resume(plan: str | None, out: Path | None, source: Path | None, scaling: Scaling) -> None:
    """A sweep keeps the plan and the scaling that it began with."""
    from nograd.errors import ConfigError
    from nograd.study.scaling import Scaling

    if plan is not None or out is not None or source is not None or scaling != Scaling():
        raise ConfigError(
            "--resume goes on with the plan and the settings that the sweep began with; give only the "
            "directory, and --workers, --executor or --address if you like"
        )


def _run(opened: Sweep, executor: Executor) -> None:
    from nograd.cli.sweep_progress import sweep_progress
    from nograd.study.sweep import SweepInterruptedError, run_sweep

    try:
        with sweep_progress(opened) as on_progress:
            outcome = run_sweep(opened, executor, on_progress=on_progress)
    except SweepInterruptedError as error:
        raise KeyboardInterrupt(f"{error}: {_again(opened.root)}") from None
    _say_outcome(opened, outcome)


def _say_outcome(opened: Sweep, outcome: SweepOutcome) -> None:
    """Raises RunError if a run is missing, so that scripts see it in the exit status."""
    from nograd.cli.output import console, note
    from nograd.errors import RunError

    root = shlex.quote(str(opened.root))
    for name, why in outcome.failed.items():
        note(f"{name} failed: {why}")
    if not outcome.finished:
        raise RunError(
            f"{len(outcome.failed)} of {len(opened.cells)} runs failed, the others are complete; look at "
            f"{opened.root / 'failures.jsonl'}, then go on with: {_again(opened.root)}"
        )
    console().print(
        f"{len(outcome.complete)} runs complete in {opened.root}\ntry next: nograd report {root}",
        soft_wrap=True,
    )


def _again(root: Path) -> str:
    return f"nograd sweep --resume {shlex.quote(str(root))}"
