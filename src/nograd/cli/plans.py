"""`nograd plans`: the experiments that come with nograd, or one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from nograd.study.plan_file import PlanFile


def plans(
    name: Annotated[str | None, typer.Argument(metavar="PLAN", help="Show this plan (a name or a .toml file).")] = None,
    toml: Annotated[
        bool, typer.Option("--toml", help="Print the plan's file, as a start for a plan of your own.")
    ] = False,
) -> None:
    """List the experiments, or show one.

    A plan is arms × seeds on shared settings, with what was predicted before the runs.

    \b
    Examples:
      nograd plans
      nograd plans floor
      nograd plans floor --toml > my-plan.toml
    """
    from nograd.cli.output import console
    from nograd.errors import ConfigError
    from nograd.study.plan_file import load_plan

    if name is None:
        if toml:
            raise ConfigError("--toml prints one plan; name it, as in: nograd plans main --toml")
        _list()
        return
    file = load_plan(name)
    if toml:
        console().print(file.text, soft_wrap=True, end="")
    else:
        _show(file)


def _list() -> None:
    from nograd.cli.output import console
    from nograd.study.plan_file import load_plan, plan_names

    names = plan_names()
    width = max(map(len, names))
    for name in names:
        plan = load_plan(name).plan
        console().print(f"{name:{width}}  {plan.title} ({plan.paper})", soft_wrap=True)


def _show(file: PlanFile) -> None:
    from nograd.cli.output import console, print_table
    from nograd.run.strict_json import dumps
    from nograd.study.cells import cells, rollouts
    from nograd.study.seeds import format_seeds

    plan, out = file.plan, console()
    out.print(f"{file.name}: {plan.title}", style="bold", soft_wrap=True)
    extends = f", extends {plan.extends}" if plan.extends else ""
    replay = f", replays a {plan.replay.source} sweep on {plan.replay.family}" if plan.replay else ""
    heldout = f", evaluated on {plan.heldout.family} every {plan.heldout.every} generations" if plan.heldout else ""
    for text in (plan.paper, " ".join(plan.notes.split())):
        if text:
            out.print(text, soft_wrap=True)
    out.print(
        f"\nseeds {format_seeds(plan.seeds)}{extends}{replay}{heldout}; {len(cells(plan))} runs, {rollouts(plan):,} "
        f"rollouts\nsettings of all arms: {dumps(plan.settings).decode()}\n",
        soft_wrap=True,
    )
    rows = [
        (
            label,
            spec.arm,
            plan.baseline_of(label) or "–",
            dumps(spec.settings).decode() if spec.settings else "",
        )
        for label, spec in plan.arms.items()
    ]
    print_table(("arm", "scheme", "compared with", "own settings"), rows)
    for prediction in plan.predictions:
        scored = "" if prediction.scored else " (not scored)"
        out.print(f"\nprediction {prediction.id}{scored}: {prediction.claim}", soft_wrap=True)
        out.print(f"  why: {prediction.why}", style="dim", soft_wrap=True)
