"""`nograd export`: a run's coefficients as LoRA adapters, whole models or arrays."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from nograd.export.result import Export


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where it goes; a folder that is new or empty.")],
    format: Annotated[
        str, typer.Option(help="peft (a LoRA adapter per stage), merged (a whole model per stage) or npz (arrays).")
    ] = "peft",
    generation: Annotated[
        int | None, typer.Option(help="The coefficients after so many generations (default: all the run has).")
    ] = None,
    stages: Annotated[str | None, typer.Option(metavar="NAME,NAME", help="Which stages (default: all).")] = None,
    dtype: Annotated[
        str | None,
        typer.Option(help="float32, bfloat16 or float16 (default: float32; merged: as the model is stored)."),
    ] = None,
    with_base: Annotated[
        bool, typer.Option("--with-base", help="Put the untouched model into DIR/base, for --format peft.")
    ] = False,
    no_verify: Annotated[
        bool, typer.Option("--no-verify", help="Do not read it back and compare (that takes the model twice, in turn).")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier export in DIR.")] = False,
) -> None:
    """Export a run's coefficients for other programs.

    Writes one standard LoRA adapter per stage (peft), one whole model per stage (merged) or the bare arrays
    (npz), and a README.md that says how they were made and how to use them with vLLM and transformers. What
    was written is read back and its logits are compared with nograd's engine, in float32 on the CPU; if they
    differ, nothing is left behind. In Python: nograd.export_run(run, out).

    \b
    Examples:
      nograd export runs/demo --out adapters
      nograd export runs/demo --out adapters --with-base --force
      nograd export runs/demo --format merged --stages caller --dtype bfloat16 --out caller-model
      nograd export runs/demo --format npz --generation 10 --out arrays
    """
    from nograd.cli.output import note
    from nograd.export.start import export_run

    if not no_verify:
        note("writing, then comparing with the engine")
    chosen = [name.strip() for name in stages.split(",")] if stages else None
    _print(
        export_run(
            run,
            out,
            format=format,
            generation=generation,
            stages=chosen,
            dtype=dtype,
            verify=not no_verify,
            with_base=with_base,
            force=force,
        )
    )


def _print(done: Export) -> None:
    from nograd.cli.output import console, print_table

    compared = "ΔW" if done.format == "npz" else "logits"
    rows = []
    for stage in done.stages:
        check = (f"{stage.check.difference:.2g}", f"{stage.check.moved:.2g}") if stage.check else ("–", "–")
        rows.append((stage.name, stage.folder, f"{stage.norm:.3f}", *check))
    columns = ("stage", "in", "norm of θ", f"{compared}: from the engine", f"{compared}: from the untouched")
    print_table(columns, rows)
    for sentence in _sentences(done):
        console().print(sentence, soft_wrap=True)


def _sentences(done: Export) -> list[str]:
    """What to know beside the table."""
    zero = [stage.name for stage in done.stages if stage.untouched]
    found = []
    if zero:
        found.append(f"the coefficients of {', '.join(zero)} are all zero: there it is the untouched model")
    if not done.verified:
        found.append("not verified (--no-verify)")
    elif not done.exact:
        found.append(f"written in {done.dtype}; the difference from the engine is that rounding")
    if done.rank is not None:
        need = f"vLLM needs --max-lora-rank {done.max_lora_rank}" if done.max_lora_rank else "too large for vLLM"
        found.append(f"rank {done.rank}; {need}; base model: {done.base.path_for_adapters}")
    return [*found, f"written to {done.path}; how to use it: {done.path / 'README.md'}"]
