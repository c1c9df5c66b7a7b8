"""nograd: improve frozen LLM agents with forward passes only.

The names in __all__ are imported when they are first used, so that `import nograd` is cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nograd.agent.scheduler import Llm, Reply
    from nograd.agent.trajectory import Step, Trajectory
    from nograd.errors import NogradError
    from nograd.export.start import export_run
    from nograd.llm.chat import Message
    from nograd.report.data import load
    from nograd.run.black_box import BlackBox
    from nograd.run.config import RunConfig
    from nograd.run.config_source import load_config
    from nograd.run.load import load_run
    from nograd.run.start import run_config
    from nograd.run.tune import tune
    from nograd.run.tune_black_box import tune_black_box
    from nograd.search.evaluation import Evaluation, Evaluator, GenerationResult
    from nograd.tasks.family import Task

__version__ = "0.1.0"

_HOMES = {
    "BlackBox": "nograd.run.black_box",
    "Evaluation": "nograd.search.evaluation",
    "Evaluator": "nograd.search.evaluation",
    "GenerationResult": "nograd.search.evaluation",
    "Llm": "nograd.agent.scheduler",
    "Message": "nograd.llm.chat",
    "NogradError": "nograd.errors",
    "Reply": "nograd.agent.scheduler",
    "RunConfig": "nograd.run.config",
    "Step": "nograd.agent.trajectory",
    "Task": "nograd.tasks.family",
    "Trajectory": "nograd.agent.trajectory",
    "export_run": "nograd.export.start",
    "load": "nograd.report.data",
    "load_config": "nograd.run.config_source",
    "load_run": "nograd.run.load",
    "run_config": "nograd.run.start",
    "tune": "nograd.run.tune",
    "tune_black_box": "nograd.run.tune_black_box",
}

__all__ = [
    "BlackBox",
    "Evaluation",
    "Evaluator",
    "GenerationResult",
    "Llm",
    "Message",
    "NogradError",
    "Reply",
    "RunConfig",
    "Step",
    "Task",
    "Trajectory",
    "export_run",
    "load",
    "load_config",
    "load_run",
    "run_config",
    "tune",
    "tune_black_box",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'nograd' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
