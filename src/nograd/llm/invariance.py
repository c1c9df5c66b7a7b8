"""Does an answer depend on its company? The same requests alone, shuffled, and in batches of other sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nograd.llm.requests import (
    Completion,
    CompletionRequest,
    Request,
    RequestEngine,
    Result,
    Score,
    ScoreRequest,
)


@dataclass(frozen=True)
class Invariance:
    """How many of `requests` came out otherwise than in one batch: their tokens, or the bits of their
    log-probabilities."""

    arrangement: str
    requests: int
    tokens: int
    log_probabilities: int


def draw_requests(
    prompts: Sequence[tuple[int, ...]], targets: Sequence[tuple[int, ...]], size: int, modules: int, seed: int
) -> list[Request]:
    """A completion and a score for every prompt, under one of three θ of one of the modules."""
    generator = np.random.default_rng(seed)
    thetas = (0.3 * generator.standard_normal((modules, 3, size))).astype(np.float32)
    drawn: list[Request] = []
    for prompt, target in zip(prompts, targets, strict=True):
        module, which = int(generator.integers(modules)), int(generator.integers(3))
        theta = thetas[module, which].tobytes()
        drawn.append(CompletionRequest(module, theta, prompt, max_tokens=24))
        drawn.append(ScoreRequest(module, theta, prompt, target))
    return drawn


def measure(engine: RequestEngine, requests: Sequence[Request], seed: int = 0) -> list[Invariance]:
    """Compare every arrangement with the one batch of all requests."""
    together = _run(engine, requests, [range(len(requests))])
    order = np.random.default_rng(seed).permutation(len(requests)).tolist()
    arrangements = {
        "shuffled": [order],
        "halves": _parts(order, 2),
        "quarters": _parts(order, 4),
        "alone": [[i] for i in order],
    }
    return [_compare(name, together, _run(engine, requests, groups)) for name, groups in arrangements.items()]


def _parts(order: Sequence[int], count: int) -> list[Sequence[int]]:
    return [order[i::count] for i in range(count)]


def _run(engine: RequestEngine, requests: Sequence[Request], groups: Sequence[Sequence[int]]) -> list[Result]:
    results: dict[int, Result] = {}
    for group in groups:
        engine.forget()
        results.update(zip(group, engine.run([requests[i] for i in group]), strict=True))
    return [results[i] for i in range(len(requests))]


def _compare(name: str, together: Sequence[Result], apart: Sequence[Result]) -> Invariance:
    tokens = scores = 0
    for one, other in zip(together, apart, strict=True):
        if isinstance(one, Completion):
            tokens += one != other
        elif isinstance(one, Score) and isinstance(other, Score):
            scores += one.log_probabilities.tobytes() != other.log_probabilities.tobytes()
    return Invariance(name, len(together), tokens, scores)
