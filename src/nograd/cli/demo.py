"""`nograd demo`: tune the embedded model's agent and show what came of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from nograd.cli.before_after import BeforeAfter

GENERATIONS = 20
EXAMPLES = 3
PICTURE = "learning-curve.png"


def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="The run directory.")] = Path("runs/demo"),
    generations: Annotated[int, typer.Option(help="Steps of the search.")] = GENERATIONS,
    model: Annotated[str, typer.Option(help="As for 'nograd run'.")] = "smollm2-135m",
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="As for 'nograd run'.")
    ] = None,
) -> None:
    """Tune the embedded model's agent; before and after.

    Runs the in-house tasks with the uniform arm and seed 1, then lets the untouched and the tuned agent solve
    all tasks, and others that were never tuned on. Prints both as a table and three trajectories that changed,
    and draws the learning curve into the run directory. Takes a few minutes on two CPU cores; started again,
    it goes on where it stopped.

    \b
    Examples:
      nograd demo
      nograd demo --out runs/short --generations 5
    """
    from nograd.cli.run import execute, print_summary
    from nograd.run.config_source import load_config

    overrides = [f"search.generations={generations}", f"model.spec={model}", *(settings or [])]
    config = load_config(None, overrides)
    summary = execute(config, out, resume=True)
    print_summary(summary, as_json=False)
    _report(out)


def _report(directory: Path) -> None:
    from nograd.cli.agents import evaluator_of
    from nograd.cli.before_after import compare
    from nograd.cli.output import console, note
    from nograd.report.curves import draw_learning_curve
    from nograd.run.load import load_run
    from nograd.tasks.registry import family

    record = load_run(directory)
    evaluator = evaluator_of(record, record.config.execution.device)
    note("evaluating the untouched and the tuned agent on all tasks and on held-out ones")
    own = compare(evaluator, record.config, evaluator.family, record.theta[-1])
    heldout = compare(evaluator, record.config, family("in_house_heldout"), record.theta[-1])
    _print_rates((own, heldout), record.modules)
    _print_examples(own)
    picture = draw_learning_curve(record, directory / PICTURE, untouched=own.before.evaluation.success)
    console().print(
        f"run directory   {directory}\nlearning curve  {picture}\n"
        f'try next        nograd ask {directory} "What is 12 plus 30?"',
        soft_wrap=True,
    )


def _print_rates(pairs: tuple[BeforeAfter, ...], modules: tuple[str, ...]) -> None:
    from nograd.cli.before_after import rate_rows
    from nograd.cli.output import print_table

    names = ["before", "after", "held-out: before", "held-out: after"]
    sizes = " and ".join(f"{len(pair.family.tasks)} tasks of {pair.family.name}" for pair in pairs)
    print()
    print_table(("share of the tasks", *names), rate_rows(pairs, modules), title=sizes)
    print()


def _print_examples(pair: BeforeAfter) -> None:
    from nograd.cli.before_after import changed_examples
    from nograd.cli.output import console
    from nograd.cli.trajectories import print_steps

    out = console()
    for task, before, after in changed_examples(pair, EXAMPLES):
        out.print(f"{task.question}  (right: {task.answer})", style="bold", soft_wrap=True)
        for when, record, style in (("before", before, "yellow"), ("after", after, "green")):
            verdict = "right" if record["success"] else "wrong"
            print_steps(out, f"{when}: {verdict}", record, style)
        out.print()
