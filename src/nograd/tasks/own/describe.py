"""A parameter's JSON schema as one line of a prompt: type, whether optional, choices, default, meaning."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]


def parameter_line(schema: Schema, definitions: Schema, required: bool) -> str:
    """Such as "string, one of small | large: size of the box". definitions: what a "$ref" may name."""
    default = schema.get("default")
    parts = [
        _kind(schema, definitions, nullable=required or default is not None),
        "" if required else "optional",
        _choices(schema, definitions),
        "" if required or default is None else f"default {json.dumps(default, ensure_ascii=False)}",
    ]
    line = ", ".join(filter(None, parts))
    meaning = schema.get("description", "")
    return f"{line}: {meaning}" if meaning else line


def _kind(schema: Schema, definitions: Schema, nullable: bool = True) -> str:
    """The type in JSON's words. nullable: say so where null is allowed."""
    schema = _resolve(schema, definitions)
    if "anyOf" in schema:
        kinds = dict.fromkeys(_kind(each, definitions) for each in schema["anyOf"])
        return " or ".join(kind for kind in kinds if nullable or kind != "null")
    values = _values(schema)
    if "type" not in schema and values:
        return " or ".join(dict.fromkeys(_kind_of(value) for value in values))
    kind = str(schema.get("type", "any value"))
    if kind == "array" and "items" in schema:
        return f"array of {_kind(schema['items'], definitions)}"
    return kind


def _choices(schema: Schema, definitions: Schema) -> str:
    schema = _resolve(schema, definitions)
    inner = [schema, *schema.get("anyOf", ())]
    if schema.get("type") == "array":
        inner = [schema.get("items", {})]
    values = [value for each in inner for value in _values(_resolve(each, definitions)) if value is not None]
    each_of = "each " if schema.get("type") == "array" else ""
    return f"{each_of}one of {' | '.join(str(value) for value in values)}" if values else ""


def _values(schema: Schema) -> list[Any]:
    return list(schema["enum"]) if "enum" in schema else [schema["const"]] if "const" in schema else []


def _kind_of(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "string" if isinstance(value, str) else "number" if isinstance(value, int | float) else "null"


def _resolve(schema: Schema, definitions: Schema) -> Schema:
    while "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    return schema
