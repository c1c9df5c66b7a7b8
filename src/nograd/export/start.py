"""From a run to an export: refuse early, write aside, verify, describe, put in place."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import numpy as np

from nograd.errors import ExportError, unknown_name
from nograd.export.adapters import check_peft, max_lora_rank, write_adapter
from nograd.export.arrays import FILE, verify_arrays, write_arrays
from nograd.export.base import Base, base_of
from nograd.export.card import render_card
from nograd.export.folder import RECORD, check_free, folder_names, new_folder
from nograd.export.logits import chat_prompts
from nograd.export.merged import stored_dtype, write_model
from nograd.export.projections import lora_rank
from nograd.export.result import FORMATS, Export, Format, StageExport
from nograd.export.tuned import Tuned, check_exportable, pick_generation, tuned_of
from nograd.export.verify import Check, verify_adapters, verify_models
from nograd.llm.loading import DTYPES
from nograd.run.load import RunRecord, load_run
from nograd.run.strict_json import dumps


@dataclass(frozen=True, eq=False)
class _Plan:
    """What is to be written. folders: module → name; dtype: of the written weights, "mixed" as they are stored."""

    format: Format
    tuned: Tuned
    generation: int
    folders: Mapping[int, str]
    dtype: str
    verify: bool
    with_base: bool
    base: Base

    @property
    def exact(self) -> bool:
        return self.dtype == "float32"


def export_run(
    run: RunRecord | Path | str,
    out: Path | str,
    *,
    format: str = "peft",
    generation: int | None = None,
    stages: Sequence[str] | None = None,
    dtype: str | None = None,
    verify: bool = True,
    with_base: bool = False,
    force: bool = False,
) -> Export:
    """Write a run's coefficients for other programs to load, and check that they do what the engine does.

    format: "peft", "merged" or "npz", see FORMATS. generation: after how many (default: all that the run has).
    stages: which (default: all). dtype: of the written weights (default: float32; merged: as stored).
    with_base: put the untouched model into out/base, for peft. force: replace an earlier export in `out`.
    Raises NogradError with what to change; then `out` is as it was."""
    record = run if isinstance(run, RunRecord) else load_run(run)
    target = Path(out).expanduser().absolute()
    _check_request(format, dtype, with_base)
    check_exportable(record)
    generation = pick_generation(record, generation)
    modules = _pick_stages(record, stages)
    check_free(target, force)
    tuned = tuned_of(record, generation)
    names = folder_names([tuned.modules[m] for m in modules])
    base = base_of(record, tuned.source, target if with_base else None)
    kept = stored_dtype(tuned.source.folder) if format == "merged" else "float32"
    folders = dict(zip(modules, names, strict=True))
    plan = _Plan(cast(Format, format), tuned, generation, folders, dtype or kept, verify, with_base, base)
    with new_folder(target) as folder:
        _write(plan, folder)
        export = _describe(plan, target, _verify(plan, folder))
        _document(export, record, folder)
    return export


def _check_request(format: str, dtype: str | None, with_base: bool) -> None:
    if format not in FORMATS:
        raise unknown_name("format", format, FORMATS)
    if dtype is not None and dtype not in DTYPES:
        raise unknown_name("dtype", dtype, DTYPES)
    if format == "npz" and dtype not in (None, "float32"):
        raise ExportError(f"dtype = {dtype!r} was asked for, but npz holds float32 arrays; leave it out")
    if with_base and format != "peft":
        raise ExportError(f"with_base is for the format 'peft', not {format!r}; leave it out")
    if format == "peft":
        check_peft()


def _pick_stages(run: RunRecord, stages: Sequence[str] | None) -> list[int]:
    """Indices of the modules, in their own order."""
    for stage in stages or ():
        if stage not in run.modules:
            raise unknown_name("stage", stage, run.modules)
    return [index for index, name in enumerate(run.modules) if not stages or name in stages]


def _write(plan: _Plan, folder: Path) -> None:
    if plan.format == "npz":
        write_arrays(plan.tuned, list(plan.folders), plan.generation, plan.base.fingerprint, folder)
    for module, name in plan.folders.items():
        if plan.format == "merged":
            write_model(plan.tuned, module, folder / name, DTYPES.get(plan.dtype))
        elif plan.format == "peft":
            write_adapter(plan.tuned, module, folder / name, plan.base, DTYPES[plan.dtype])
    if plan.with_base:
        write_model(plan.tuned, None, folder / "base")


def _verify(plan: _Plan, folder: Path) -> Mapping[int, Check]:
    """Checks by module; none where not asked for."""
    if not plan.verify:
        return {}
    if plan.format == "npz":
        return verify_arrays(plan.tuned, list(plan.folders), folder)
    folders = {module: folder / name for module, name in plan.folders.items()}
    prompts = chat_prompts(plan.tuned.source.folder, plan.base.name)
    check = verify_adapters if plan.format == "peft" else verify_models
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # between peft and transformers, nothing to act on
        base = folder / "base" if plan.with_base else plan.tuned.source.folder
        return check(plan.tuned, folders, prompts, plan.exact, base)


def _describe(plan: _Plan, target: Path, checks: Mapping[int, Check]) -> Export:
    rank = lora_rank(plan.tuned.architecture, plan.tuned.subspace.spec.dim) if plan.format == "peft" else None
    stages = tuple(
        StageExport(
            plan.tuned.modules[module],
            FILE if plan.format == "npz" else name,
            float(np.linalg.norm(plan.tuned.theta[module])),
            plan.tuned.untouched[module],
            checks.get(module),
        )
        for module, name in plan.folders.items()
    )
    return Export(
        path=target,
        format=plan.format,
        generation=plan.generation,
        dtype=plan.dtype,
        exact=plan.exact,
        verified=bool(checks),
        with_base=plan.with_base,
        base=plan.base,
        stages=stages,
        rank=rank,
        max_lora_rank=None if rank is None else max_lora_rank(rank),
    )


def _document(export: Export, run: RunRecord, folder: Path) -> None:
    """README.md and export.json."""
    facts: dict[str, Any] = {key: value for key, value in asdict(export).items() if key != "path"}
    facts["version"] = version("nograd")
    (folder / "README.md").write_text(render_card(facts, run), encoding="utf-8")
    facts["entries"] = sorted(entry.name for entry in folder.iterdir())
    (folder / RECORD).write_bytes(dumps(facts) + b"\n")
