"""Seeds as text: "1-8" or "1-4,9"; each seed once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from nograd.errors import ConfigError

MOST = 10_000


def parse_seeds(text: str) -> tuple[int, ...]:
    """The seeds that a text such as "1-8,11" names, in ascending order. Raises ConfigError for another form,
    a range that runs backwards, or a seed named twice."""
    seeds = [seed for part in text.split(",") for seed in _range(text, part.strip())]
    return distinct(seeds, f"seeds {text!r}")


def distinct(seeds: Iterable[int], where: str) -> tuple[int, ...]:
    """The seeds in ascending order. Raises ConfigError if one comes twice (a run would count double)."""
    counts = Counter(seeds)
    twice = [seed for seed, count in counts.items() if count > 1]
    if twice:
        raise ConfigError(f"{where} overlap: {format_seeds(sorted(twice))} come twice; name each seed once")
    return tuple(sorted(counts))


def format_seeds(seeds: Sequence[int]) -> str:
    """The shortest text that `parse_seeds` reads back to these ascending seeds."""
    parts: list[list[int]] = []
    for seed in seeds:
        if parts and seed == parts[-1][-1] + 1:
            parts[-1].append(seed)
        else:
            parts.append([seed])
    return ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


def _range(text: str, part: str) -> range:
    match = re.fullmatch(r"(\d{1,9})(?:\s*-\s*(\d{1,9}))?", part)
    if match is None:
        raise ConfigError(f"{text!r} does not name seeds; write ranges and numbers, e.g. 1-8 or 1-4,9")
    first, last = int(match[1]), int(match[2] or match[1])
    if not first <= last < first + MOST:
        raise ConfigError(
            f"{text!r} does not name seeds: {part} must run upwards, over at most {MOST} of them; write e.g. 1-8"
        )
    return range(first, last + 1)
