"""`nograd arms`: the allocation schemes, their options, and the other settings that experiments vary."""

from __future__ import annotations

from collections.abc import Iterator


def arms() -> None:
    """List the ways to split the budget over the modules, and what else experiments vary.

    The budget of a generation is its mirrored pairs. An arm is a scheme with its options, written
    scheme:option=value,option=value; every scheme takes floor and ipw. The settings below are given with
    --set, or in a configuration file.

    \b
    Examples:
      nograd run --arm uniform
      nograd run --arm hard_noisy:q=0.5,floor=1
      nograd run --arm burst:module=caller,catch_up=true
      nograd run --arm soft --set subspace.basis=matched --set search.clip.caller=0.2
    """
    from nograd.cli.output import console, print_table
    from nograd.search.arms import COMMON_OPTIONS, OPTIONS, SCHEMES

    schemes = [(name, ", ".join(info.options), info.description) for name, info in SCHEMES.items()]
    print_table(("scheme", "options", "where the free pairs go"), schemes)
    console().print(f"\nevery scheme also takes: {', '.join(COMMON_OPTIONS)}\n")
    print_table(("option", "what it does"), OPTIONS.items())
    print()
    print_table(("setting", "what it does"), _settings())


def _settings() -> Iterator[tuple[str, str]]:
    from nograd.llm.subspace_choices import BINDINGS, KINDS, PARAMETERISATIONS

    choices = {"basis": KINDS, "binding": BINDINGS, "parameterisation": PARAMETERISATIONS}
    for setting, values in choices.items():
        for value, description in values.items():
            yield f"subspace.{setting}={value}", description
    yield "search.clip=0.5", "largest norm of a module's step; inf for no limit"
    yield "search.clip.caller=0.2", "that of one module; modules that are not named keep 0.5"
    yield "reward.shaping=0.5", "weight of the gold log-probabilities in the fitness; 0 asks for no scoring at all"
