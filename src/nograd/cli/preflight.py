"""`nograd preflight`: look for what fails in silence, before anyone spends a night on it."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from nograd.cli import run_flags

if TYPE_CHECKING:
    from nograd.cli.preflight_sweep import Sweep
    from nograd.preflight.record import Preflight
    from nograd.run.config import RunConfig


def preflight(
    config: run_flags.ConfigFile = None,
    arm: run_flags.Arm = None,
    seed: run_flags.Seed = None,
    generations: run_flags.Generations = None,
    pairs: run_flags.Pairs = None,
    model: run_flags.Model = None,
    dtype: run_flags.DType = None,
    device: run_flags.Device = None,
    tasks: run_flags.Tasks = None,
    tools: run_flags.Tools = None,
    settings: run_flags.Settings = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Directory of the run to come, or of one (default: as 'nograd run')."),
    ] = None,
    propose: Annotated[
        bool, typer.Option("--propose", help="Also search for an injection strength and a σ that fit.")
    ] = False,
    plan: Annotated[
        str | None, typer.Option(help="Also price the sweep of this plan, at --model and --generations if given.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print a last line of strict JSON.")] = False,
) -> None:
    """Look for the ways in which a run can fail in silence.

    It takes a minute or two and the same settings as 'nograd run': whether every module's perturbations change
    anything, whether a step can wreck the agent, whether the reward tells candidates apart, whether answers
    depend on their batch, whether the tasks can be solved and measured, and what the run will cost. Every finding
    has a verdict and, where something is wrong, what to change. They are kept as preflight.json in the directory
    of the run to come, and 'nograd run' recalls them. Seed, arm and generations may differ between the two.

    \b
    Examples:
      nograd preflight
      nograd preflight experiment.toml --out runs/experiment
      nograd preflight --tasks bfcl --set search.sigma=0.2 --propose
      nograd preflight --plan main --model smollm2-135m

    Exit status: 0 if no check failed, 1 if one did, 2 for a mistake.
    """
    from nograd.cli.checks import check_names
    from nograd.cli.output import console, print_json
    from nograd.cli.preflight_print import print_findings
    from nograd.cli.preflight_sweep import planned_sweep
    from nograd.cli.run import RUNS, free_directory, run_name
    from nograd.preflight.record import write_preflight
    from nograd.run import layout
    from nograd.run.config_source import load_config
    from nograd.run.files import disk_errors

    given = run_flags.overrides(
        settings,
        tasks,
        tools,
        arm=arm,
        seed=seed,
        generations=generations,
        pairs=pairs,
        model=model,
        dtype=dtype,
        device=device,
    )
    started = out / layout.CONFIG if out is not None and layout.holds_run(out) else None
    chosen = load_config(config or started, given)
    check_names(chosen)
    directory = out or free_directory(RUNS / run_name(chosen, config))
    sweep = None if plan is None else planned_sweep(plan, model, generations)
    with disk_errors():
        directory.mkdir(parents=True, exist_ok=True)
    found = _examine(chosen, directory.parent, sweep, propose)
    path = write_preflight(directory, found)
    print_findings(found.findings)
    console().print(f"{found.tally}; kept in {path}", soft_wrap=True)
    if json:
        print_json(found.record())
    if found.failed:
        raise typer.Exit(1)


def _examine(config: RunConfig, runs: Path, sweep: Sweep | None, propose: bool) -> Preflight:
    """Load everything, ask all detectors, and say on stderr what is being done."""
    from nograd.cli.output import note
    from nograd.cli.preflight_sweep import price
    from nograd.cli.progress import loading_note
    from nograd.preflight.preflight import detect
    from nograd.preflight.record import make_preflight
    from nograd.preflight.setting import build_setting

    start = perf_counter()
    if config.evaluator == "agent":
        loading_note(config.model.spec)
    setting = build_setting(config)
    detected = detect(setting, runs, lambda what: note(f"{perf_counter() - start:3.0f} s: {what}"), proposing=propose)
    priced = () if sweep is None else (price(sweep, config, detected.findings),)
    return make_preflight(config, (*detected.findings, *priced), perf_counter() - start, detected.proposed)
