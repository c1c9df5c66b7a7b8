"""Coefficients and directions as one NumPy file: what a researcher needs to rebuild every ΔW, and nothing else.

theta        float32 [stages, size]; size is dim, or layers · dim where per_layer
modules      names of the stages, as text
columns      int64 [stages, dim]: which directions each stage owns
per_layer    whether each layer has coefficients of its own (layer l: l · dim … (l + 1) · dim)
injection    float64, the strength c
generation   after how many generations
fingerprint  of the untouched model's weights, as text
{layer}.{target}.u, .s, .v   float32 [out, K], [K], [in, K] for the targets q, v, o; K = modules · dim

ΔW of stage m on a target is c · u[:, j] diag(s[j] ∘ θ) v[:, j]ᵀ with j = columns[m].
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nograd.errors import ExportError
from nograd.export.tuned import Tuned
from nograd.export.verify import Check

FILE = "theta.npz"
ROUNDING = 1e-5
"""Of the largest entry: two float32 products in another order."""


def write_arrays(tuned: Tuned, modules: Sequence[int], generation: int, fingerprint: str, folder: Path) -> None:
    """theta.npz of these modules; loads without pickle."""
    spec = tuned.subspace.spec
    arrays: dict[str, Any] = {
        "theta": tuned.theta[list(modules)],
        "modules": np.array([tuned.modules[m] for m in modules]),
        "columns": np.stack([tuned.subspace.columns[m].numpy() for m in modules]),
        "per_layer": np.array(spec.per_layer),
        "injection": np.array(spec.strength),
        "generation": np.array(generation),
        "fingerprint": np.array(fingerprint),
    }
    for layer, targets in enumerate(tuned.subspace.directions):
        for target, own in targets.items():
            arrays |= {f"{layer}.{target}.{part}": getattr(own, part).numpy() for part in "usv"}
    np.savez(folder / FILE, **arrays)


def delta_of(arrays: Any, stage: int, layer: int, target: str) -> NDArray[np.float32]:
    """ΔW [out, in] of a stage, from the arrays alone. arrays: what np.load gives."""
    own, dim = arrays["columns"][stage], arrays["columns"].shape[1]
    theta = arrays["theta"][stage][layer * dim : (layer + 1) * dim] if arrays["per_layer"] else arrays["theta"][stage]
    u, s, v = (arrays[f"{layer}.{target}.{part}"] for part in "usv")
    delta: NDArray[np.float32] = (u[:, own] * (float(arrays["injection"]) * s[own] * theta)) @ v[:, own].T
    return delta.astype(np.float32)


def verify_arrays(tuned: Tuned, modules: Sequence[int], folder: Path) -> dict[int, Check]:
    """Every ΔW as read back against the engine's. Raises ExportError if one is off by more than float32's rounding."""
    with np.load(folder / FILE, allow_pickle=False) as file:
        arrays = dict(file)
    return {module: _check(tuned, module, arrays, stage) for stage, module in enumerate(modules)}


def _check(tuned: Tuned, module: int, arrays: Any, stage: int) -> Check:
    found = Check(0.0, 0.0, 0.0)
    for layer, targets in enumerate(tuned.subspace.directions):
        for target in targets:
            wanted = tuned.subspace.delta(tuned.theta[module], module, layer, target).numpy()
            read = delta_of(arrays, stage, layer, target)
            difference, moved, largest = (float(np.abs(x).max()) for x in (read - wanted, read, wanted))
            if difference > ROUNDING * largest:
                raise ExportError(
                    f"ΔW of {tuned.modules[module]!r} as read back from {FILE} differs by {difference:.2g}; "
                    "nothing was exported: please report this with the model's name"
                )
            found = Check(max(found.difference, difference), max(found.moved, moved), max(found.largest, largest))
    return found
