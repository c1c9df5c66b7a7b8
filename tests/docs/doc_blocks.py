"""The fenced blocks of the documentation, with what they say of themselves.

A fence's info is a language and attributes, as in ```shell {run="dry"}. Languages and attributes:

    shell, console   run="yes": every command is run; run="dry": its options are parsed, and what it names is looked
                     for. console has prompts ("$ ") and output, which is compared; a line "…" stands for any lines.
                     status="2": the exit status (default 0).
    python           executed with the blocks before it, and the text block right after it is what it prints.
                     run="model": needs the embedded model. title="x.py": a file, compiled and written.
    toml             a configuration, or a plan if it has arms; check="parsed": any other TOML. title: written.
    jsonl            title: written; tools: file of its tools; check="refused": a tasks file with mistakes.
    text             output, or a drawing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
ATTRIBUTES = {
    "shell": {"run"},
    "console": {"run", "status"},
    "python": {"run", "title"},
    "toml": {"title", "check"},
    "jsonl": {"title", "tools", "check"},
    "text": set[str](),
}
_INFO = re.compile(r'(?P<language>\w*)(?: \{(?P<attributes>(?: ?\w+="[^"]*")*)\})?')


@dataclass(frozen=True)
class Block:
    """place: page and line, for messages. expected: of a python block, what it must print, or None."""

    place: str
    language: str
    attributes: Mapping[str, str]
    text: str
    expected: str | None = None

    @property
    def run(self) -> str:
        return self.attributes.get("run", "")

    @property
    def title(self) -> str:
        return self.attributes.get("title", "")


def blocks(page: Path) -> list[Block]:
    """All of a page, in order. Raises ValueError for one that does not say what it is."""
    fences = [token for token in MarkdownIt("commonmark").parse(page.read_text("utf-8")) if token.type == "fence"]
    found = []
    for fence, after in zip(fences, [*fences, None][1:], strict=True):
        assert fence.map is not None
        language, attributes = _read_info(fence.info, f"{page.name}:{fence.map[0] + 1}")
        expected = None
        if language == "python" and after is not None and after.map is not None and after.info == "text":
            expected = after.content if after.map[0] <= fence.map[1] + 1 else None
        found.append(Block(f"{page.name}:{fence.map[0] + 1}", language, attributes, fence.content, expected))
    return found


def _read_info(info: str, place: str) -> tuple[str, dict[str, str]]:
    matched = _INFO.fullmatch(info.strip())
    if matched is None or matched["language"] not in ATTRIBUTES:
        raise ValueError(f"{place}: a fence says {info!r}; see tests/docs/doc_blocks.py for what it may say")
    language = matched["language"]
    attributes = dict(re.findall(r'(\w+)="([^"]*)"', matched["attributes"] or ""))
    unknown = attributes.keys() - ATTRIBUTES[language]
    if unknown:
        raise ValueError(f"{place}: {language} has no attribute {', '.join(sorted(unknown))}")
    runs = {"shell": ("yes", "dry"), "console": ("yes", "dry"), "python": ("", "model")}
    if language in runs and attributes.get("run", "") not in runs[language]:
        raise ValueError(f'{place}: {language} must say run="yes" or run="dry"')
    return language, attributes
