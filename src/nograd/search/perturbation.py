"""The perturbations ε and the candidates made with them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nograd.search.streams import stream


def epsilon(seed: int, generation: int, module: int, pair: int, dim: int) -> NDArray[np.float32]:
    """ε ~ N(0, I), float32 [dim]; pair counts within the module.

    The key holds nothing of the arm: arms of one seed share ε wherever they perturb the same generation,
    module and pair.
    """
    draws = stream(seed, "perturbation", generation, module, pair)
    return draws.standard_normal(dim).astype(np.float32)


def candidates(
    theta: NDArray[np.float32],
    modules: NDArray[np.int64],
    epsilons: NDArray[np.float32],
    sigma: NDArray[np.float64],
) -> NDArray[np.float32]:
    """The center, then θ + σ·ε and θ − σ·ε of each pair: float32 [1 + 2·pairs, modules, dim].

    theta: float32 [modules, dim]; modules: the module of each pair, int64 [pairs]; epsilons: float32
    [pairs, dim]; sigma: float64 [modules].
    """
    thetas = np.repeat(theta[None], 1 + 2 * len(modules), axis=0)
    center = theta[modules].astype(np.float64)
    shift = sigma[modules, None] * epsilons.astype(np.float64)
    plus = 1 + 2 * np.arange(len(modules))
    thetas[plus, modules] = center + shift
    thetas[plus + 1, modules] = center - shift
    return thetas
