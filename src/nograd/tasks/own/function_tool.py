"""A typed Python function as a tool: pydantic checks the arguments, the function's result is the output."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, ValidationError, create_model

from nograd.errors import TaskError
from nograd.tasks.family import ToolResult, ToolSpec
from nograd.tasks.own.describe import parameter_line
from nograd.tasks.own.docstring import parameter_texts, summary

Function = Callable[..., Any]
MAX_ERROR = 200
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True)
class OwnTool:
    """call: executes it with arguments as JSON has them; never raises for bad ones."""

    spec: ToolSpec
    call: Callable[[Mapping[str, Any]], ToolResult]


def function_tool(function: Function) -> OwnTool:
    """The function under its own name. Description: the docstring's first paragraph. Parameters: from the
    signature, with what the docstring or `Annotated[…, Field(description=…)]` says of them.

    Raises TaskError if it is async, has a parameter without a name or a type hint, or a type that JSON cannot
    carry."""
    name = function.__name__
    parameters = _parameters(function)
    document = inspect.getdoc(function) or ""
    model = _model(function, parameters, parameter_texts(document, parameters))
    spec = ToolSpec(name, summary(document, parameters) or name.replace("_", " "), _lines(model))
    return OwnTool(spec, partial(_call, function, model, tuple(parameters)))


def _parameters(function: Function) -> Mapping[str, inspect.Parameter]:
    plain = inspect.unwrap(function)
    if inspect.iscoroutinefunction(plain) or inspect.isasyncgenfunction(plain):
        raise TaskError(
            f"{function.__name__} is async, which a tool of a tools module cannot be; make it a plain function, "
            f"or tune an agent of your own with nograd.tune, where tools may be awaited"
        )
    parameters = dict(inspect.signature(function).parameters)
    for name, parameter in parameters.items():
        if parameter.kind not in _NAMED:
            raise TaskError(
                f"{function.__name__} has the parameter {str(parameter)!r}, which a call cannot name; "
                f"give it parameters with names and types only"
            )
        if parameter.annotation is inspect.Parameter.empty:
            raise TaskError(
                f"{function.__name__} has no type hint for {name!r}; add one, such as {name}: str, or begin the "
                f"function's name with _ if it is no tool"
            )
    return parameters


def _model(
    function: Function, parameters: Mapping[str, inspect.Parameter], texts: Mapping[str, str]
) -> type[BaseModel]:
    """Field p<i>, under the alias of parameter i: so a parameter may have any name."""
    try:
        hints = get_type_hints(function, include_extras=True)
        fields: dict[str, Any] = {}
        for index, (name, parameter) in enumerate(parameters.items()):
            settings: dict[str, Any] = {"alias": name}
            if name in texts:
                settings["description"] = texts[name]
            if parameter.default is not inspect.Parameter.empty:
                settings["default"] = parameter.default
            fields[f"p{index}"] = (hints[name], Field(**settings))
        config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
        model: type[BaseModel] = create_model(function.__name__, __config__=config, **fields)
        model.model_json_schema()
    except (PydanticUserError, NameError, TypeError) as error:
        reason = " ".join(str(error).split("\n\n")[0].split())[:MAX_ERROR]
        raise TaskError(
            f"the type hints of {function.__name__} cannot be used ({reason}); use types that JSON has, such as "
            f"str, int, float, bool, list[str] or Literal['a', 'b']"
        ) from error
    return model


def _lines(model: type[BaseModel]) -> Mapping[str, str]:
    schema = model.model_json_schema()
    required = schema.get("required", [])
    definitions = schema.get("$defs", {})
    return {
        parameter: parameter_line(each, definitions, parameter in required)
        for parameter, each in schema.get("properties", {}).items()
    }


def _call(
    function: Function, model: type[BaseModel], names: Sequence[str], arguments: Mapping[str, Any]
) -> ToolResult:
    try:
        checked = model.model_validate_json(json.dumps(dict(arguments)))
    except ValidationError as error:
        return ToolResult(False, error=_objection(function.__name__, names, dict(error.errors()[0])))
    try:
        output = str(function(**{name: getattr(checked, f"p{index}") for index, name in enumerate(names)}))
    except Exception as error:  # whatever a person's own tool raises is the tool's answer to the agent
        return ToolResult(False, error=_encodable(_first_line(error)))
    return ToolResult(True, output=_encodable(output))


def _objection(tool: str, names: Sequence[str], detail: Mapping[str, Any]) -> str:
    """What is wrong with the arguments, in words for the model that wrote them."""
    place = ".".join(str(part) for part in detail["loc"]) or "the arguments"
    takes = f"{tool} takes {', '.join(names) or 'nothing'}"
    if detail["type"] == "missing":
        return f"missing {place}; {takes}"
    if detail["type"] == "extra_forbidden":
        return f"unknown parameter {place[:40]!r}; {takes}"
    return f"{place}: {detail['msg']}".replace("Input should", "must").replace("String should", "must")


def _first_line(error: Exception) -> str:
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return text[:MAX_ERROR].rstrip(".")


def _encodable(text: str) -> str:
    """The text without lone surrogates, which no tokenizer takes."""
    return text.encode("utf-8", "replace").decode()
