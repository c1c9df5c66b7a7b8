"""What a comparison comes down to, in one sentence."""

from __future__ import annotations

from nograd.run.compare import Comparison
from nograd.run.compare_seeds import SeedComparison
from nograd.run.divergence import ASPECTS
from nograd.stats import Contrast, smallest_p

ALPHA = 0.05


def verdict_of_runs(comparison: Comparison) -> str:
    """Two runs: identical or not, how success differs, where they part."""
    c = comparison
    if not c.shared:
        return "Nothing to compare, a run has no complete generation yet."
    settings = [*c.settings, *c.facts]
    although = f", although {' and '.join(settings[:3])} differ" if settings else ""
    if c.identical:
        return f"Bit-identical over the {_generations(c.shared)} that both have{although}."
    mean = c.differences["success"].mean
    assert mean is not None, "the loop refuses a center success that is no share"
    same = "the same" if mean == 0 else f"{abs(mean):.3f} {'higher' if mean > 0 else 'lower'} in B"
    return f"Mean success is {same} over {_generations(c.shared)}, which describes these two runs only; {_parting(c)}."


def verdict_of_seeds(comparison: SeedComparison) -> str:
    """Two folders: what the exact test and the equivalence test say of AUC."""
    contrast = comparison.contrasts["auc"]
    if comparison.identical:
        return f"Bit-identical in all {_seeds(contrast.n)}."
    assert contrast.estimate is not None, "at least one pair of finite success"
    side = "above" if contrast.estimate > 0 else "below"
    where = "level with" if contrast.estimate == 0 else f"{abs(contrast.estimate):.4f} {side}"
    return f"B is {where} A in AUC over {_seeds(contrast.n)}: {_reading(contrast)}."


def _parting(c: Comparison) -> str:
    """The first thing that differs, in the order in which a generation comes to it."""
    found = {aspect: first for aspect, first in c.divergence.items() if first is not None}
    if not found:
        return "they differ in what led to the results, not in the results"
    first = min(found.values())
    aspect = next(aspect for aspect in ASPECTS if found.get(aspect) == first)
    before = "they differ from the start" if first == 0 else f"the same to the bit before generation {first}"
    center = c.divergence["center"]
    never = "; the center never scores differently" if center is None else ""
    return f"{before}, where {ASPECTS[aspect]} differ first{never}"


def _reading(contrast: Contrast) -> str:
    if contrast.n < 2:
        return "one seed allows no inference"
    p, equivalent = contrast.p, contrast.equivalence.p
    parts = []
    if p is not None and p <= ALPHA:
        parts.append(f"a difference (p = {p:.3f})")
    if equivalent is not None and equivalent <= ALPHA:
        parts.append(f"equivalent within ±{contrast.equivalence.margin} (p = {equivalent:.3f})")
    if parts:
        return " and ".join(parts)
    least = smallest_p(contrast.n)
    weak = f", and {_seeds(contrast.n)} could not show one (smallest possible p {least:.3g})" if least > ALPHA else ""
    shown = "–" if p is None else f"{p:.3f}"
    return f"no difference shown (p = {shown}), no equivalence within ±{contrast.equivalence.margin} either{weak}"


def _generations(count: int) -> str:
    return f"{count} generation{'s' if count != 1 else ''}"


def _seeds(count: int) -> str:
    return f"{count} seed{'s' if count != 1 else ''}"
