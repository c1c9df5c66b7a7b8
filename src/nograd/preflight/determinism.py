"""Does the same generation, evaluated twice, come out the same to the bit?"""

from __future__ import annotations

from dataclasses import asdict

from nograd.preflight.device import device_of
from nograd.preflight.finding import Finding
from nograd.preflight.observed import Centers
from nograd.preflight.setting import Setting
from nograd.run.strict_json import dumps
from nograd.search.evaluation import GenerationResult


def determinism(setting: Setting, centers: Centers) -> tuple[Finding, ...]:
    """Compare two evaluations of θ = 0 on one batch: evaluations bit for bit, trajectories word for word."""
    first, again = centers.results[0], centers.again
    if _bits(first) == _bits(again):
        return (Finding("determinism", None, "ok", "θ = 0 evaluated twice on one batch gave the same bits"),)
    differing = sum(one != other for one, other in zip(first.trajectories, again.trajectories, strict=True))
    gap = abs(first.evaluations[0].fitness - again.evaluations[0].fitness)
    sentence = (
        f"θ = 0 evaluated twice on one batch differs: {differing} of {len(first.trajectories)} trajectories, and "
        f"the fitness by {gap:.2g}"
    )
    advice = (
        "key whatever is random in the agent, its tools or the evaluator by seed and generation: two runs of one "
        "seed will differ, and so will pairs that did nothing"
    )
    on_cpu = device_of(setting) == "cpu"
    figures = {"trajectories": differing, "fitness_gap": gap}
    return (Finding("determinism", None, "failed" if on_cpu else "warning", sentence, advice, figures),)


def _bits(result: GenerationResult) -> bytes:
    evaluations = [asdict(evaluation) for evaluation in result.evaluations]
    return dumps({"evaluations": evaluations, "trajectories": result.trajectories})
