"""`nograd arms`: the allocation schemes and their options."""

from __future__ import annotations


def arms() -> None:
    """List the ways to split the budget over the modules.

    The budget of a generation is its mirrored pairs. An arm is a scheme with its options, written
    scheme:option=value,option=value. Every scheme takes floor=N (pairs that every module gets first) and
    ipw=true (weight a module's step by (1/M)/its share).

    \b
    Examples:
      nograd run --arm uniform
      nograd run --arm hard_noisy:q=0.5,floor=1
      nograd run --arm lock:module=caller
      nograd run --arm burst:module=caller,catch_up=true
    """
    from nograd.cli.output import console, print_table
    from nograd.search.arms import COMMON_OPTIONS, SCHEMES

    rows = [(name, ", ".join(info.options), info.description) for name, info in SCHEMES.items()]
    print_table(("scheme", "options", "where the free pairs go"), rows)
    console().print(f"\nevery scheme also takes: {', '.join(COMMON_OPTIONS)}")
