"""`nograd run`: tune with one configuration and keep everything in a run directory."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nograd.cli import run_flags

if TYPE_CHECKING:
    from nograd.cli.cost import Cost
    from nograd.run.config import RunConfig
    from nograd.run.summary import RunSummary

RUNS = Path("runs")


def run(
    config: run_flags.ConfigFile = None,
    arm: run_flags.Arm = None,
    seed: run_flags.Seed = None,
    generations: run_flags.Generations = None,
    pairs: run_flags.Pairs = None,
    model: run_flags.Model = None,
    dtype: run_flags.DType = None,
    device: run_flags.Device = None,
    token_budget: run_flags.TokenBudget = None,
    tasks: run_flags.Tasks = None,
    tools: run_flags.Tools = None,
    track: Annotated[
        str | None, typer.Option(help="tensorboard: also write scalars there (extra 'track').")
    ] = None,
    settings: run_flags.Settings = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The run directory (default: a new one in runs/).")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Go on with the run in this directory.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the settings and what the run would cost; run nothing.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print a last line of strict JSON.")] = False,
) -> None:
    """Tune the agent with one configuration.

    Settings come from the defaults, then from CONFIG.toml, then from the flags. The run directory holds the
    settings, the surroundings, a line per generation and the coefficients after every generation. A run that
    was stopped, or killed, goes on with --resume to the same bytes as one that was left alone.

    \b
    Examples:
      nograd run --generations 15 --seed 2
      nograd run --arm hard_noisy:q=0.5,floor=1 --out runs/floored
      nograd run --set search.sigma=0.2 --set tasks.batch=8 --dry-run
      nograd run --tasks my.jsonl --tools my_tools.py
      nograd run experiment.toml --model Qwen/Qwen2.5-0.5B-Instruct --device cuda
      nograd run --resume runs/floored

    \b
    The keys of --json: zero_theta_success, last5_success, auc, requests_asked, requests_computed, tokens,
    seconds, peak_memory_bytes, run_dir.
    """
    from nograd.cli.checks import check_names

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
        token_budget=token_budget,
        track=track,
    )
    chosen = _configuration(config, given, resume, out)
    check_names(chosen)
    directory = resume or out or free_directory(RUNS / run_name(chosen, config))
    if dry_run:
        _print_plan(chosen, directory)
        return
    summary = execute(chosen, directory, resume=resume is not None)
    print_summary(summary, as_json=json)


def execute(config: RunConfig, directory: Path, *, resume: bool) -> RunSummary:
    """Run with live progress; Ctrl-C says how to go on."""
    from nograd.cli.preflight_print import recall
    from nograd.cli.progress import generation_progress, loading_note
    from nograd.run import layout
    from nograd.run.start import check_directory, run_config

    check_directory(directory, config, resume)
    recall(config, directory)
    if config.evaluator == "agent":
        loading_note(config.model.spec)
    try:
        with generation_progress(config.search.generations, config.execution.progress) as on_generation:
            return run_config(config, directory, resume=resume, on_generation=on_generation)
    except KeyboardInterrupt:
        if not layout.holds_run(directory):
            raise KeyboardInterrupt("stopped before the run began") from None
        again = f"nograd run --resume {shlex.quote(str(directory))}"
        raise KeyboardInterrupt(f"stopped; nothing is lost, go on with: {again}") from None


def print_summary(summary: RunSummary, *, as_json: bool) -> None:
    """The run's numbers for a person; then, if asked for, the line of JSON."""
    from nograd.cli.output import SUMMARY_KEYS, console, print_json
    from nograd.run.progress import duration

    cost = f"{duration(summary.seconds)}, {summary.peak_memory_bytes / 1e9:.2f} GB at most"
    if summary.requests_asked:
        computed = f"{summary.requests_computed:,} of {summary.requests_asked:,} requests computed"
        cost = f"{computed}, {summary.tokens:,} tokens, {cost}"
    console().print(
        f"success {summary.zero_theta_success:.2f} untouched, {summary.last5_success:.2f} over the last five "
        f"generations (AUC {summary.auc:.3f})\n{cost}\n"
        f"run directory: {summary.run_dir}",
        soft_wrap=True,
    )
    if as_json:
        print_json({key: getattr(summary, key) for key in SUMMARY_KEYS})


def _configuration(
    path: Path | None, overrides: list[str], resume: Path | None, out: Path | None
) -> RunConfig:
    """The run's own configuration is the base of a resumed one."""
    from nograd.errors import ConfigError
    from nograd.run import layout
    from nograd.run.config_source import load_config
    from nograd.run.resume import read_environment

    if resume is None:
        return load_config(path, overrides)
    if out is not None:
        raise ConfigError(f"--out {out} and --resume {resume} both name the run directory; give one of them")
    read_environment(resume)
    return load_config(path or resume / layout.CONFIG, overrides)


def run_name(config: RunConfig, path: Path | None) -> str:
    """Name of a new run's directory: that of the file, else what was chosen."""
    if path is not None:
        return f"{path.stem}-seed{config.seed}"
    tuned = config.tasks.family if config.evaluator == "agent" else config.evaluator
    if config.tasks.path is not None:
        tuned = Path(config.tasks.path).stem
    name = f"{tuned}-{config.search.arm}-seed{config.seed}"
    return "".join(char if char.isalnum() or char in "_.-" else "-" for char in name)


def free_directory(wanted: Path) -> Path:
    """The path, with a number behind it if there is something already; a preflight of the run to come, and an
    empty folder, leave it free."""
    numbered = (wanted.with_name(f"{wanted.name}-{number}") for number in range(2, 10_000))
    return wanted if _free(wanted) else next(path for path in numbered if _free(path))


def _free(path: Path) -> bool:
    from nograd.run import layout

    return not path.exists() or (path.is_dir() and {file.name for file in path.iterdir()} <= {layout.PREFLIGHT})


def _print_plan(config: RunConfig, directory: Path) -> None:
    from nograd.cli.cost import estimate
    from nograd.cli.output import console
    from nograd.run.config_source import to_toml
    from nograd.run.progress import duration

    cost = estimate(config, RUNS)
    time = (
        f"about {duration(cost.seconds)} at the speed of the newest run like it in {RUNS}/"
        if cost.seconds is not None
        else f"not known: no run like it in {RUNS}/ to judge from"
    )
    out = console()
    out.print(to_toml(config), soft_wrap=True)
    out.print(
        f"# run directory: {directory}\n{_work(config, cost)}# time: {time}",
        soft_wrap=True,
    )


def _work(config: RunConfig, cost: Cost) -> str:
    """What the run does, in the unit of its evaluator; of an own one only the candidates are known."""
    candidates, generations = 1 + 2 * config.search.pairs, config.search.generations
    if ":" in config.evaluator:
        return f"# evaluations: {candidates:,} per generation, {candidates * generations:,} in all\n"
    rollouts = f"# rollouts: {cost.rollouts_per_generation:,} per generation, {cost.rollouts:,} in all\n"
    if config.evaluator != "agent":
        return rollouts
    fewest, most = cost.requests
    return f"{rollouts}# requests asked: {fewest:,} to {most:,}; each distinct one is computed once\n"
