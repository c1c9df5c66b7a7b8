"""The knowledge base."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nograd.tasks.knowledge import KnowledgeBase, KnowledgeError, load

BASE = load()


def test_every_fact_is_found_whatever_the_case_and_space():
    for entity, attributes in BASE.facts.items():
        for attribute, value in attributes.items():
            assert value
            assert BASE.lookup(f"  {entity.upper()} ", f"\t{attribute.title()}") == value


def test_names_are_distinct_once_case_and_space_are_ignored():
    assert len({" ".join(entity.casefold().split()) for entity in BASE.facts}) == len(BASE.facts)


def test_inner_space_does_not_matter():
    base = KnowledgeBase({"New York": {"state tree": "maple"}})
    assert base.lookup("new   york", "State\nTree") == "maple"


@pytest.mark.parametrize(
    ("entity", "attribute", "message"),
    [
        ("Perru", "capital", "unknown entity 'Perru'; try Peru"),
        ("Peru", "captal", "unknown attribute 'captal'; try capital"),
        ("Peru", "zzz", "try capital, currency, language"),
        ("zzzzzz", "capital", "no similar name is known"),
        ("", "capital", "unknown entity ''"),
    ],
)
def test_errors_name_what_exists_nearby(entity, attribute, message):
    with pytest.raises(KnowledgeError) as refusal:
        BASE.lookup(entity, attribute)
    assert message in str(refusal.value)


@settings(deadline=None, max_examples=100)
@given(st.text(st.characters(exclude_categories=())), st.text() | st.just("capital"))
def test_any_names_give_a_value_or_a_short_error(entity, attribute):
    for name in (entity, "Peru"):
        try:
            outcome = BASE.lookup(name, attribute)
        except KnowledgeError as error:
            outcome = str(error)
        assert 0 < len(outcome) < 300


def test_errors_do_not_hold_values():
    for entity, attributes in BASE.facts.items():
        with pytest.raises(KnowledgeError) as refusal:
            BASE.lookup(entity, "zzzz")
        assert not set(attributes.values()) & set(str(refusal.value).split())
