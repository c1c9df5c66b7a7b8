"""A Python file of tools: its public functions, found by running it."""

from __future__ import annotations

import hashlib
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from nograd.errors import TaskError
from nograd.tasks.family import Task
from nograd.tasks.own.function_tool import Function, OwnTool, function_tool

CHECK_PARAMETERS = ["task", "answer"]

CheckFunction = Callable[[Task, str], object]


@dataclass(frozen=True)
class ToolsModule:
    """What a file offers. tools, checks: by name, in the file's order. sha256: of the file, hex; of what it
    imports nothing is part."""

    path: Path
    tools: Mapping[str, OwnTool]
    checks: Mapping[str, CheckFunction]
    sha256: str


def load_tools(path: Path) -> ToolsModule:
    """Run the file and take its public functions: those of the parameters (task, answer) are checks, all
    others tools. Raises TaskError for a file that cannot be read or run, or a function that cannot be a tool."""
    try:
        source = path.read_bytes()
    except OSError as error:
        raise TaskError(f"cannot read the tools module {path}: {error.strerror}; check the path") from error
    digest = hashlib.sha256(source).hexdigest()
    functions = _public_functions(_run(path, source, f"nograd_tools_{digest[:16]}"))
    checks = {name: each for name, each in functions.items() if _is_check(each)}
    try:
        tools = {name: function_tool(each) for name, each in functions.items() if name not in checks}
    except TaskError as error:
        raise TaskError(f"{path}: {error}") from error
    if not tools:
        raise TaskError(f"{path} has no tools; write at least one public function with type hints")
    return ToolsModule(path, tools, checks, digest)


def _run(path: Path, source: bytes, name: str) -> ModuleType:
    """The file as a module. It is run from the bytes that were hashed, never from a cached compilation."""
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    try:
        with _importing_from(path.parent):
            exec(compile(source, str(path), "exec", dont_inherit=True), module.__dict__)
    except SyntaxError as error:
        raise TaskError(f"{path} line {error.lineno} is not valid Python: {error.msg}; correct it there") from error
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        line = next((frame.lineno for frame in reversed(frames) if frame.filename == str(path)), None)
        place = "" if line is None else f" line {line}"
        raise TaskError(f"{path}{place} fails with {type(error).__name__}: {error}; correct it there") from error
    return module


@contextmanager
def _importing_from(folder: Path) -> Iterator[None]:
    """As for a script: modules beside it can be imported."""
    entry = str(folder.absolute())
    sys.path.insert(0, entry)
    try:
        yield
    finally:
        with suppress(ValueError):
            sys.path.remove(entry)


def _public_functions(module: ModuleType) -> dict[str, Function]:
    """Functions that the file itself defines, decorated ones too, by their names there."""
    named = {name: value for name, value in vars(module).items() if not name.startswith("_") and callable(value)}
    return {
        name: value
        for name, value in named.items()
        if inspect.isfunction(inspect.unwrap(value)) and (value.__module__, value.__name__) == (module.__name__, name)
    }


def _is_check(function: Function) -> bool:
    return list(inspect.signature(function).parameters) == CHECK_PARAMETERS
