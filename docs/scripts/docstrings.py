"""A griffe extension for the API page: what a docstring says of each parameter or field becomes an item of a list.

The docstrings of nograd run these together as plain sentences: "modules: names. dim: coefficients of each."
"""

from __future__ import annotations

import re
from typing import Any

import griffe


class ParameterItems(griffe.Extension):
    """Rewrites the docstrings of functions and classes."""

    def on_function(self, *, func: griffe.Function, **_kwargs: Any) -> None:
        _itemise(func, [parameter.name for parameter in func.parameters])

    def on_class(self, *, cls: griffe.Class, **_kwargs: Any) -> None:
        constructor = cls.members.get("__init__")
        parameters = constructor.parameters if isinstance(constructor, griffe.Function) else ()
        _itemise(cls, [*cls.members, *(parameter.name for parameter in parameters)])


def _itemise(item: griffe.Object, names: list[str]) -> None:
    if item.docstring is not None:
        item.docstring.value = itemised(item.docstring.value, names)


def itemised(text: str, names: list[str]) -> str:
    """The docstring in Markdown. names: of what may be described in it."""
    public = sorted((re.escape(name) for name in names if not name.startswith("_")), key=len, reverse=True)
    if not public:
        return text
    name = rf"(?:{'|'.join(public)})"
    begin = rf"(?:^[ ]*|(?<=[.;]) )(?P<names>{name}(?:, {name})*)(?P<call>\([^)]*\)(?: ->[^:.\n]*)?)?: +"
    text = re.sub(begin, lambda found: f"\n\n- `{found['names']}{found['call'] or ''}`: ", text, flags=re.MULTILINE)
    text = re.sub(r"(?:^[ ]*|(?<=[.;`]) )(?=Raises? )|^[ ]*(?=Returns )", "\n\n", text, flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", text)
