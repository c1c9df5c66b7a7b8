"""The commands that list what there is, fetch, and the paper check."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from cli_command import Command

from nograd.assets import ASSETS
from nograd.cli import paper_check
from nograd.cli.trajectories import print_steps
from nograd.llm.sources import MODELS
from nograd.llm.subspace_choices import BINDINGS, KINDS, PARAMETERISATIONS
from nograd.run.config import SubspaceConfig
from nograd.run.config_source import load_config
from nograd.search.arms import OPTIONS, SCHEMES
from nograd.stats.paper import starvation
from nograd.stats.paper.printed import Printed
from nograd.tasks.registry import FAMILIES, family


def first_words(text: str) -> list[str]:
    return [line.split()[0] for line in text.splitlines() if line and not line.startswith(" ")]


@pytest.mark.parametrize(("command", "names"), [("models", MODELS), ("tasks", FAMILIES), ("arms", SCHEMES)])
def test_lists_are_whole(command: str, names: dict[str, object], nograd: Command) -> None:
    outcome = nograd(command)
    assert outcome.status == 0
    assert [word for word in first_words(outcome.out) if word in names] == list(names)


def test_every_option_and_choice_has_a_line(nograd: Command) -> None:
    words = first_words(nograd("arms").out)
    choices = {"basis": KINDS, "binding": BINDINGS, "parameterisation": PARAMETERISATIONS}
    settings = [f"subspace.{name}={value}" for name, values in choices.items() for value in values]
    assert {*OPTIONS, *settings, "search.clip.caller=0.2", "reward.shaping=0.5"} <= set(words)
    load_config(None, [word for word in words if "=" in word])


def test_choices_are_those_of_the_configuration() -> None:
    fields = SubspaceConfig.model_fields
    for name, values in {"basis": KINDS, "binding": BINDINGS, "parameterisation": PARAMETERISATIONS}.items():
        assert set(get_args(fields[name].annotation)) == set(values)


def test_tasks_of_one_family(nograd: Command) -> None:
    outcome = nograd("tasks", "in-house")
    tasks = family("in_house").tasks
    assert [word for word in first_words(outcome.out) if word.startswith("in_house-")] == [t.id for t in tasks]


@pytest.mark.real
def test_fetch_names_what_is_in_the_cache(nograd: Command) -> None:
    outcome = nograd("fetch", "smollm2-135m")
    assert outcome.status == 0
    assert ASSETS["smollm2-135m"].sha256[:16] in "".join(outcome.out.split())


def test_paper_check_agrees_and_lists_the_contradictions(nograd: Command) -> None:
    outcome = nograd("paper-check", "--json")
    assert outcome.status == 0
    record = outcome.last_json
    assert record["mismatches"] == []
    assert sorted(record["contradictions"]) == sorted(paper_check.CONTRADICTIONS)
    rows = {row["what"]: row for row in record["rows"]}
    simulated = [what for what in rows if what.endswith("from the allocator")]
    assert len(simulated) == len(starvation.SCHEMES)
    assert all(rows[what]["agrees"] for what in simulated)
    assert len(record["not_recomputable"]) > 10
    for what in paper_check.CONTRADICTIONS:
        assert what.split()[0] in outcome.out


def test_paper_check_fails_on_a_wrong_statistic(nograd: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starvation, "DELTA", (Printed("-0.033"), *starvation.DELTA[1:]))
    outcome = nograd("paper-check", "--json")
    assert outcome.status == 1
    assert "slope of ΔAUC on nominal starvation" in outcome.last_json["mismatches"]
    assert "recomputed statistics that differ from the published ones" in outcome.out


def test_model_text_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    from nograd.cli.output import console

    steps = [{"stage": "caller", "text": "[bold]x[/bold] :smile:\n\x1b[2J", "outcome": ""}]
    print_steps(console(), "before", {"steps": steps, "answer": ""}, "yellow")
    shown = capsys.readouterr().out
    assert "[bold]x[/bold] :smile: ⏎ \\x1b[2J" in shown
    assert "\x1b" not in shown
    assert "(nothing)" in shown


def test_picture_of_a_run(synthetic_run: Path, tmp_path: Path) -> None:
    from nograd.report.curves import draw_learning_curve
    from nograd.run.load import load_run

    run = load_run(synthetic_run)
    picture = draw_learning_curve(run, tmp_path / "new" / "curve.png")
    assert picture.read_bytes().startswith(b"\x89PNG")
    svg = draw_learning_curve(run, tmp_path / "curve.svg", untouched=0.25).read_text()
    assert svg.rstrip().endswith("</svg>")
