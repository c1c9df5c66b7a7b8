"""Do the prompts fit into the model's positions, with the answers that are to follow?"""

from __future__ import annotations

from nograd.llm.engine import Engine
from nograd.llm.requests import CompletionRequest, Request
from nograd.preflight.finding import Finding
from nograd.preflight.observed import Generation
from nograd.preflight.setting import Setting, left_out

CROWDED = 0.9
"""Share of the positions from which a prompt is near the limit."""


def context(setting: Setting, generation: Generation) -> tuple[Finding, ...]:
    """The longest request of a generation; one that is too long gets an empty answer or no score."""
    agent = setting.agent
    if agent is None:
        return (left_out("context", setting),)
    if not generation.exchanges or not isinstance(agent.scheduler.engine, Engine):
        return ()
    positions = agent.scheduler.engine.transformer.architecture.max_positions
    lengths = {request: _length(request) for request in generation.exchanges}
    longest = max(lengths, key=lengths.__getitem__)
    module = setting.settings.modules[longest.module]
    too_long = sum(length > positions for length in lengths.values())
    figures = {"longest": lengths[longest], "positions": positions, "too_long": too_long}
    if too_long:
        sentence = f"{too_long} of {len(lengths)} requests do not fit into the model's {positions} positions"
        advice = "shorten prompts, worked examples or token limits, or take a model with more positions"
        return (Finding("context", module, "failed", sentence, advice, figures),)
    sentence = f"the longest prompt takes {lengths[longest]} of the model's {positions} positions, answer included"
    if lengths[longest] <= CROWDED * positions:
        return (Finding("context", None, "ok", sentence, figures=figures),)
    advice = "shorten this stage's prompts or token limit: a longer question or plan will not fit"
    return (Finding("context", module, "warning", sentence, advice, figures),)


def _length(request: Request) -> int:
    return len(request.path) + (request.max_tokens if isinstance(request, CompletionRequest) else 0)
