"""All commands by name. To add one: import its file, add its row.

A command's file imports typer at its top and everything heavy inside its functions, so that `nograd --help`
answers at once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Annotated, Any

import typer

from nograd import __version__
from nograd.cli import (
    arms,
    ask,
    bench,
    compare,
    demo,
    evaluate,
    export,
    export_data,
    fetch,
    init,
    ledger,
    models,
    paper_check,
    plans,
    preflight,
    prestudy,
    report,
    run,
    serve,
    show,
    sweep,
    tasks,
)
from nograd.cli.main import StoppedError

COMMANDS: dict[str, Callable[..., None]] = {
    "demo": demo.demo,
    "init": init.init,
    "preflight": preflight.preflight,
    "run": run.run,
    "show": show.show,
    "compare": compare.compare,
    "ask": ask.ask,
    "serve": serve.serve,
    "models": models.models,
    "tasks": tasks.tasks,
    "arms": arms.arms,
    "fetch": fetch.fetch,
    "bench": bench.bench,
    "plans": plans.plans,
    "sweep": sweep.sweep,
    "evaluate": evaluate.evaluate,
    "export": export.export,
    "report": report.report,
    "ledger": ledger.ledger,
    "prestudy": prestudy.prestudy,
    "export-data": export_data.export_data,
    "paper-check": paper_check.paper_check,
}


def build() -> typer.Typer:
    """The application with all commands, in the order of COMMANDS."""
    app = typer.Typer(
        add_completion=False,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback()(nograd)
    for name, command in COMMANDS.items():
        summary = (command.__doc__ or "").strip().partition("\n\n")[0]
        app.command(name, short_help=" ".join(summary.split()))(_stoppable(command))
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"nograd {__version__}")
        raise typer.Exit


def nograd(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error; works after any command.")
    ] = False,
) -> None:
    """Improve frozen LLM agents with forward passes only.

    nograd tunes a few dozen coefficients per stage of an agent by evolution strategies on a verifiable
    reward. The model's weights are never changed and no gradient is ever computed.

    \b
    Start here:
      nograd demo                     tune the embedded model's agent; before and after, and a picture
      nograd run --seed 2             one run of your own settings; 'nograd run --help' lists them
      nograd show RUN                 what a run learned
      nograd ask RUN "What is 3 + 4?" the untouched and the tuned agent, stage by stage

    Models and data are kept in the user's cache folder, or in the one that NOGRAD_CACHE names. Exit status:
    0 done, 1 a check found a disagreement, 2 a mistake (explained in one sentence), 130 stopped by Ctrl-C.
    """
    del version, debug  # handled by their callback and by `main`


def _stoppable(command: Callable[..., None]) -> Callable[..., None]:
    """The command with Ctrl-C as an exception of our own, which every version of typer lets through."""

    @functools.wraps(command)
    def stoppable(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
        except KeyboardInterrupt as stop:
            raise StoppedError(str(stop) or "stopped") from None

    return stoppable
