"""`nograd evaluate`: what saved coefficients do on tasks, held-out ones above all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from nograd.report.heldout import ArmContrast, ArmRates
    from nograd.run.evaluate import Evaluated
    from nograd.run.load import RunRecord
    from nograd.tasks.family import TaskFamily


def evaluate(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run directories, or folders with several.")],
    tasks: Annotated[str, typer.Option(help="A task family, or a .jsonl file; see 'nograd tasks --help'.")],
    tools: Annotated[
        Path | None, typer.Option(metavar="FILE.py", help="The tools of a tasks file (default: those of the runs).")
    ] = None,
    generations: Annotated[
        str, typer.Option(help="Which coefficients: all, last, 28-30 or 0,5,10 (0, the untouched model, always).")
    ] = "last",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where tables and the picture go (default: none are written).")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print a last line of strict JSON.")] = False,
) -> None:
    """Evaluate the coefficients that runs saved, without training.

    Every generation that is asked for is evaluated on all tasks of the family. The results are kept in the run,
    in evaluations/FAMILY.jsonl, task by task; what is there is not computed again. Prints success, caller
    accuracy and relay (success where the call was accepted) by arm, and differences paired by seed. With
    "--generations all" and --out it draws the held-out learning curve beside the run's own.

    \b
    Examples:
      nograd evaluate runs/bfcl --tasks bfcl-heldout
      nograd evaluate runs/demo --tasks in-house-heldout --generations all --out heldout
      nograd evaluate runs/shop --tasks heldout.jsonl
      nograd evaluate sweeps/main --tasks bfcl-heldout --generations 28-30 --json

    \b
    The keys of --json: family, generations, rows (arm, n, mean, sd), contrasts (treatment, control, metric,
    estimate, low, high, p, holm_p, n), files.
    """
    from nograd.cli.output import print_json
    from nograd.report.heldout import arm_contrasts, arm_rates, check_distinct, rates_at
    from nograd.run.load import find_runs, load_run
    from nograd.run.task_family import other_tasks

    records = [load_run(path) for root in runs for path in find_runs(root)]
    check_distinct(records)
    others = other_tasks(records, tasks, None if tools is None else str(tools))
    done = _evaluate(records, others, generations, device)
    table = rates_at(done, generations)
    rates, contrasts = arm_rates(table), arm_contrasts(table)
    family = others.name
    _print_rates(rates, f"{family}, {_reading(generations)}")
    _print_contrasts(contrasts)
    files = _write(done, family, out)
    if json:
        print_json(
            {
                "family": family,
                "generations": generations,
                "rows": [{"arm": r.arm, "n": r.n, "mean": r.mean, "sd": r.sd} for r in rates],
                "contrasts": [_plain(contrast) for contrast in contrasts],
                "files": [str(file) for file in files],
            }
        )


def _evaluate(records: list[RunRecord], tasks: TaskFamily, generations: str, device: str) -> list[Evaluated]:
    from nograd.cli.output import note
    from nograd.run.evaluate import evaluate
    from nograd.run.evaluations import EvaluationRecord

    def tell(run: RunRecord, record: EvaluationRecord) -> None:
        note(f"{run.path}: generation {record.generation}, success {record.success:.3f}")

    try:
        return evaluate(records, tasks, generations, device=device, on_evaluation=tell)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("stopped; what was evaluated is kept, run the same command to go on") from None


def _reading(generations: str) -> str:
    """Which coefficients a row of the table speaks of."""
    if generations in ("all", "last"):
        return "after the last generation"
    return f"mean over generations {generations} (0 stands for itself: untrained)"


def _print_rates(rates: list[ArmRates], title: str) -> None:
    from nograd.cli.output import print_table
    from nograd.report.heldout import METRICS

    def cell(row: ArmRates, metric: str) -> str:
        mean, sd = row.mean[metric], row.sd[metric]
        if mean != mean:
            return "–"
        return f"{mean:.3f}" if sd is None or row.arm == "untrained" else f"{mean:.3f} ± {sd:.3f}"

    rows = [(row.arm, str(row.n), *(cell(row, metric) for metric in METRICS)) for row in rates]
    print_table(("arm", "seeds", *METRICS.values()), rows, title=title)


def _print_contrasts(contrasts: list[ArmContrast]) -> None:
    from nograd.cli.output import print_table
    from nograd.report.heldout import METRICS

    def number(value: float | None, form: str = "+.3f") -> str:
        return "–" if value is None or value != value else format(value, form)

    rows = []
    for row in contrasts:
        c = row.contrast
        interval = f"[{number(c.interval.low)}, {number(c.interval.high)}]"
        signs = f"{c.positive} up, {c.negative} down of {c.n}"
        rows.append(
            (
                f"{row.treatment} − {row.control}",
                METRICS[row.metric],
                number(c.estimate),
                interval,
                number(c.p, ".3f"),
                number(row.holm_p, ".3f"),
                signs,
            )
        )
    print()
    print_table(("contrast", "in", "difference", "95% interval", "p", "Holm p", "seeds"), rows)


def _write(done: list[Evaluated], family: str, out: Path | None) -> list[Path]:
    from nograd.cli.output import console
    from nograd.report.heldout import draw_heldout_curves
    from nograd.run import layout
    from nograd.run.evaluations import load_evaluations

    files = [layout.evaluations(each.run.path, family) for each in done]
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        data = out / f"{family}.csv"
        load_evaluations([each.run.path for each in done], family).to_csv(data, index=False)
        files = [data, draw_heldout_curves(done, family, out / f"{family}.png")]
    for file in files:
        console().print(str(file), soft_wrap=True)
    return files


def _plain(row: ArmContrast) -> dict[str, object]:
    contrast = row.contrast
    return {
        "treatment": row.treatment,
        "control": row.control,
        "metric": row.metric,
        "estimate": contrast.estimate,
        "low": contrast.interval.low,
        "high": contrast.interval.high,
        "p": contrast.p,
        "holm_p": row.holm_p,
        "n": contrast.n,
    }
