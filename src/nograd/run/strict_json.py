"""JSON whose bytes depend on nothing but the content: sorted, ASCII, and no NaN or Infinity.

A non-finite number becomes null and is listed under the record's key "non_finite" by its JSON pointer
(RFC 6901: {"/fitness/1": "nan"}), so that reading restores it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

FLAG = "non_finite"


def dumps(record: Mapping[str, Any]) -> bytes:
    """Canonical bytes of a JSON-able record, without a newline. Tuples and arrays become lists."""
    if FLAG in record:
        raise ValueError(f"the key {FLAG!r} is reserved")
    flags: dict[str, str] = {}
    plain = _plain(record, "", flags)
    if flags:
        plain[FLAG] = flags
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def loads(data: bytes) -> dict[str, Any]:
    """The record, non-finite numbers restored. Raises ValueError for what `dumps` cannot have written."""
    record = json.loads(data, parse_constant=_refuse_constant)
    if not isinstance(record, dict):
        raise ValueError(f"expected a JSON object, got {type(record).__name__}")
    for pointer, text in record.pop(FLAG, {}).items():
        _restore(record, [_unescape(step) for step in pointer.split("/")[1:]], float(text))
    return record


def _plain(value: Any, pointer: str, flags: dict[str, str]) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        flags[pointer] = str(value)
        return None
    if isinstance(value, Mapping):
        return {
            str(key): _plain(item, f"{pointer}/{_escape(str(key))}", flags) for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_plain(item, f"{pointer}/{index}", flags) for index, item in enumerate(value)]
    return value


def _escape(step: str) -> str:
    return step.replace("~", "~0").replace("/", "~1")


def _unescape(step: str) -> str:
    return step.replace("~1", "/").replace("~0", "~")


def _restore(record: Any, path: list[str], value: float) -> None:
    *parents, last = path
    for step in parents:
        record = record[int(step) if isinstance(record, list) else step]
    record[int(last) if isinstance(record, list) else last] = value


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is not strict JSON")
