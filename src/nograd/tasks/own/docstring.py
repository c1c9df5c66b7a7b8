"""What a function's docstring says of it and of its parameters: `name: text` lines, as under Google's "Args:"."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

_PARAMETER = re.compile(r"(?P<indent>\s*)(?::param\s+)?(?P<name>\w+)\s*(?:\([^)]*\))?\s*:(?:\s+(?P<text>.*))?")
_SECTION = re.compile(r"(Args|Arguments|Parameters|Returns|Raises|Yields|Examples?)\s*:")


def summary(doc: str, parameters: Collection[str]) -> str:
    """The first paragraph on one line, without a final full stop. doc: as `inspect.getdoc` gives it."""
    lines = []
    for line in doc.strip().splitlines():
        if not line.strip() or _SECTION.match(line) or _parameter(line, parameters):
            break
        lines.append(line.strip())
    return " ".join(lines).removesuffix(".")


def parameter_texts(doc: str, parameters: Collection[str]) -> Mapping[str, str]:
    """What is said of each parameter, on one line; lines that are indented deeper go on with it."""
    texts: dict[str, list[str]] = {}
    current, indent = "", 0
    for line in doc.splitlines():
        found = _parameter(line, parameters)
        if found:
            current, indent = found["name"], len(found["indent"])
            texts[current] = [(found["text"] or "").strip()]
        elif current and line.strip() and len(line) - len(line.lstrip()) > indent:
            texts[current].append(line.strip())
        else:
            current = ""
    return {name: " ".join(filter(None, parts)).removesuffix(".") for name, parts in texts.items()}


def _parameter(line: str, parameters: Collection[str]) -> re.Match[str] | None:
    found = _PARAMETER.fullmatch(line)
    return found if found and found["name"] in parameters else None
