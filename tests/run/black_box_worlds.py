"""Black boxes for the tests: smooth scores, and failures keyed by what is asked, so that they come back alike."""

from __future__ import annotations

import hashlib
import threading
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

MODULES = ("first", "second")
DIM = 3
TARGET = np.array([[1.0, -0.5, 0.3], [0.2, 0.8, -1.0]])


def number(theta: NDArray[np.float32], generation: int) -> int:
    """A number below 2^32 that only this question has."""
    return int.from_bytes(hashlib.sha256(theta.tobytes() + bytes([generation])).digest()[:4], "big")


def smooth(theta: NDArray[np.float32], generation: int, seed: int) -> dict[str, Any]:
    """Success falls with the distance from TARGET, which wanders a little from generation to generation."""
    squares = ((theta - TARGET - 0.05 * np.sin(generation + seed)) ** 2).sum(axis=1)
    return {
        "success": float(np.exp(-squares.sum())),
        "fitness": float(-squares.sum()),
        "blame": dict(zip(MODULES, (squares / squares.sum()).tolist(), strict=True)),
        "metrics": {"distance": float(np.sqrt(squares.sum()))},
    }


class Flaky:
    """`smooth`, slowly and with failures. Of the questions, every `transient`-th fails at the first attempt and
    every `permanent`-th at all of them; 0: none does. Asked from several threads at once."""

    def __init__(self, transient: int = 0, permanent: int = 0, seconds: float = 0.0) -> None:
        self.transient, self.permanent, self.seconds = transient, permanent, seconds
        self.attempts: dict[int, int] = {}
        self.under_way = self.most_under_way = 0
        self._lock = threading.Lock()

    def __call__(self, theta: NDArray[np.float32], generation: int, seed: int) -> dict[str, Any]:
        key = number(theta, generation)
        with self._lock:
            self.attempts[key] = self.attempts.get(key, 0) + 1
            self.under_way += 1
            self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            time.sleep(self.seconds * (key % 8) / 4)
            if self.fails(key):
                raise ConnectionError(f"question {key} is too hard")
            return smooth(theta, generation, seed)
        finally:
            with self._lock:
                self.under_way -= 1

    def fails(self, key: int) -> bool:
        if self.permanent and key % self.permanent == 0:
            return True
        return bool(self.transient) and key % self.transient == 0 and self.attempts[key] == 1
