"""`nograd prestudy`: the synthetic environment in one go, with the paper's Table 6 beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def prestudy(
    arms: Annotated[
        list[str] | None,
        typer.Option("--arm", help="Run this arm (default: those of the paper); may come several times."),
    ] = None,
    regimes: Annotated[
        list[str] | None, typer.Option("--regime", help="Run this regime (default: all four).")
    ] = None,
    seeds: Annotated[str, typer.Option(help='Seeds, such as "1-10".')] = "1-10",
    generations: Annotated[int, typer.Option(help="Steps of each run.")] = 120,
    csv: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="Also write every run's AUC to this file.")
    ] = None,
) -> None:
    """Compare the arms where the true bottleneck is known.

    No language model: each module's success probability is a smooth function of its coefficients. Takes under
    half a minute. The plan 'prestudy' is the same as resumable runs: nograd sweep prestudy.

    \b
    Examples:
      nograd prestudy
      nograd prestudy --arm bandit --arm random:floor=1 --regime stationary_tight
    """
    from nograd.cli.output import console, note
    from nograd.run.files import disk_errors
    from nograd.study.seeds import parse_seeds
    from nograd.synthetic import REGIMES, records, text_table
    from nograd.synthetic import prestudy as simulate
    from nograd.synthetic.table6 import ARMS

    rows = simulate(
        arms or ARMS,
        regimes or tuple(REGIMES),
        parse_seeds(seeds),
        generations,
        on_arm=lambda regime, arm: note(f"{regime.title}: {arm}"),
    )
    console().print(text_table(rows), soft_wrap=True)
    if csv is not None:
        import pandas as pd

        with disk_errors():
            pd.DataFrame(records(rows)).to_csv(csv, index=False)
