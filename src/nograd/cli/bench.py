"""`nograd bench`: one generation against the usual ways of computing it, and against the machine's limits."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from nograd.bench.generation import Report
    from nograd.llm.loading import DeviceName, DTypeName


class DType(StrEnum):
    """Choices of --dtype."""

    auto = "auto"
    float32 = "float32"
    bfloat16 = "bfloat16"
    float16 = "float16"


class Device(StrEnum):
    """Choices of --device."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


def bench(
    dtype: Annotated[DType, typer.Option(help="Of the model.")] = DType.auto,
    device: Annotated[Device, typer.Option(help="Where to compute.")] = Device.auto,
    pairs: Annotated[int, typer.Option(min=1, help="Mirrored pairs of the generation.")] = 4,
    batch: Annotated[int, typer.Option(min=1, max=32, help="Tasks of the generation.")] = 16,
    repeats: Annotated[int, typer.Option(min=1, help="How often each way is run; medians are shown.")] = 3,
    json: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file.")] = None,
    own: Annotated[
        bool, typer.Option("--own", help="Only this engine: its limits and growth, in two minutes on two cores.")
    ] = False,
    invariance: Annotated[
        bool, typer.Option("--invariance", help="Only ask whether an answer depends on its batch.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Exit with 1 if a ratio does not reach what it must.")
    ] = False,
) -> None:
    """Measure one generation of the embedded model's agent in several ways, in one process.

    naive: candidate by candidate, forward hooks, transformers' generate, separate scoring. peft: the candidates as
    LoRA adapters in mixed batches. nograd: this engine. All on the same model, dtype, coefficients and tasks, and
    their trajectories are compared; in another dtype than float32, the first and the last in float32 as well. Ratios
    are of medians; the order of the ways rotates. It takes from minutes (with a GPU) to 40 minutes (on two CPU cores);
    run it on a quiet machine.

    \b
    Examples:
      nograd bench
      nograd bench --dtype float32 --json bench.json
      nograd bench --own
      nograd bench --invariance
    """
    if invariance:
        raise typer.Exit(_invariance(dtype.value, device.value))
    from nograd.bench.generation import run_benchmark
    from nograd.bench.verdicts import below
    from nograd.cli.output import note

    report = run_benchmark(dtype.value, device.value, pairs=pairs, batch=batch, repeats=repeats, own=own, say=note)
    _print(report)
    if json is not None:
        _write(report, json)
    if check and below(report.figures):
        typer.echo(f"below what it must reach: {', '.join(below(report.figures))}", err=True)
        raise typer.Exit(1)


def _print(report: Report) -> None:
    from rich.table import Table

    from nograd.bench.verdicts import BOUNDS, verdict
    from nograd.cli.output import console

    setting = ", ".join(f"{name} {value}" for name, value in report.setting.items())
    ways = Table(
        "way", "seconds", "tokens", "tokens/s", "/ nograd", "differing", title=f"One generation ({setting})"
    )
    base = next(way.seconds for way in report.ways if way.name == "nograd")
    for way in report.ways:
        ways.add_row(
            way.name,
            f"{way.seconds:.2f}",
            f"{way.tokens:,}",
            f"{way.tokens / way.seconds:,.0f}",
            f"{way.seconds / base:.2f}",
            "" if way.differing is None else str(way.differing),
        )
    console().print(ways)
    figures = Table("figure", "value", "must", "aim", "reached")
    for name, value in report.figures.items():
        bound = BOUNDS.get(name)
        if bound is None:
            figures.add_row(name, f"{value:,.3f}" if value < 100 else f"{value:,.0f}", "", "", "")
        else:
            sign = "≤" if bound.most else "≥"
            figures.add_row(
                name,
                f"{value:.2f}{bound.unit}",
                f"{sign} {bound.must}",
                f"{sign} {bound.aim}",
                verdict(name, value),
            )
    console().print(figures)


def _write(report: Report, path: Path) -> None:
    import json

    content = {**report.figures, "setting": dict(report.setting), "ways": [vars(way) for way in report.ways]}
    path.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n")


def _invariance(dtype: DTypeName, device: DeviceName) -> int:
    """Print how many requests depend on their batch; 1 if any does on a CPU."""
    from rich.table import Table

    from nograd.agent.prompts import gold_arguments
    from nograd.bench.setting import build
    from nograd.cli.output import console
    from nograd.llm.invariance import draw_requests, measure

    setting = build(dtype, device, 16)
    family, chat = setting.evaluator.family, setting.scheduler.chat
    prompts = getattr(setting.evaluator.agent, "prompts")  # noqa: B009 - the default agent has them
    requests = draw_requests(
        [tuple(chat.encode_chat(prompts.caller(task, task.tool))) for task in family.tasks],
        [tuple(chat.encode_text(gold_arguments(task.arguments))) for task in family.tasks],
        setting.evaluator.dim,
        len(setting.evaluator.modules),
        seed=0,
    )
    table = Table("arrangement", "requests", "tokens differ", "log-probability bits differ")
    rows = measure(setting.engine, requests)
    for row in rows:
        table.add_row(row.arrangement, str(row.requests), str(row.tokens), str(row.log_probabilities))
    console().print(table)
    on_cpu = setting.engine.transformer.device.type == "cpu"
    return int(on_cpu and any(row.tokens or row.log_probabilities for row in rows))
