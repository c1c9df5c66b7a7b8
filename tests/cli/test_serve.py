"""nograd serve as a person starts and stops it."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import openai
import pytest
from cli_command import Command

from nograd.run.config_source import load_config
from nograd.run.start import run_config

MAIN = "import sys; from nograd.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Path:
    path = tmp_path_factory.mktemp("runs") / "tiny"
    settings = ["tasks.batch=2", "search.pairs=1", "search.generations=1", "subspace.dim=2", "model.dtype=float32"]
    run_config(load_config(None, [f"model.spec={tiny_model}", *settings]), path)
    return path


@contextmanager
def started(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, "serve", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_what_it_prints_can_be_pasted_and_ctrl_c_stops_it(tuned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOGRAD_API_KEY", "s3cret")
    with started(tuned, "--port", 0, "--device", "cpu", "--max-tokens", 30) as server:
        assert server.stdout is not None
        said, agent, chat, python = (server.stdout.readline().strip() for _ in range(4))
        found = re.search(r"http://127\.0\.0\.1:\d+/v1", said)
        assert found is not None
        assert said.startswith("serving planner, selector, caller, synthesizer, base, agent at http")
        for line, part in ((agent, '"tuned"'), (chat, '"chat.completion"')):
            assert part in subprocess.run(["sh", "-c", line], capture_output=True, text=True).stdout
        assert eval(python, {"openai": openai, "os": os}).object == "chat.completion"
        client = openai.OpenAI(base_url=found[0], api_key="s3cret", max_retries=0)
        asked = [{"role": "user", "content": "Hi"}]
        stream = client.chat.completions.create(model="base", messages=asked, stream=True)  # type: ignore[arg-type]
        next(iter(stream))
        server.send_signal(signal.SIGINT)
        out, err = server.communicate(timeout=30)
        assert server.returncode == 130
        assert err.splitlines()[-1] == "stopped"
        assert "Traceback" not in err
        assert "s3cret" not in said + out + err


def test_an_open_address_is_warned_of(tuned: Path) -> None:
    with started(tuned, "--port", 0, "--device", "cpu", "--host", "0.0.0.0") as server:
        assert server.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:\d+", server.stdout.readline())
        assert found is not None, "an address that a client can use, not 0.0.0.0"
        request = urllib.request.Request(found[0] + "/health", headers={"Host": "example.org"})
        assert urllib.request.urlopen(request).status == 200
        server.send_signal(signal.SIGTERM)
        _, err = server.communicate(timeout=30)
        assert server.returncode == -signal.SIGTERM
        assert "anyone who reaches 0.0.0.0 can use this server: there is no authentication" in err
        assert "Traceback" not in err


def test_a_port_in_use_is_a_sentence_before_anything_is_loaded(nograd: Command, tuned: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        outcome = nograd("serve", tuned, "--port", port)
    assert outcome.status == 2
    assert f"cannot listen on 127.0.0.1 port {port} (Address already in use)" in outcome.err
    assert "loading" not in outcome.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--generation", 2], "choose from 0 (untouched) to 1"),
        (["--host", "no.such.host.invalid"], "cannot listen on no.such.host.invalid port 8000"),
        (["--port", 70000], "'--port': Input should be less than or equal to 65535"),
        (["--requests", 0], "'--requests'"),
        (["--api-key", ""], "the API key must be visible ASCII"),
        (["--api-key", "schlüssel"], "the API key must be visible ASCII"),
        (["--device", "gpu", "--port", 0], "execution.device"),
    ],
)
def test_mistakes_are_sentences(arguments: list[object], sentence: str, nograd: Command, tuned: Path) -> None:
    outcome = nograd("serve", tuned, *arguments)
    assert outcome.status == 2
    assert sentence in outcome.err
    assert "loading" not in outcome.err or "device" in sentence


def test_runs_without_a_language_model_are_refused(nograd: Command, synthetic_run: Path, tmp_path: Path) -> None:
    assert "has no language model to serve" in nograd("serve", synthetic_run).err
    assert "holds no run" in nograd("serve", tmp_path).err


def test_a_missing_extra_is_a_sentence(tuned: Path) -> None:
    without = f"import sys; sys.modules['uvicorn'] = None; {MAIN}"
    done = subprocess.run([sys.executable, "-c", without, "serve", str(tuned)], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "error: nograd serve needs uvicorn; install it with: pip install 'nograd[serve]'\n"
