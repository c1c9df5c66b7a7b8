"""What a generation and the whole run will cost, from one generation as it was evaluated here."""

from __future__ import annotations

from nograd.preflight.finding import Finding
from nograd.preflight.observed import Generation
from nograd.preflight.setting import Setting
from nograd.run.progress import duration


def cost(setting: Setting, generation: Generation) -> tuple[Finding, ...]:
    """Seconds, tokens and requests of a generation, and of all generations at that speed."""
    generations = setting.settings.generations
    counts = generation.result.counts
    tokens = counts.get("tokens_prefilled", 0) + counts.get("tokens_decoded", 0)
    whole = f"{generations} generations about {duration(generation.seconds * generations)}"
    one = f"a generation takes {generation.seconds:{'.1f' if generation.seconds >= 1 else '.2g'}} s"
    if tokens:
        one += (
            f" and {tokens:,} tokens ({counts['requests_computed']:,} of {counts['requests_asked']:,} requests "
            f"computed)"
        )
        whole += f" and {tokens * generations:,} tokens"
    figures = {
        "seconds_per_generation": generation.seconds,
        "seconds": generation.seconds * generations,
        "candidates": len(generation.result.evaluations),
        **counts,
    }
    return (Finding("cost", None, "ok", f"{one}; {whole}", figures=figures),)
