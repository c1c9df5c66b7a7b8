"""Company noise: does the answer to a request change with the other requests in its batch?"""

from __future__ import annotations

from collections.abc import Sequence

from nograd.llm.invariance import Invariance, measure
from nograd.llm.requests import CompletionRequest, Request
from nograd.preflight.device import device_of
from nograd.preflight.finding import Finding
from nograd.preflight.observed import Generation
from nograd.preflight.setting import Setting, left_out
from nograd.search.streams import stream

SAMPLE = 12
"""Requests that are asked again in every arrangement."""


def noise(setting: Setting, generation: Generation) -> tuple[Finding, ...]:
    """Ask a sample of a generation's requests in one batch, shuffled, in halves and quarters, and alone.

    A CPU must give the same bits each time (DESIGN §3.4); elsewhere the share that changes is the noise floor."""
    if setting.agent is None:
        return (left_out("company_noise", setting),)
    if not generation.exchanges:
        return (Finding("company_noise", None, "ok", "the agent asked nothing"),)
    sample = _sample(list(generation.exchanges), setting.settings.seed)
    return (_judge(sample, measure(setting.agent.scheduler.engine, sample), device_of(setting)),)


def _sample(requests: Sequence[Request], seed: int) -> list[Request]:
    order = stream(seed, "company noise").permutation(len(requests))[:SAMPLE]
    return [requests[i] for i in order]


def _judge(sample: Sequence[Request], rows: Sequence[Invariance], device: str) -> Finding:
    completions = sum(isinstance(request, CompletionRequest) for request in sample)
    scores = len(sample) - completions
    worst = max(rows, key=lambda row: (row.tokens, row.log_probabilities))
    figures = {"completions": completions, "scores": scores}
    for row in rows:
        figures[f"tokens_{row.arrangement}"] = row.tokens
        figures[f"log_probabilities_{row.arrangement}"] = row.log_probabilities
    if not worst.tokens and not worst.log_probabilities:
        sentence = f"{completions} completions and {scores} scores have the same bits in every batch they were put in"
        return Finding("company_noise", None, "ok", sentence, figures=figures)
    sentence = (
        f"{worst.tokens} of {completions} completions and {worst.log_probabilities} of {scores} scores change with "
        f"their batch (most of them when {worst.arrangement})"
    )
    if device == "cpu":
        advice = "do not trust this model on this machine: a CPU must give the same bits; try model.dtype=float32"
        return Finding("company_noise", None, "failed", sentence, advice, figures)
    advice = "quote this as the noise floor beside every difference; model.dtype=float32 lowers it"
    return Finding("company_noise", None, "warning", sentence, advice, figures)
