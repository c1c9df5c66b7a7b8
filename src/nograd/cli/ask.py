"""`nograd ask`: a free question to the untouched and to the tuned agent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def ask(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")],
    question: Annotated[str, typer.Argument(help="What to ask, or the id of one of the run's tasks.")],
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Ask the untouched and the tuned agent a question.

    Shows both trajectories, stage by stage. The agents have the tools of the run's task family. The tuned one
    is the run's newest center, also of a run that is not finished.

    \b
    Examples:
      nograd ask runs/demo "What is 12 plus 30?"
      nograd ask runs/demo "What is the capital of Peru?"
      nograd ask runs/demo in_house-07
    """
    from nograd.cli.agents import evaluator_of, play
    from nograd.cli.output import console
    from nograd.cli.trajectories import free_record, print_steps
    from nograd.run.load import load_run
    from nograd.run.rebuild import free_task

    record = load_run(run)
    evaluator = evaluator_of(record, device)
    task = free_task(evaluator.family, question)
    untouched, tuned = play(evaluator, record.config, task, (record.theta[0], record.theta[-1]))
    out = console()
    out.print(task.question, style="bold", soft_wrap=True)
    print_steps(out, "untouched", free_record(untouched), "yellow")
    print_steps(out, f"tuned, {len(record.generations)} generations", free_record(tuned), "green")
