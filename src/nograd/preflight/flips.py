"""Whether the two sides of a mirrored pair write different tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nograd.llm.requests import CompletionRequest, Request, RequestEngine


def both_sides(requests: Sequence[Request], perturbations: NDArray[np.float32]) -> list[Request]:
    """The requests under +δ, then under −δ, of every δ. perturbations: float32 [pairs, size]."""
    thetas = [theta.tobytes() for delta in perturbations for theta in (delta, -delta)]
    return [replace(request, theta=theta) for theta in thetas for request in requests]


def flips(
    engine: RequestEngine, requests: Sequence[CompletionRequest], perturbations: NDArray[np.float32]
) -> NDArray[np.bool_]:
    """bool [pairs, requests]: whether +δ and −δ answer a request with different tokens.

    perturbations: δ, float32 [pairs, size], of the requests' module."""
    asked = both_sides(requests, perturbations)
    answers = np.empty(len(asked), dtype=object)
    answers[:] = engine.run(asked)
    plus, minus = np.moveaxis(answers.reshape(len(perturbations), 2, len(requests)), 1, 0)
    return np.asarray(plus != minus, dtype=np.bool_)
