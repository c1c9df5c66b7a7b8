"""The in-process tools and the checks in front of them."""

import datetime
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nograd.tasks.toolbox import convert, toolbox, weekday
from nograd.tasks.tools import ToolError, execute

TOOLS = toolbox()
GOOD = {
    "calculator": {"expression": "1 + 1"},
    "lookup": {"entity": "Peru", "attribute": "capital"},
    "convert": {"value": 2, "from_unit": "miles", "to_unit": "m"},
    "weekday": {"date": "2024-02-29"},
}
anything = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers(), max_size=2)
)


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_specification_and_checked_types_agree(name):
    tool = TOOLS[name]
    assert tool.spec.name == name
    assert list(tool.spec.parameters) == list(tool.types) == list(GOOD[name])
    assert execute(tool, GOOD[name]).ok


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_missing_and_unknown_parameters_are_named(name):
    for parameter in GOOD[name]:
        rest = {key: value for key, value in GOOD[name].items() if key != parameter}
        assert f"missing {parameter}; {name} takes" in execute(TOOLS[name], rest).error
    assert "unknown parameter 'extra'" in execute(TOOLS[name], GOOD[name] | {"extra": 1}).error


@pytest.mark.parametrize(
    ("name", "change", "error"),
    [
        ("calculator", {"expression": 3}, "expression must be a text"),
        ("lookup", {"entity": None}, "entity must be a text"),
        ("convert", {"value": "2"}, "value must be a number"),
        ("convert", {"value": True}, "value must be a number"),
        ("convert", {"value": math.inf}, "value must be a number"),
        ("convert", {"value": 10**400}, "value must be"),
        ("convert", {"value": 1e300}, "value must be 0 or between"),
        ("convert", {"from_unit": "parsec"}, "unknown unit 'parsec'; there is meter"),
        ("convert", {"to_unit": "hour"}, "miles is a length, but hour is a time"),
    ],
)
def test_bad_values_fail_the_call(name, change, error):
    result = execute(TOOLS[name], GOOD[name] | change)
    assert not result.ok
    assert error in result.error


@settings(deadline=None, max_examples=200)
@given(st.sampled_from(sorted(TOOLS)), st.data())
def test_no_arguments_raise(name, data):
    arguments = {key: data.draw(anything | st.just(value)) for key, value in GOOD[name].items()}
    result = execute(TOOLS[name], arguments)
    assert bool(result.output) == result.ok != bool(result.error)


@settings(deadline=None)
@given(st.dates())
def test_weekday_agrees_with_the_calendar(date):
    assert weekday(date.isoformat()) == date.strftime("%A")


@pytest.mark.parametrize(
    "date", ["2023-02-29", "20240315", "2024-W01-1", "15.3.2024", "0000-01-01", "２０２４-03-15"]
)
def test_days_that_do_not_exist_are_refused(date):
    with pytest.raises(ToolError, match="written like 2024-03-15"):
        weekday(date)


@pytest.mark.parametrize(
    ("value", "source", "target", "result"),
    [
        (3, "kilometer", "meter", "3000"),
        (5, "feet", "inches", "60"),
        (1, "mile", "km", "1.609344"),
        (2.5, "Hours", "minute", "150"),
        (1, "pound", "kg", "0.453592"),
        (0, "day", "second", "0"),
        (-0.1, "m", "cm", "-10"),
    ],
)
def test_conversions(value, source, target, result):
    assert convert(value, source, target) == result


def test_today_is_a_weekday():
    assert execute(TOOLS["weekday"], {"date": datetime.date.today().isoformat()}).ok
