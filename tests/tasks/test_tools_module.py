"""A Python file as tools: what the agent is told of them, which calls they take, which files are refused."""

from __future__ import annotations

import math
import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nograd.errors import TaskError
from nograd.tasks.own.docstring import parameter_texts, summary
from nograd.tasks.own.function_tool import MAX_ERROR, function_tool
from nograd.tasks.own.tools_module import ToolsModule, load_tools

MODULE = '''
from __future__ import annotations

import functools
import math
from enum import Enum
from math import sqrt
from typing import Annotated, Literal, Optional

from pydantic import BaseModel, Field

class Size(Enum):
    small = "s"
    large = "l"

class Point(BaseModel):
    x: int

def book(
    hotel: str,
    nights: int = 1,
    size: Size = Size.small,
    board: Literal["none", "breakfast"] = "none",
    rate: Optional[float] = None,
    guests: Annotated[list[str], Field(min_length=1, description="who comes")] = ["me"],
) -> str:
    """Book a room in
    a hotel.

    More that the agent is not told.

    Args:
        hotel (str): the name of the hotel,
            as it is written on the door.
        nights: how many nights
        guests: what the annotation says goes first
    """
    return f"{hotel} {nights} {size.value} {board} {rate} {guests}"

def shadow(copy: int, model_dump: str, json: bool, schema: float) -> str:
    return f"{copy} {model_dump} {json} {schema}"

def nothing():
    """Take nothing."""
    return None

def fails(how: str) -> str:
    """Fail."""
    if how == "silent":
        raise KeyError()
    raise ValueError("\\n  " + how + "\\nsecond line")

def where(point: Point, maybe: int | None) -> int:
    """Tell where.

    :param point: a place
    """
    return point.x

@functools.cache
def cached(n: int) -> int:
    """Count."""
    return n + _step()

def near(task, answer):
    return abs(float(answer) - float(task.answer)) < 1

def _step() -> int:
    return 1

imported = sqrt
also_book = book
'''


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> ToolsModule:
    path = tmp_path_factory.mktemp("tools") / "tools.py"
    path.write_text(MODULE)
    return load_tools(path)


def write(folder: Path, text: str) -> Path:
    path = folder / "tools.py"
    path.write_text(textwrap.dedent(text) + "\n")
    return path


def call(module: ToolsModule, tool: str, **arguments: Any) -> tuple[bool, str]:
    result = module.tools[tool].call(arguments)
    assert not (result.output and result.error)
    return result.ok, result.output or result.error


def test_public_functions_of_the_file_are_tools_and_checks_in_its_order(module: ToolsModule) -> None:
    assert list(module.tools) == ["book", "shadow", "nothing", "fails", "where", "cached"]
    assert list(module.checks) == ["near"]


def test_what_the_agent_is_told(module: ToolsModule) -> None:
    book = module.tools["book"].spec
    assert (book.name, book.description) == ("book", "Book a room in a hotel")
    assert dict(book.parameters) == {
        "hotel": "string: the name of the hotel, as it is written on the door",
        "nights": "integer, optional, default 1: how many nights",
        "size": 'string, optional, one of s | l, default "s"',
        "board": 'string, optional, one of none | breakfast, default "none"',
        "rate": "number, optional",
        "guests": 'array of string, optional, default ["me"]: what the annotation says goes first',
    }
    assert module.tools["shadow"].spec.description == "shadow"
    assert dict(module.tools["where"].spec.parameters) == {"point": "object: a place", "maybe": "integer or null"}
    assert not module.tools["nothing"].spec.parameters


def test_calls_use_the_functions_own_defaults_and_types(module: ToolsModule) -> None:
    assert call(module, "book", hotel="Ritz") == (True, "Ritz 1 s none None ['me']")
    everything = {"nights": 2, "size": "l", "board": "breakfast", "rate": 3, "guests": ["a", "b"]}
    assert call(module, "book", hotel="Ritz", **everything) == (True, "Ritz 2 l breakfast 3.0 ['a', 'b']")
    assert call(module, "shadow", copy=1, model_dump="x", json=True, schema=2) == (True, "1 x True 2.0")
    assert call(module, "nothing") == (True, "None")
    assert call(module, "where", point={"x": 3}, maybe=None) == (True, "3")
    assert call(module, "cached", n=1) == (True, "2")


@pytest.mark.parametrize(
    ("tool", "arguments", "error"),
    [
        ("book", {}, "missing hotel; book takes hotel, nights, size, board, rate, guests"),
        ("book", {"hotel": "Ritz", "night": 2}, "unknown parameter 'night'; book takes hotel, "),
        ("book", {"hotel": 7}, "hotel: must be a valid string"),
        ("book", {"hotel": "Ritz", "nights": "2"}, "nights: must be a valid integer"),
        ("book", {"hotel": "Ritz", "nights": True}, "nights: must be a valid integer"),
        ("book", {"hotel": "Ritz", "board": "half"}, "board: must be 'none' or 'breakfast'"),
        ("book", {"hotel": "Ritz", "guests": [1]}, "guests.0: must be a valid string"),
        ("book", {"hotel": "Ritz", "guests": []}, "guests: List should have at least 1 item"),
        ("where", {"point": {"y": 1}, "maybe": 1}, "missing point.x"),
        ("nothing", {"x": 1}, "unknown parameter 'x'; nothing takes nothing"),
        ("fails", {"how": "this way."}, "this way"),
        ("fails", {"how": "silent"}, "KeyError"),
    ],
)
def test_bad_calls_are_answered_in_words(
    tool: str, arguments: dict[str, Any], error: str, module: ToolsModule
) -> None:
    ok, text = call(module, tool, **arguments)
    assert (ok, text.partition(error)[:2]) == (False, ("", error))


def test_long_errors_and_lone_surrogates_do_not_reach_the_prompt(module: ToolsModule) -> None:
    assert call(module, "fails", how="x" * 5000) == (False, "x" * MAX_ERROR)
    ok, text = call(module, "shadow", copy=1, model_dump="\ud800", json=True, schema=1.0)
    assert (ok, text[:27]) == (False, "the arguments: Invalid JSON")


ARGUMENTS = st.sampled_from(["hotel", "nights", "board", "rate", "guests", "other"])
VALUES = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=4)


@given(st.dictionaries(ARGUMENTS, VALUES))
@settings(deadline=None, max_examples=60)
def test_no_arguments_raise(module: ToolsModule, arguments: dict[str, Any]) -> None:
    result = module.tools["book"].call(arguments)
    assert result.ok == (not result.error)
    if result.ok:
        assert type(arguments["hotel"]) is str
        assert type(arguments.get("nights", 1)) is int
        assert math.isfinite(arguments.get("rate") or 0)
        result.output.encode()


NAMES = ["item", "city"]
TEXT = st.text(st.characters(codec="ascii", categories=["Ll"]), min_size=1).filter(lambda t: t not in NAMES)


FORMS = st.sampled_from(["{}: {}", "{} (str): {}", ":param {}: {}", "{} (list of int, optional): {}"])


@given(TEXT, TEXT, TEXT, FORMS)
def test_every_way_to_write_a_parameter_is_read(first: str, item: str, city: str, form: str) -> None:
    lines = f"    {form.format('item', item)}\n        and on\n    {form.format('city', city)}."
    doc = f"{first}.\n\nArgs:\n{lines}\n\nReturns: x"
    assert summary(doc, NAMES) == first
    assert parameter_texts(doc, NAMES) == {"item": f"{item} and on", "city": city}
    close = f"{first}\n{form.format('city', city)}"
    assert (summary(close, NAMES), parameter_texts(close, NAMES)) == (first, {"city": city})


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x = 1", "has no tools; write at least one public function with type hints"),
        ("def near(task, answer): ...", "has no tools"),
        ("def f(x): ...", "f has no type hint for 'x'; add one, such as x: str, or begin the function's name with _"),
        ("async def f(x: int): ...", "f is async, which a tool of a tools module cannot be; make it a plain function"),
        ("def f(*x: int): ...", r"f has the parameter '\*x: int', which a call cannot name"),
        ("def f(x: int, /): ...", "which a call cannot name"),
        ("def f(**x: int): ...", "which a call cannot name"),
        ("def f(x: 'Nothing'): ...", r"type hints of f cannot be used \(name 'Nothing' is not defined\)"),
        ("class A: ...\ndef f(x: A): ...", "type hints of f cannot be used .*A.*; use types that JSON has"),
        ("from typing import Callable\ndef f(x: Callable[[], int]): ...", "type hints of f cannot be used"),
        ("def f(x: int):\n  return 1 +", "line 2 is not valid Python: invalid syntax; correct it there"),
        ("import nowhere_at_all", "line 1 fails with ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("def _f():\n  return 1 / 0\n_f()", "line 2 fails with ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "line 1 fails with SystemExit: 3"),
    ],
)
def test_files_that_cannot_be_tools_are_one_sentence(text: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=sentence) as caught:
        load_tools(write(tmp_path, text))
    assert str(tmp_path / "tools.py") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"cannot read the tools module .*: No such file or directory; check the path"):
        load_tools(tmp_path / "absent.py")


def test_a_changed_file_is_run_anew_and_has_another_hash(tmp_path: Path) -> None:
    """Same size, same second: a cached compilation would still give the old answer."""
    source = "from beside import K\ndef f(x: int) -> int:\n  return x + K + {}"
    (tmp_path / "beside.py").write_text("K = 100\n")
    first, second = (load_tools(write(tmp_path, source.format(n))) for n in (1, 2))
    assert first.tools["f"].call({"x": 0}).output == "101"
    assert second.tools["f"].call({"x": 0}).output == "102"
    assert first.sha256 != second.sha256


def test_a_function_of_this_process_is_a_tool() -> None:
    def double(n: float) -> float:
        """Double."""
        return 2 * n

    assert function_tool(double).call({"n": 2}).output == "4.0"
