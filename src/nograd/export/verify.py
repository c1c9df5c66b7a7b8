"""Whether what was written does what the engine does: read back, run, compared logit by logit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from nograd.errors import ExportError
from nograd.export.logits import Prompts, check_keys, engine_logits, hub_logits, hub_model
from nograd.export.tuned import Tuned

TOLERANCE = 1e-4
"""Of the largest logit. float32 leaves about 1e-5 of it (30 layers, other order of the sums)."""


@dataclass(frozen=True)
class Check:
    """Largest absolute differences of a stage's logits (npz: ΔW) as read back: `difference` from the engine under
    this θ, `moved` from the untouched model; largest: the engine's largest absolute value."""

    difference: float
    moved: float
    largest: float


def verify_adapters(
    tuned: Tuned, folders: Mapping[int, Path], prompts: Prompts, exact: bool, base: Path
) -> dict[int, Check]:
    """Load the adapters of these modules with peft, all into the model of folder `base`, and compare.

    exact: see `judge`."""
    from peft import PeftConfig, PeftModelForCausalLM

    wanted = dict(zip(folders, engine_logits(tuned, list(folders), prompts), strict=True))
    model = hub_model(base)
    untouched = hub_logits(model, prompts)
    first = next(iter(folders.values()))
    peft_model: Any = PeftModelForCausalLM(model, PeftConfig.from_pretrained(str(first)), adapter_name=first.name)
    found = {}
    for module, folder in folders.items():
        loaded = peft_model.load_adapter(folder, folder.name, torch_device="cpu")
        check_keys(folder, loaded.missing_keys, loaded.unexpected_keys)
        peft_model.set_adapter(folder.name)
        found[module] = _compare(hub_logits(peft_model, prompts), wanted[module], untouched)
        judge(tuned, module, found[module], exact)
    return found


def verify_models(
    tuned: Tuned, folders: Mapping[int, Path], prompts: Prompts, exact: bool, base: Path
) -> dict[int, Check]:
    """Load the merged models of these modules, one after the other, and compare."""
    wanted = dict(zip(folders, engine_logits(tuned, list(folders), prompts), strict=True))
    untouched = hub_logits(hub_model(base), prompts)
    found = {}
    for module, folder in folders.items():
        found[module] = _compare(hub_logits(hub_model(folder), prompts), wanted[module], untouched)
        judge(tuned, module, found[module], exact)
    return found


def judge(tuned: Tuned, module: int, check: Check, exact: bool) -> None:
    """Raise ExportError if a stage does not do what the engine does.

    exact: written in float32, so that it must agree up to float32's own rounding; else the rounding must at
    least be smaller than what the coefficients change."""
    name, nothing = tuned.modules[module], tuned.untouched[module]
    limit = TOLERANCE * check.largest
    if exact and not check.difference <= limit:
        raise ExportError(
            f"the logits of {name!r} as read back differ from the engine's by {check.difference:.2g}, more than "
            f"{limit:.2g}; nothing was exported: please report this with the model's name"
        )
    if not nothing and check.moved == 0:
        raise ExportError(
            f"the logits of {name!r} as read back are the untouched model's although its coefficients are not zero; "
            "nothing was exported: please report this with the model's name"
        )
    if not exact and not nothing and not check.difference < check.moved:
        raise ExportError(
            f"rounding to this dtype moves the logits of {name!r} by {check.difference:.2g}, its coefficients move "
            f"them by {check.moved:.2g}; export with --dtype float32"
        )


def _compare(found: torch.Tensor, wanted: torch.Tensor, untouched: torch.Tensor) -> Check:
    return Check(float((found - wanted).abs().max()), float((found - untouched).abs().max()), float(wanted.abs().max()))
