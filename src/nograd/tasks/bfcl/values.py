"""Is one argument's value among the accepted ones? Type and value rules of BFCL's AST checker.

Each function returns the error type of the first rule that fails, or None. `options` are the accepted values
of one parameter; "" among them means "may be absent". Types are compared exactly: True is not an int.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nograd.tasks.bfcl.schema import Declared

_IGNORED = str.maketrans("'", '"', " ,./-_*^")


def value_error(value: object, options: Sequence[Any], expected: Declared) -> str | None:
    """Type check, then the value check that fits the type.

    Where gold is of another type than declared, it stands for a variable and is compared raw."""
    value = expected.coerce(value)
    gold = _gold_type(options)
    if type(value) is expected.outer:
        if not _nested_types_fit(value, options, expected.inner):
            return "type_error:nested"
        if gold is None or gold is expected.outer:
            return _declared_value_error(value, options, expected.inner)
    elif gold is None or type(value) is not gold:
        return "type_error:simple"
    return _raw_error(value, options)


def _declared_value_error(value: object, options: Sequence[Any], inner: type | None) -> str | None:
    if isinstance(value, dict):
        return _dict_error(value, options)
    if isinstance(value, list):
        return _dicts_error(value, options) if inner is dict else _list_error(value, options)
    if isinstance(value, str):
        return None if _squash(value) in _squash_all(options) else "value_error:string"
    return _raw_error(value, options)


def _raw_error(value: object, options: Sequence[Any]) -> str | None:
    return None if value in options else "value_error:others"


def _list_error(value: list[Any], options: Sequence[Any]) -> str | None:
    """Ordered comparison; strings are squashed at the top level only. [] matches "" (no elements either)."""
    accepted = [_squash_all(option) for option in options]
    return None if _squash_all(value) in accepted else "value_error:list/tuple"


def _dict_error(value: object, options: Sequence[Any]) -> str | None:
    """Any option that passes is enough, else the last one's error. {} does not match ""."""
    error: str | None = "dict_checker:unclear"
    for option in options:
        if option == "":
            continue
        error = _dict_option_error(value, option)
        if error is None:
            return None
    return error


def _dict_option_error(value: object, option: Mapping[str, Sequence[Any]]) -> str | None:
    """option: {key: accepted values}. A key that is missing outweighs any other error.

    The value may be an element that is no dict, on which the original raises."""
    if not isinstance(value, dict):
        return "type_error:nested"
    if any(key not in value and "" not in accepted for key, accepted in option.items()):
        return "value_error:dict_key"
    for key, item in value.items():
        if key not in option:
            return "value_error:dict_key"
        if _squash(item) not in _squash_all(option[key]):
            return "value_error:dict_value"
    return None


def _dicts_error(value: list[Any], options: Sequence[Any]) -> str | None:
    """Lists of dicts, compared in order; as with dicts, the last option's error counts."""
    error: str | None = "list_dict_checker:unclear"
    for option in options:
        error = _dicts_option_error(value, option)
        if error is None:
            return None
    return error


def _dicts_option_error(value: list[Any], option: Sequence[Any]) -> str | None:
    if len(value) != len(option):
        return "value_error:list_dict_count"
    for item, accepted in zip(value, option, strict=True):
        error = _dict_error(item, [accepted])
        if error is not None:
            return error
    return None


def _nested_types_fit(value: object, options: Sequence[Any], inner: type | None) -> bool:
    """Some option accepts the type of every element; nothing to check in a value without element types."""
    if inner is None or not isinstance(value, list):
        return True
    return any(_elements_fit(value, option, inner) for option in options)


def _elements_fit(value: list[Any], option: object, inner: type) -> bool:
    """Elements are of the declared type, or of the type of this option's; an option that is no list decides
    nothing and passes."""
    if not isinstance(option, list):
        return True
    allowed = (inner, _gold_type(option))
    return all(type(item) in allowed for item in value)


def _gold_type(options: Sequence[Any]) -> type | None:
    """Type of the first accepted value that is not "", or None if there is none."""
    return next((type(option) for option in options if option != ""), None)


def _squash(value: Any) -> Any:
    """Strings without case, spaces and the characters ,./-_*^, single quotes as double; others unchanged."""
    return value.translate(_IGNORED).lower() if isinstance(value, str) else value


def _squash_all(values: Sequence[Any]) -> list[Any]:
    return [_squash(value) for value in values]
