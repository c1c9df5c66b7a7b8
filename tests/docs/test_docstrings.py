"""What the API page makes of a docstring's sentences about parameters."""

from __future__ import annotations

import importlib.util

import pytest
from doc_blocks import ROOT

SPEC = importlib.util.spec_from_file_location("docstrings", ROOT / "docs/scripts/docstrings.py")
assert SPEC is not None
assert SPEC.loader is not None
SCRIPT = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(SCRIPT)


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("One step. lr: rate. sigma, clip: sizes.\nRaises ConfigError.", ["lr", "sigma, clip"]),
        ("A table: of the\nlr: rate per\nstep.", ["lr"]),
        ("Calls check.\n\ncheck(gold, answer): whether it is right.", ["check(gold, answer)"]),
        ("The clip, e.g. clip=3: not described here.", []),
    ],
)
def test_sentences_become_items(text: str, items: list[str]) -> None:
    made = SCRIPT.itemised(text, ["lr", "sigma", "clip", "check", "_hidden"])
    assert [line[3:].partition("`")[0] for line in made.splitlines() if line.startswith("- `")] == items
    words = made.replace("- `", "").replace("`:", ":").split()
    assert words == text.split()


def test_what_is_raised_is_a_paragraph_of_its_own() -> None:
    assert SCRIPT.itemised("Does it. lr: rate. Raises ConfigError if not.", ["lr"]).endswith(
        "rate.\n\nRaises ConfigError if not."
    )
