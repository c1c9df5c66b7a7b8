"""The data are what the code takes them for."""

from collections import Counter

from nograd.tasks.bfcl.data import Entry
from nograd.tasks.bfcl.groups import LEFT_OUT, NEAR_DUPLICATES, group_of
from nograd.tasks.bfcl.schema import declared, properties


def test_400_entries_with_unique_ids(entries: tuple[Entry, ...]) -> None:
    assert [entry.number for entry in entries] == list(range(400))
    assert len({entry.name for entry in entries}) == 370
    assert len({entry.name.casefold() for entry in entries}) == 369


def test_every_parameter_has_a_declared_type_and_gold(entries: tuple[Entry, ...]) -> None:
    types: Counter[str] = Counter()
    for entry in entries:
        documents = properties(entry.function)
        assert set(documents) == set(entry.gold)
        types.update(declared(document).kind for document in documents.values())
    assert types["string"] == 587
    assert types["array"] == 81
    assert types["tuple"] == 2


def test_groups_name_functions_that_exist_once(entries: tuple[Entry, ...]) -> None:
    names = {entry.name for entry in entries}
    listed = [name for members in NEAR_DUPLICATES.values() for name in members]
    assert set(listed) <= names
    assert len({name.casefold() for name in listed}) == len(listed)
    assert all(len(members) > 1 for members in NEAR_DUPLICATES.values())
    assert not set(NEAR_DUPLICATES) & {name.casefold() for name in names}


def test_known_near_duplicates_share_a_group(entries: tuple[Entry, ...]) -> None:
    functions = [
        ("get_shortest_driving_distance", "calculate_shortest_distance"),
        ("calculate_probability", "probabilities.calculate_single", "probability_of_event"),
        ("geometry.area_circle", "geometry.calculate_area_circle"),
        ("math.gcd", "number_theory.gcd"),
        ("lawsuit_search", "lawsuits_search"),
        ("air_quality", "get_air_quality_index"),
        ("calculate_BMI", "calculate_bmi"),
    ]
    questions = [(0, 11), (9, 272), (14, 16), (39, 44), (84, 107), (95, 104), (377, 379)]
    pairs = [tuple(entries[number].name for number in pair) for pair in questions]
    for names in [*functions, *pairs]:
        assert len({group_of(name) for name in names}) == 1, names


def test_known_bad_gold_is_left_out_with_a_reason() -> None:
    assert {307, 149, 358, 17, 200, 286} <= set(LEFT_OUT)
    assert all(LEFT_OUT.values())
