"""What can be asked of the engine: a greedy completion, or the log-probability of a target text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Finish = Literal["stop", "length", "too_long"]


@dataclass(frozen=True)
class Request:
    """module: index of the stage; theta: its coefficients as float32 bytes [size] (hashable);
    prompt: token ids."""

    module: int
    theta: bytes
    prompt: tuple[int, ...]

    @property
    def path(self) -> tuple[int, ...]:
        """The tokens to compute before anything is decoded."""
        return self.prompt


@dataclass(frozen=True)
class CompletionRequest(Request):
    """Greedy decoding until an end-of-sequence token or `max_tokens`."""

    max_tokens: int = 32


@dataclass(frozen=True)
class ScoreRequest(Request):
    """Teacher-forced log-probability of `target` after the prompt; every target token counts."""

    target: tuple[int, ...] = ()

    @property
    def path(self) -> tuple[int, ...]:
        return self.prompt + self.target[:-1]


@dataclass(frozen=True)
class Completion:
    """tokens without the end-of-sequence token. finish: "stop" (ended by itself), "length" (cut at max_tokens),
    or "too_long" (prompt and max_tokens exceed the model's positions: nothing was computed)."""

    tokens: tuple[int, ...]
    finish: Finish


@dataclass(frozen=True, eq=False)
class Score:
    """log_probabilities: float64 [target tokens], natural logarithm; empty if `too_long`."""

    log_probabilities: NDArray[np.float64]
    too_long: bool = False

    @property
    def mean(self) -> float:
        """Mean per token; nan if too long or empty."""
        return float(self.log_probabilities.mean()) if len(self.log_probabilities) else float("nan")


Result = Completion | Score


@dataclass
class EngineCounts:
    """What was computed since the last `forget`: tokens that went through the model, outputs for which logits
    were taken, passes, and the seconds spent in them."""

    tokens_prefilled: int = 0
    tokens_decoded: int = 0
    prefill_outputs: int = 0
    prefill_passes: int = 0
    decode_passes: int = 0
    prefill_seconds: float = 0.0
    decode_seconds: float = 0.0


class RequestEngine(Protocol):
    """What the scheduler needs of an engine."""

    @property
    def counts(self) -> EngineCounts:
        """Since the last `forget`."""
        ...

    def run(self, requests: Sequence[Request]) -> list[Result]:
        """Results in the order of the requests."""
        ...

    def forget(self) -> None:
        """Drop what was kept between calls of `run`, and count anew."""
        ...
