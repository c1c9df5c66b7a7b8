"""What is worth saying after a generation: success, and the time left at the speed of the latest ones."""

from __future__ import annotations

import sys
from collections import deque

from nograd.run.generation import GenerationRecord

RECENT = 5


class Pace:
    """Told of every generation in turn. total: generations that the run is to have."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._seconds: deque[float] = deque(maxlen=RECENT)

    def after(self, record: GenerationRecord) -> str:
        """The sentence after this generation."""
        self._seconds.append(record.seconds["generation"])
        left = (self.total - record.generation - 1) * sum(self._seconds) / len(self._seconds)
        rest = f"about {duration(left)} left" if left else "done"
        return f"success {record.success:.2f}, {self._seconds[-1]:.1f} s, {rest}"


class Lines:
    """Prints a line on stderr after each generation."""

    def __init__(self, total: int) -> None:
        self._pace = Pace(total)

    def __call__(self, record: GenerationRecord) -> None:
        number = f"generation {record.generation + 1}/{self._pace.total}"
        print(f"{number}: {self._pace.after(record)}", file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """Seconds as a person says them: "40 s", "3 min 20 s", "2 h 5 min"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
