"""Does a call match the gold one? The semantics of BFCL's AST checker for Python, category "simple".

The rules run in a fixed order and the first failure is returned; each has its own error type. The names are
BFCL's own, without the module prefix (Patil et al., 2024; semantics of bfcl-eval 2026.3.23).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nograd.tasks.bfcl.schema import declared, missing, properties
from nograd.tasks.bfcl.values import value_error

ERRORS: Mapping[str, str] = {
    "decoder_failed": "the answer is not JSON",
    "decoder_wrong_output_format": "the answer is not a list of calls {{name: {{parameter: value}}}}",
    "wrong_count": "the answer is not exactly one call",
    "wrong_func_name": "the call is not to {0!r}",
    "missing_required": "required parameter {0!r} is missing",
    "unexpected_param": "parameter {0!r} is not expected",
    "type_error:simple": "parameter {0!r} has the wrong type",
    "type_error:nested": "parameter {0!r} has elements of the wrong type",
    "value_error:string": "parameter {0!r} has the wrong text",
    "value_error:list/tuple": "parameter {0!r} has the wrong elements",
    "value_error:dict_key": "parameter {0!r} has a wrong or missing key",
    "value_error:dict_value": "parameter {0!r} has a wrong value under a key",
    "value_error:list_dict_count": "parameter {0!r} has the wrong number of objects",
    "dict_checker:unclear": "parameter {0!r} must be absent",
    "list_dict_checker:unclear": "parameter {0!r} has no accepted value",
    "value_error:others": "parameter {0!r} has the wrong value",
    "missing_optional": "parameter {0!r} is missing",
}
"""Every error type, in the order of the rules, with its message; {0} is the function or parameter."""


@dataclass(frozen=True)
class Verdict:
    """error_type: a key of ERRORS, "" if valid. message: what failed; it holds no gold value."""

    valid: bool
    error_type: str = ""
    message: str = ""


VALID = Verdict(True)


def check(function: Mapping[str, Any], answer: object, ground_truth: Sequence[Mapping[str, Any]]) -> Verdict:
    """Compare an answer with the gold call. Never raises, whatever the answer.

    function, ground_truth: as in `data.Entry`. answer: a list with one call [{name: {parameter: value}}], or
    its JSON text."""
    if isinstance(answer, str):
        try:
            answer = json.loads(answer)
        except (ValueError, RecursionError):
            return _failure("decoder_failed")
    if not isinstance(answer, list) or not all(_is_call(item) for item in answer):
        return _failure("decoder_wrong_output_format")
    if len(answer) != 1:
        return _failure("wrong_count")
    name = function["name"]
    if name not in answer[0]:
        return _failure("wrong_func_name", name)
    return _check_arguments(function, answer[0][name], next(iter(ground_truth[0].values())))


def _check_arguments(
    function: Mapping[str, Any], arguments: Mapping[Any, Any], gold: Mapping[str, Sequence[Any]]
) -> Verdict:
    """Required names, then every argument in the call's order, then the parameters that gold insists on."""
    for name in missing(function, arguments):
        return _failure("missing_required", name)
    documents = properties(function)
    for name, value in arguments.items():
        if name not in documents or name not in gold:
            return _failure("unexpected_param", name)
        error = value_error(value, gold[name], declared(documents[name]))
        if error is not None:
            return _failure(error, name)
    for name, options in gold.items():
        if name not in arguments and "" not in options:
            return _failure("missing_optional", name)
    return VALID


def _is_call(item: object) -> bool:
    """One name with one dict of arguments."""
    return isinstance(item, dict) and len(item) == 1 and isinstance(next(iter(item.values())), dict)


def _failure(error_type: str, name: object = None) -> Verdict:
    return Verdict(False, error_type, ERRORS[error_type].format(str(name)))
