"""Inert basis (paper §4, T1): do perturbations of a module change anything that it writes?

For every module: the share of mirrored pairs that flip any output token of the stage, and how far a
perturbation ±σ·ε moves the margin of the decisive tokens (see `decisive`), against the margin to be closed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nograd.llm.requests import CompletionRequest, ScoreRequest
from nograd.preflight.decisive import decisive_tokens, margins
from nograd.preflight.finding import Finding, Verdict
from nograd.preflight.flips import flips
from nograd.preflight.probe import Listening, Probe
from nograd.preflight.setting import Setting, left_out

TOKENS = 4
"""Decisive tokens per module that are followed."""
REACH = 0.1
"""Largest move over the median margin below which a module counts as inert: even the luckiest direction would
have to be followed for more than ten σ."""


@dataclass(frozen=True, eq=False)
class Moves:
    """flipped: bool [pairs, requests]. margin: logits to close, [points]. change: what each side of each pair
    makes of it, [2 · pairs, points]."""

    flipped: NDArray[np.bool_]
    margin: NDArray[np.float64]
    change: NDArray[np.float64]

    @property
    def pairs_flipped(self) -> int:
        """Pairs that flip a token in any of the stage's outputs."""
        return int(self.flipped.any(axis=1).sum())

    @property
    def reach(self) -> float:
        """Largest move over the median margin; 0 without a decisive token."""
        return float(np.abs(self.change).max() / np.median(self.margin)) if self.margin.size else 0.0


def inert_basis(setting: Setting, probe: Probe) -> tuple[Finding, ...]:
    """A finding per module; `failed` for one that changes nothing."""
    if probe.listening is None:
        return (left_out("inert_basis", setting),)
    return tuple(
        _finding(name, _moves(probe, probe.listening, module)) for module, name in enumerate(setting.settings.modules)
    )


def _moves(probe: Probe, listening: Listening, module: int) -> Moves:
    engine, center = listening.memory, [r for r in listening.center if r.module == module]
    plus = probe.proposal.thetas[1 + 2 * probe.pairs_of(module), module]
    flipped = flips(engine, [r for r in center if isinstance(r, CompletionRequest)], plus)
    scores = [r for r in center if isinstance(r, ScoreRequest)]
    points = decisive_tokens(engine, scores, listening.evaluator.scheduler.chat.eos_ids)
    points = points[:TOKENS]
    (margin,) = margins(engine, points, [np.zeros_like(plus[0])])
    return Moves(flipped, margin, margins(engine, points, [*plus, *-plus]) - margin)


def _finding(module: str, moves: Moves) -> Finding:
    pairs, outputs = moves.flipped.shape
    size = np.abs(moves.change)
    figures = {
        "pairs": pairs,
        "pairs_flipped": moves.pairs_flipped,
        "outputs_flipped": float(moves.flipped.mean()) if outputs else None,
        "decisive_tokens": moves.margin.size,
        "margin_median": float(np.median(moves.margin)) if moves.margin.size else None,
        "change_median": float(np.median(size)) if size.size else None,
        "change_largest": float(size.max()) if size.size else None,
    }
    flipped = f"{moves.pairs_flipped} of {pairs} mirrored pairs flip a token in {outputs} outputs"
    sentence = f"{flipped}; {_margin_text(moves)}"
    if moves.pairs_flipped:
        return Finding("inert_basis", module, "ok", sentence, figures=figures)
    if not outputs:
        advice = "look at the agent's trajectories at θ = 0: this stage was never reached"
        return Finding(
            "inert_basis", module, "warning", f"it was not asked for anything; {_margin_text(moves)}", advice, figures
        )
    verdict: Verdict = "failed" if moves.reach < REACH else "warning"
    advice = "raise subspace.injection or search.sigma, or take basis svd or matched; --propose searches the first two"
    return Finding("inert_basis", module, verdict, sentence, advice, figures)


def _margin_text(moves: Moves) -> str:
    if not moves.margin.size:
        return "it has no gold target that it misses here"
    size = np.abs(moves.change)
    return (
        f"a perturbation moves the decisive token's margin by {np.median(size):.3g} logits (median; largest "
        f"{size.max():.3g}), {np.median(moves.margin):.3g} are to be closed (median of {moves.margin.size})"
    )
