"""Normalised exact match of answers."""

import unicodedata
from decimal import Decimal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nograd.tasks.normalise import normalise, same_answer

FAST = settings(deadline=None, max_examples=200)


@FAST
@given(st.text(st.characters(exclude_categories=())))
@example("ͅ΄")
@example('" "a". ."')
def test_normalise_is_idempotent(text):
    assert normalise(normalise(text)) == normalise(text)


@FAST
@given(st.text())
def test_differences_that_do_not_count(text):
    for other in (f"  {text}\n", f'"{text}"', f"'{text}'.", f"{text}.", unicodedata.normalize("NFKC", text)):
        assert same_answer(text, other), other


@FAST
@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9, places=4))
def test_numbers_compare_as_decimals(number):
    assert same_answer(f"{number}", f"{number}00")
    assert same_answer(f"{number}", f"{number:,}")
    assert same_answer(f"{number:f}", f"{number:e}")
    assert not same_answer(f"{number}", f"{number + Decimal('0.0001')}")


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("42", "42.0"),
        ("42", "42."),
        ("42", " 42.00. "),
        ("42", "+42"),
        ("0", "-0.0"),
        ("0.5", ".5"),
        ("1000", "1e3"),
        ("1234.5", "1,234.50"),
        ("42", "４２"),
        ("Lima", '"lima".'),
        ("Lima", "“LIMA.”"),
        ("straße", "STRASSE"),
        ("ﬁn", "fin"),
        ("New Delhi", "new delhi"),
        ("inf", "Inf"),
    ],
)
def test_same(a, b):
    assert same_answer(a, b)
    assert same_answer(b, a)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("42", "43"),
        ("42", "-42"),
        ("42", "42.0000000000000000000000000001"),
        ("42", "42 eggs"),
        ("42", "$42"),
        ("42", "42%"),
        ("15", "1,5"),
        ("1234", "12,34"),
        ("1234567", "1,234567"),
        ("1.234", "1234"),
        ("1.5", "1.5.5"),
        ("inf", "infinity"),
        ("inf", "1e9999"),
        ("nan", "0"),
        ("1e3", "10e3"),
        ("4", "٤"),
        ("Lima", "Lima, Peru"),
        ("Lima", "The answer is Lima"),
        ("", "0"),
        (".5", "5"),
        ("New Delhi", "NewDelhi"),
    ],
)
def test_different(a, b):
    assert not same_answer(a, b)
    assert not same_answer(b, a)


def test_a_long_answer_is_no_problem():
    assert same_answer("1" + "0" * 100_000, "1" + "0" * 100_000 + ".0")
    assert not same_answer("1e9999", "1e-9999")
