"""Decisive tokens: where a stage's greedy completion first departs from its gold target, and the margin there.

Logits at one position differ from log-probabilities by a constant, so differences of the two are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nograd.llm.requests import Completion, CompletionRequest, RequestEngine, Score, ScoreRequest


@dataclass(frozen=True)
class Decisive:
    """prompt: token ids up to the position. gold: the token that the gold target has there. top: the token
    that greedy decoding takes, or all tokens that end a completion where it ends too early."""

    module: int
    prompt: tuple[int, ...]
    gold: int
    top: tuple[int, ...]


def decisive_tokens(engine: RequestEngine, scores: Iterable[ScoreRequest], eos_ids: Iterable[int]) -> list[Decisive]:
    """The decisive token of every gold target that the stage does not write by itself. What the stage writes
    after the end of the target is not looked at."""
    ends = tuple(sorted(eos_ids))
    asked = [score for score in scores if score.target]
    written = engine.run([CompletionRequest(s.module, s.theta, s.prompt, len(s.target)) for s in asked])
    found = [_departure(score, answer, ends) for score, answer in zip(asked, written, strict=True)]
    return [point for point in found if point is not None]


def _departure(score: ScoreRequest, answer: object, ends: tuple[int, ...]) -> Decisive | None:
    assert isinstance(answer, Completion)
    if answer.finish == "too_long":
        return None
    same = next((i for i, token in enumerate(answer.tokens) if token != score.target[i]), len(answer.tokens))
    if same == len(score.target):
        return None
    top = (answer.tokens[same],) if same < len(answer.tokens) else ends
    return Decisive(score.module, score.prompt + score.target[:same], score.target[same], top)


def margins(
    engine: RequestEngine, points: Sequence[Decisive], thetas: Sequence[NDArray[np.float32]]
) -> NDArray[np.float64]:
    """logit(top) − logit(gold) at every point under every θ of its module, float64 [thetas, points].

    thetas: float32 [size] each. Above 0 where the stage does not write gold."""
    asked = [
        [ScoreRequest(p.module, theta.tobytes(), p.prompt, (token,)) for token in (p.gold, *p.top)]
        for theta in thetas
        for p in points
    ]
    answers = iter(engine.run([request for group in asked for request in group]))
    values = [_margin([next(answers) for _ in group]) for group in asked]
    return np.array(values, np.float64).reshape(len(thetas), len(points))


def _margin(answers: Sequence[object]) -> float:
    gold, *top = [float(a.log_probabilities[0]) for a in answers if isinstance(a, Score)]
    return max(top) - gold
