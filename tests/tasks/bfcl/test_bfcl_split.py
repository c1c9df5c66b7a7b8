"""The constraints of the split, for any seed and size."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nograd.errors import ConfigError
from nograd.tasks.bfcl.checker import check
from nograd.tasks.bfcl.data import Entry
from nograd.tasks.bfcl.gold import gold_arguments, gold_text
from nograd.tasks.bfcl.groups import LEFT_OUT, NEAR_DUPLICATES, group_of
from nograd.tasks.bfcl.split import offered, split, usable

SEEDS = st.integers(-(2**40), 2**40)
COMMON_WORDS = {
    "a",
    "an",
    "and",
    "at",
    "by",
    "for",
    "from",
    "in",
    "is",
    "me",
    "of",
    "on",
    "s",
    "the",
    "to",
    "with",
}


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", text.lower())) - COMMON_WORDS


def overlap(a: str, b: str) -> float:
    """Jaccard similarity of the words: 1 for the same question, 0 for nothing in common."""
    return len(words(a) & words(b)) / len(words(a) | words(b))


def test_overlap_sees_the_known_near_duplicate_questions(entries: tuple[Entry, ...]) -> None:
    pairs = [(0, 11), (84, 107), (95, 104), (377, 379)]
    assert all(overlap(entries[a].question, entries[b].question) > 0.35 for a, b in pairs)


@settings(deadline=None, max_examples=25)
@given(seed=SEEDS)
def test_sides_have_nothing_in_common(entries: tuple[Entry, ...], seed: int) -> None:
    sides = split(entries, seed=seed)
    assert (len(sides.training), len(sides.heldout)) == (48, 96)
    drawn = sides.training + sides.heldout
    assert len({entry.name.casefold() for entry in drawn}) == len(drawn)
    assert len({entry.question.casefold() for entry in drawn}) == len(drawn)
    for members in NEAR_DUPLICATES.values():
        assert len({entry.name for entry in drawn} & set(members)) <= 1
    assert not {entry.number for entry in drawn} & set(LEFT_OUT)
    assert max(len(gold_text(entry)) for entry in drawn) <= 80
    for entry in sides.training:
        closest = max(sides.heldout, key=lambda other: overlap(entry.question, other.question))
        assert overlap(entry.question, closest.question) < 0.6, (entry.question, closest.question)


@settings(deadline=None, max_examples=10)
@given(seed=SEEDS, count=st.integers(0, 5))
def test_distractors_are_other_functions_of_the_same_side(
    entries: tuple[Entry, ...], seed: int, count: int
) -> None:
    sides = split(entries, seed=seed)
    for side in (sides.training, sides.heldout):
        names = {entry.name for entry in side}
        for entry in side:
            shown = offered(entry, side, distractors=count, seed=seed)
            assert entry.name in shown
            assert len(shown) == len({name.casefold() for name in shown}) == count + 1
            assert set(shown) <= names
            assert len({group_of(name) for name in shown}) == count + 1


def test_split_is_fixed_by_its_seed_and_not_by_file_order(entries: tuple[Entry, ...]) -> None:
    assert split(entries, seed=3) == split(entries[::-1], seed=3)
    assert split(entries, seed=3).training != split(entries, seed=4).training
    side = split(entries, seed=3).training
    assert offered(side[0], side, distractors=3) == offered(side[0], side[::-1], distractors=3)
    assert len({offered(entry, side, distractors=3).index(entry.name) for entry in side}) == 4


def test_more_distractors_keep_the_fewer(entries: tuple[Entry, ...]) -> None:
    side = split(entries).training
    assert set(offered(side[0], side, distractors=2)) < set(offered(side[0], side, distractors=3))


def test_canonical_gold_passes_and_holds_no_placeholder(entries: tuple[Entry, ...]) -> None:
    for entry in entries:
        arguments = gold_arguments(entry)
        assert check(entry.function, [{entry.name: arguments}], entry.ground_truth).valid
        assert "" not in arguments.values()
        assert all(name in arguments or "" in options for name, options in entry.gold.items())


def test_usable_tasks_by_length_of_gold(entries: tuple[Entry, ...]) -> None:
    assert [len(usable(entries, limit)) for limit in (40, 60, 80, 100, 1000)] == [106, 235, 329, 371, 393]


def test_too_few_short_tasks_are_refused_with_the_numbers(entries: tuple[Entry, ...]) -> None:
    with pytest.raises(ConfigError, match=r"only 65 .* 40 characters, 48 \+ 96 .*; raise max_gold_chars"):
        split(entries, max_gold_chars=40)
