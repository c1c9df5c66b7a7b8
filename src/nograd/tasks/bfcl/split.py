"""Which BFCL tasks are for training, which are held out, and which functions a task offers beside its own.

Every choice orders its candidates by a hash of (seed, purpose, identity): nothing depends on file order, and
another size or seed of one choice leaves the others as they are.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from nograd.errors import ConfigError
from nograd.tasks.bfcl.data import Entry
from nograd.tasks.bfcl.gold import gold_text
from nograd.tasks.bfcl.groups import LEFT_OUT, group_of

TRAINING = 48
HELDOUT = 96
MAX_GOLD_CHARS = 80
"""Of the 400 tasks, 329 in 170 near-duplicate groups fit; SmolLM2 needs at most 55 tokens for them."""


@dataclass(frozen=True)
class Split:
    """Two sides without a function name, question or near-duplicate in common."""

    training: tuple[Entry, ...]
    heldout: tuple[Entry, ...]


def rank(seed: int, *key: str) -> bytes:
    """Sort key that orders candidates at random but reproducibly."""
    return sha256(json.dumps([seed, *key]).encode()).digest()


def usable(entries: Sequence[Entry], max_gold_chars: int = MAX_GOLD_CHARS) -> tuple[Entry, ...]:
    """Entries with sound gold whose canonical arguments take at most max_gold_chars characters of JSON."""
    return tuple(
        entry for entry in entries if entry.number not in LEFT_OUT and len(gold_text(entry)) <= max_gold_chars
    )


def split(
    entries: Sequence[Entry],
    *,
    seed: int = 0,
    training: int = TRAINING,
    heldout: int = HELDOUT,
    max_gold_chars: int = MAX_GOLD_CHARS,
) -> Split:
    """Draw one entry from each near-duplicate group, then the two sides from what was drawn.

    As no group is drawn twice, near-duplicates meet neither across the sides nor within one."""
    groups: dict[str, list[Entry]] = defaultdict(list)
    for entry in usable(entries, max_gold_chars):
        groups[group_of(entry.name)].append(entry)
    if len(groups) < training + heldout:
        raise ConfigError(
            f"only {len(groups)} distinct BFCL tasks have gold arguments of at most {max_gold_chars} "
            f"characters, {training} + {heldout} were asked for; raise max_gold_chars"
        )
    drawn = [min(members, key=lambda entry: rank(seed, "member", entry.id)) for members in groups.values()]
    drawn.sort(key=lambda entry: rank(seed, "side", group_of(entry.name)))
    return Split(tuple(drawn[:training]), tuple(drawn[training : training + heldout]))


def offered(entry: Entry, side: Sequence[Entry], *, distractors: int, seed: int = 0) -> tuple[str, ...]:
    """Names that the task offers: its own and those of `distractors` other entries of its side, mixed."""
    others = sorted(
        (other.name for other in side if other.id != entry.id),
        key=lambda name: rank(seed, "distractor", entry.id, name),
    )
    names = [entry.name, *others[:distractors]]
    return tuple(sorted(names, key=lambda name: rank(seed, "order", entry.id, name)))
