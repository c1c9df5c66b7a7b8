"""Where a setting's model computes."""

from __future__ import annotations

from nograd.llm.engine import Engine
from nograd.preflight.setting import Setting


def device_of(setting: Setting) -> str:
    """Type of the device; "cpu" where no engine of nograd's is asked."""
    engine = None if setting.agent is None else setting.agent.scheduler.engine
    return engine.transformer.device.type if isinstance(engine, Engine) else "cpu"
