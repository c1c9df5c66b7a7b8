"""A person's tasks file as a family: what its lines mean, and everything that is wrong with one, by line."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from nograd.errors import TaskError
from nograd.tasks.normalise import same_answer
from nograd.tasks.own.check import Check, numbers
from nograd.tasks.own.family import JsonlTasks, jsonl
from nograd.tasks.own.problems import SHOWN
from nograd.tasks.registry import family

TOOLS = '''
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b

def greet(name: str) -> str:
    """Greet someone."""
    if name == "nobody":
        return ""
    return f"Hello, {name}!"

def polite(task, answer):
    return answer.endswith("!") and task.arguments["name"] in answer

def picky(task, answer):
    return float(answer) > 0

def anything(task, answer):
    return True
'''

Make = Callable[..., JsonlTasks]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """The family of these lines, each a mapping or raw text."""
    (tmp_path / "tools.py").write_text(TOOLS)

    def made(*lines: Any, name: str = "my.jsonl", examples: str | None = None, encoding: str = "utf-8") -> JsonlTasks:
        text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
        (tmp_path / name).write_text(text, encoding=encoding)
        other = None if examples is None else str(tmp_path / examples)
        return jsonl(str(tmp_path / name), str(tmp_path / "tools.py"), other)

    return made


def line(a: int, **more: Any) -> dict[str, Any]:
    return {"question": f"What is {a} plus 1?", "tool": "add", "arguments": {"a": a, "b": 1}} | more


def greeting(name: str, **more: Any) -> dict[str, Any]:
    return {"question": f"Greet {name}.", "tool": "greet", "arguments": {"name": name}} | more


EXAMPLE = line(0, example=True)


def test_lines_become_tasks_with_their_gold_call_executed(make: Make) -> None:
    made = make(
        line(0, example=True, plan="Add 0 and 1."),
        greeting("Bo", example=True),
        "",
        line(5, id="five", offered=["greet", "add"], answer="six", check={"one_of": ["six", 6]}),
        "  \t\r",
        greeting("Zoë"),
        line(7, answer=8.0),
        encoding="utf-8-sig",
    )
    five, greet, eight = made.tasks
    assert (five.id, five.answer, five.tool_output, five.offered) == ("five", "six", "6", ("greet", "add"))
    assert (greet.id, greet.answer, greet.offered) == ("line-6", "Hello, Zoë!", ("add", "greet"))
    assert (eight.id, eight.answer, eight.tool_output) == ("line-7", "8.0", "8")
    assert [(e.task.answer, e.plan) for e in made.examples] == [("1", "Add 0 and 1."), ("Hello, Bo!", "Greet someone.")]
    assert [made.succeeded(five, answer) for answer in ("Six.", "6.0", "7")] == [True, True, False]
    assert [made.succeeded(greet, answer) for answer in ("hello, zoë!", "Hello")] == [True, False]
    assert made.name == "jsonl_my"


def test_calls_are_those_of_the_offered_tools(make: Make) -> None:
    made = make(EXAMPLE, line(5, offered=["add"]))
    (task,) = made.tasks
    assert made.call(task, "add", {"a": 2, "b": 2}).output == "4"
    assert made.call(task, "add", {"a": "2", "b": 2}).error == "a: must be a valid integer"
    assert made.call(task, "greet", {"name": "Bo"}).error == "unknown tool 'greet'; there is add"
    assert made.tool("polite") is None
    spec = made.tool("add")
    assert spec is not None
    assert dict(spec.parameters) == {"a": "integer", "b": "integer"}


def test_without_a_tools_module_the_toolbox_is_offered(tmp_path: Path) -> None:
    file = tmp_path / "sums-1.jsonl"
    rows = [
        {"question": "2 + 3?", "tool": "calculator", "arguments": {"expression": "2 + 3"}, "example": True},
        {"question": "3 + 3?", "tool": "calculator", "arguments": {"expression": "3 + 3"}},
    ]
    file.write_text("\n".join(map(json.dumps, rows)))
    made = family("jsonl", path=str(file))
    assert made.name == "jsonl_sums_1"
    assert made.tasks[0].answer == "6"
    assert "calculator" in made.tasks[0].offered


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("[1, 2]", "line 2, holds '[1, 2]'; write one JSON object"),
        ('{"question" 1}', "line 2, column 13: not valid JSON (Expecting ':' delimiter); correct it there"),
        ('{"question": "a", "question": "b"}', "line 2, the key 'question' is there twice; keep one"),
        ('{"answer": NaN}', "line 2, NaN is not a JSON number"),
        ("[" * 100_000, "line 2, nested too deeply"),
        ({"tool": "add", "arguments": {}}, "line 2, question is missing; add it (what is asked)"),
        ({"question": "x", "arguments": {}}, "line 2, tool is missing; add it (the name of the tool"),
        ({"question": "x", "tool": "add"}, "line 2, arguments is missing; add it (what the tool is called with"),
        (line(1, question=" \n"), "line 2, question = ' \\n': must not be blank"),
        (line(1, arguments=[1]), "line 2, arguments = [1]: must be a JSON object"),
        (line(1, anwser="2"), "line 2, anwser = '2': unknown; did you mean 'answer'?"),
        (line(1, answer=True), "line 2, answer = True: must be a valid string"),
        (line(1, example="yes"), "line 2, example = 'yes': must be a valid boolean"),
        (line(1, tool="ad"), "line 2, tool = 'ad': unknown; did you mean 'add'?"),
        (line(1, tool="polite"), "line 2, tool = 'polite': unknown; known: add, greet"),
        (line(1, offered=["add", "great"]), "line 2, offered = 'great': unknown; did you mean 'greet'?"),
        (line(1, offered=["greet"]), "line 2, offered = ['greet']: lacks the tool of the gold call; add 'add'"),
        (line(1, offered=["add", "add"]), "line 2, offered = ['add', 'add']: names a tool twice"),
        (line(1, offered=[]), "line 2, offered = []: "),
        (line(1, arguments={"a": 1}), "line 2, arguments = {'a': 1}: the gold call fails: missing b; add takes a, b"),
        (line(1, arguments={"a": 1, "b": "1"}), "the gold call fails: b: must be a valid integer"),
        (greeting("nobody"), "line 2, answer = None: greet returns nothing to answer with; write the right"),
        (line(1, check={}), "line 2, check = {}: must have exactly one of regex, number, one_of, contains, function"),
        (line(1, check={"number": 2, "contains": "2"}), "must have exactly one of regex"),
        (line(1, check={"contains": "2", "tolerance": 1}), "tolerance goes with number only"),
        (line(1, check={"number": 2, "tolerance": -1}), "line 2, check.tolerance = -1: must be greater than"),
        (line(1, check={"regex": "("}), "line 2, check.regex = '(': must be a regular expression of Python"),
        (line(1, check={"numbr": 2}), "line 2, check.numbr = 2: unknown; did you mean 'number'?"),
        (line(1, check=5), "line 2, check = 5: must be a JSON object"),
        (line(1, check="polit"), "line 2, check = 'polit': unknown; did you mean 'polite'?"),
        (line(1, check={"number": 3}), "line 2, check = {'number': 3.0}: does not pass the output of the gold call"),
        (line(1, answer="two", check={"number": 2}), "does not pass the gold answer 'two'; correct one of them"),
        (greeting("Bo", check="picky"), "line 2, check = 'picky': does not pass the output of the gold call"),
        (line(1, check={"regex": ".*"}), "line 2, check = {'regex': '.*'}: also passes an empty answer"),
        (line(1, check="anything"), "line 2, check = 'anything': also passes an empty answer; make it stricter"),
        (line(0), "line 2, question = 'What is 0 plus 1?': is also the worked example of line 1"),
        (line(3, id="x" * 99, tool="q"), "line 2, tool = 'q'"),
    ],
)  # fmt: skip
def test_a_bad_line_is_one_sentence(row: Any, sentence: str, make: Make, tmp_path: Path) -> None:
    with pytest.raises(TaskError) as caught:
        make(EXAMPLE, row, line(9))
    text = str(caught.value)
    assert text.startswith(f"{tmp_path / 'my.jsonl'} line 2, ")
    assert sentence in text
    assert "\n" not in text


def test_all_bad_lines_are_told_at_once_in_order(make: Make) -> None:
    rows = [line(n, tool="nope") if n % 2 else "{" for n in range(SHOWN + 3)]
    with pytest.raises(TaskError) as caught:
        make(*rows, line(50, id="a"), line(51, id="a"))
    first, *told = str(caught.value).splitlines()
    assert first.endswith(f"my.jsonl has {SHOWN + 4} mistakes:")
    assert [text.split(",")[0].strip() for text in told[:-1]] == [f"line {n}" for n in range(1, SHOWN + 1)]
    assert told[-1].strip() == "and 4 more"
    with pytest.raises(TaskError, match=r"line 2, id = 'a': line 1 has it, too; give each its own"):
        make(line(50, id="a"), line(51, id="a"))


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "has no tasks; write at least one line"),
        (json.dumps(EXAMPLE).encode(), "has no tasks; write at least one line that is no example"),
        (b'[\n{"question": "x"}]', "holds a JSON array; write each task as one JSON object on a line of its own"),
        (b'\n{"question": "\xff"}', r"line 2, byte 15 is not UTF-8; save the file in that encoding"),
        (codecs.BOM_UTF16 + "{}".encode("utf-16-le"), r"line 1, byte 1 is not UTF-8"),
    ],
)
def test_bad_files_are_one_sentence(data: bytes, sentence: str, make: Make, tmp_path: Path) -> None:
    make(EXAMPLE, line(1))
    (tmp_path / "my.jsonl").write_bytes(data)
    with pytest.raises(TaskError, match=sentence):
        jsonl(str(tmp_path / "my.jsonl"), str(tmp_path / "tools.py"))


def test_missing_files_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"cannot read the tasks file .*nowhere.jsonl: No such file"):
        jsonl(str(tmp_path / "nowhere.jsonl"))
    with pytest.raises(TaskError, match=r"the family jsonl needs a file; give --tasks my.jsonl, or tasks.path"):
        family("jsonl")


@pytest.mark.parametrize(("count", "aside"), [(1, 0), (3, 0), (4, 1), (11, 2), (12, 3), (30, 3)])
def test_without_examples_the_first_tasks_are_set_aside(count: int, aside: int, make: Make) -> None:
    with pytest.warns(UserWarning, match=r'my.jsonl marks no worked examples \("example": true\)'):
        made = make(*[line(n) for n in range(count)])
    ids = [f"line-{n + 1}" for n in range(count)]
    assert [example.task.id for example in made.examples] == ids[:aside]
    assert [task.id for task in made.tasks] == ids[aside:]


def test_examples_of_another_file_are_taken_unless_there_are_own(make: Make) -> None:
    make(line(100, example=True), line(1), name="train.jsonl")
    borrowed = make(line(2), line(3), examples="train.jsonl")
    assert [example.task.answer for example in borrowed.examples] == ["101"]
    assert len(borrowed.tasks) == 2
    assert [e.task.answer for e in make(EXAMPLE, line(3), examples="train.jsonl").examples] == ["1"]
    with pytest.raises(TaskError, match=r"line 2, question = 'What is 100 plus 1\?': is also a worked example of "):
        make(line(2), line(100), examples="train.jsonl")


def test_every_file_that_counts_is_hashed(make: Make, tmp_path: Path) -> None:
    make(line(100, example=True), line(1), name="train.jsonl")
    before = make(line(2), line(3), examples="train.jsonl").hashes
    assert set(before) == {"tasks_file", "tools_file", "examples_file"}
    again = make(line(2), line(3), examples="train.jsonl").hashes
    assert again == before
    (tmp_path / "train.jsonl").write_text((tmp_path / "train.jsonl").read_text() + "\n")
    with (tmp_path / "tools.py").open("a") as file:
        file.write("# a comment\n")
    after = jsonl(*(str(tmp_path / name) for name in ("my.jsonl", "tools.py", "train.jsonl"))).hashes
    assert {role for role in before if before[role] != after[role]} == {"tools_file", "examples_file"}


def test_a_check_by_function_sees_the_task_and_may_fail(make: Make) -> None:
    made = make(EXAMPLE, greeting("Bo", check="polite"), line(4, check="picky"))
    polite, picky = made.tasks
    assert [made.succeeded(polite, answer) for answer in ("Hi Bo!", "Hi Al!", "Bo")] == [True, False, False]
    assert [made.succeeded(picky, answer) for answer in ("3", "-3", "three")] == [True, False, False]


NUMBER = st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-10**6, max_value=10**6)


@given(NUMBER, st.sampled_from(["{}", " {} euros.", "It is {}", '"${}"', "{:,}"]))
def test_a_number_is_found_in_its_answer(value: Decimal, form: str) -> None:
    assert numbers(form.format(value)) == [value]
    check = Check.model_validate({"number": float(value)})
    assert check.accepts(form.format(value))
    assert not check.accepts(form.format(value + Decimal("0.01")))
    assert not check.accepts(f"{form.format(value)} or 7")


@given(NUMBER, NUMBER, st.decimals(0, 10**6, places=2))
def test_a_number_may_be_as_far_off_as_the_tolerance(gold: Decimal, given: Decimal, tolerance: Decimal) -> None:
    check = Check.model_validate({"number": float(gold), "tolerance": float(tolerance)})
    assert check.accepts(str(given)) == (abs(gold - given) <= tolerance)


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("", []), ("none", []), ("1,5", []), ("1.5.2", []), ("1,234.5", ["1234.5"]), ("−3", ["-3"]), ("x-3", ["3"]),
        ("2-3", ["2", "3"]), ("+4", ["4"]), ("1e3", ["1000"]), ("3 kg", ["3"]), ("5kg", ["5"]), ("12.", ["12"]),
    ],
)  # fmt: skip
def test_what_counts_as_a_number(answer: str, found: list[str]) -> None:
    assert numbers(answer) == [Decimal(text) for text in found]


@pytest.mark.parametrize(
    ("check", "right", "wrong"),
    [
        ({"regex": r"\d+ euros?"}, ["1 euro", " 20 euros\n"], ["about 20 euros", "20 Euros", ""]),
        ({"regex": r"(?i)yes|ja"}, ["YES", "ja"], ["yes ja"]),
        ({"contains": "Oslo"}, ["In OSLO.", "oslo"], ["Osloer", "in Bergen"]),
        ({"contains": "4"}, ["4", "it is 4."], ["14", "4a"]),
        ({"contains": "C++"}, ["I use C++."], ["C"]),
        ({"one_of": ["Oslo", 4]}, ["oslo.", "4.0"], ["Oslo 4", ""]),
    ],
)
def test_checks_by_text(check: dict[str, Any], right: list[str], wrong: list[str]) -> None:
    made = Check.model_validate(check)
    assert [made.accepts(answer) for answer in right + wrong] == [True] * len(right) + [False] * len(wrong)


@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=3), st.text())
def test_one_of_is_an_exact_match_with_any(golds: list[str], answer: str) -> None:
    check = Check.model_validate({"one_of": golds})
    assert check.accepts(answer) == any(same_answer(gold, answer) for gold in golds)
    assert all(check.accepts(gold) for gold in golds)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
FIELDS = ["question", "tool", "arguments", "answer", "check", "id", "offered", "example", "plan", "other"]


@given(st.lists(st.dictionaries(st.sampled_from(FIELDS), JSON) | JSON, min_size=1, max_size=4))
@settings(deadline=None, max_examples=40)
def test_no_file_of_json_ends_in_anything_but_tasks_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any]
) -> None:
    file = tmp_path_factory.getbasetemp() / "any.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(TaskError, match=r"line|JSON array|has no tasks"):
        jsonl(str(file))


def test_a_check_is_of_one_kind() -> None:
    with pytest.raises(ValidationError, match="exactly one of"):
        Check.model_validate({"regex": "a", "one_of": ["a"]})
