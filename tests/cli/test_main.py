"""The shell around the commands: help, errors, warnings, Ctrl-C, start-up time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
from cli_command import Command

from nograd.cli import main
from nograd.cli.app import COMMANDS
from nograd.errors import ConfigError


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_every_command_reads_like_a_page(name: str, nograd: Command) -> None:
    page = nograd(name, "--help")
    assert page.status == 0
    assert page.out.startswith(f"Usage: nograd {name}")
    assert "Examples:\n" in page.out
    examples = page.out.partition("Examples:\n")[2].partition("\n\n")[0].splitlines()
    assert all(line.startswith("    nograd ") for line in examples), "one command a line, not re-wrapped"
    assert page.err == ""


def test_help_lists_every_command_in_whole_sentences(nograd: Command) -> None:
    page = nograd("--help").out
    listing = page.partition("Commands:\n")[2]
    names = [line.split()[0] for line in listing.splitlines() if not line.startswith("   ")]
    assert names == list(COMMANDS)
    assert "..." not in listing


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from nograd.cli import main; main(['--help']); main(['run', '--help']); "
        "heavy = {'torch', 'numba', 'pandas', 'scipy', 'numpy', 'matplotlib', 'transformers'}; "
        "print('heavy:', sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "heavy: []"


def test_version(nograd: Command) -> None:
    assert nograd("--version").out.startswith("nograd 0.")


@pytest.mark.parametrize(
    ("arguments", "suggestion"),
    [
        (["rum"], "'run'"),
        (["run", "--arn", "soft"], "--arm"),
        (["run", "--arm", "hardd"], "did you mean 'hard'?"),
        (["run", "--arm", "lock:module=calller", "--dry-run"], "did you mean 'caller'?"),
        (["run", "--tasks", "in_hose"], "did you mean 'in_house'?"),
        (["run", "--model", "smollm2-13m", "--out", "nowhere"], "did you mean 'smollm2-135m'?"),
        (["run", "--set", "search.sgima=0.1"], "did you mean search.sigma?"),
        (["tasks", "inhouse"], "did you mean 'in_house'?"),
        (["fetch", "smollm"], "did you mean 'smollm2-135m'?"),
    ],
)
def test_unknown_names_suggest_the_nearest(
    arguments: list[str], suggestion: str, nograd: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = nograd(*arguments)
    assert outcome.status == 2
    assert suggestion in outcome.err
    assert "Traceback" not in outcome.err
    assert not list(tmp_path.iterdir()), "a mistake leaves nothing behind"


def test_an_error_is_one_sentence_on_stderr(nograd: Command) -> None:
    outcome = nograd("run", "--arm", "hardd")
    assert outcome.out == ""
    assert outcome.err.count("\n") == 1
    assert outcome.err.startswith("error: search.arm = 'hardd': unknown scheme")


@pytest.mark.parametrize("position", [0, 3])
def test_debug_shows_the_traceback(position: int) -> None:
    arguments = ["run", "--arm", "hardd"]
    arguments.insert(position, "--debug")
    with pytest.raises(ConfigError):
        main(arguments)


def test_warnings_come_without_source_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main(["--version"]) == 0
        warnings.warn("the machine changed", stacklevel=1)
    assert capsys.readouterr().err == "warning: the machine changed\n"


def test_ctrl_c_says_how_to_resume_and_resuming_ends_the_run(tmp_path: Path) -> None:
    settings = ["--set", "evaluator=synthetic", "--generations", "3000", "--out", "a run"]
    command = [sys.executable, "-c", "import sys; from nograd.cli import main; sys.exit(main())", "run"]
    with subprocess.Popen([*command, *settings], cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        while not first.startswith("generation 3/3000"):
            first = process.stderr.readline()
            assert first, "it ended before it could be stopped"
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait() == 130
    assert rest.endswith("stopped; nothing is lost, go on with: nograd run --resume 'a run'\n")
    assert "Traceback" not in rest
    assert (tmp_path / "a run" / "generations.jsonl").stat().st_size > 0


def test_help_is_fast() -> None:
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    command = [sys.executable, "-c", "from nograd.cli import main; main(['--help'])"]
    spent = []
    for _ in range(3):
        start = time.perf_counter()
        subprocess.run(command, capture_output=True, check=True, env=environment)
        spent.append(time.perf_counter() - start)
    assert min(spent) < 1.0, "half a second on a quiet machine"
