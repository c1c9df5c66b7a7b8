"""Modular antithetic evolution strategies as ask and tell on an immutable state (DESIGN §4).

It sees fitness numbers only; what a candidate is, the evaluator knows. Each generation: allocate from the
credit so far, evaluate center and candidates on the same tasks, update theta, update credit from the center.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nograd.errors import ConfigError
from nograd.search import bandit, burst, step
from nograd.search.allocation import Allocation, allocate
from nograd.search.credit import update_credit
from nograd.search.evaluation import Evaluation
from nograd.search.outcome import Outcome, read_outcome
from nograd.search.perturbation import candidates, epsilon
from nograd.search.settings import SearchSettings
from nograd.search.state import SearchState, init

__all__ = ["Proposal", "SearchSettings", "SearchState", "Update", "ask", "init", "tell"]


@dataclass(frozen=True, eq=False)
class Proposal:
    """One generation's candidates.

    modules, pair_index: int64 [pairs], the module of each pair and its number within the module.
    epsilon: float32 [pairs, dim]. thetas: float32 [1 + 2·pairs, modules, dim]: the center, then θ + σ·ε and
    θ − σ·ε of each pair.
    """

    generation: int
    allocation: Allocation
    modules: NDArray[np.int64]
    pair_index: NDArray[np.int64]
    epsilon: NDArray[np.float32]
    thetas: NDArray[np.float32]

    @property
    def sigma(self) -> NDArray[np.float64]:
        """Perturbation size per module, float64 [modules]."""
        return self.allocation.sigma

    @property
    def inclusion(self) -> NDArray[np.float64]:
        """Probability per module of getting a pair, float64 [modules]."""
        return self.allocation.inclusion

    @property
    def starved(self) -> NDArray[np.bool_]:
        """Modules without a pair, bool [modules]."""
        return np.asarray(self.allocation.pairs == 0)


@dataclass(frozen=True, eq=False)
class Update:
    """What a generation did.

    raw_norm: float64 [modules], step norm after lr, IPW and catch-up, before the trust region.
    step_norm: float64 [modules], norm of what was added to theta. clip_bound: bool [modules].
    dropped: indices of the pairs with a non-finite fitness. blame: float64 [modules], or None if nothing
    failed. credit: float64 [modules], after. gains: float64 [modules], mean fitness gain per pair; NaN where
    none was measured.
    """

    raw_norm: NDArray[np.float64]
    step_norm: NDArray[np.float64]
    clip_bound: NDArray[np.bool_]
    dropped: tuple[int, ...]
    blame: NDArray[np.float64] | None
    credit: NDArray[np.float64]
    gains: NDArray[np.float64]


def ask(settings: SearchSettings, state: SearchState, bottleneck: int | None = None) -> Proposal:
    """The candidates of the state's generation. A pure function.

    bottleneck: index of the true bottleneck, where it is known. Raises ConfigError if the search has ended
    or the state does not fit the settings.
    """
    _check_state(settings, state)
    allocation = allocate(settings, state.credit, state.generation, state.gain, bottleneck)
    modules = np.repeat(np.arange(settings.count), allocation.pairs)
    pair_index = np.concatenate([np.arange(count) for count in allocation.pairs])
    keys = zip(modules.tolist(), pair_index.tolist(), strict=True)
    epsilons = np.stack([epsilon(settings.seed, state.generation, m, k, settings.dim) for m, k in keys])
    thetas = candidates(state.theta, modules, epsilons, allocation.sigma)
    return Proposal(state.generation, allocation, modules, pair_index, epsilons, thetas)


def tell(
    settings: SearchSettings, state: SearchState, proposal: Proposal, evaluations: Sequence[Evaluation]
) -> tuple[SearchState, Update]:
    """The state after the generation, and what happened. evaluations: one per row of proposal.thetas.

    A pair with a non-finite fitness is dropped and not counted (values beyond float32 count as non-finite).
    Raises ConfigError if the evaluations or the center's blame do not fit.
    """
    _check_evaluations(state, proposal, evaluations)
    outcome = read_outcome(evaluations)
    raw = _raw_step(settings, proposal, outcome)
    clips = settings.clips * burst.clip_factors(settings, state.generation)
    clipped = step.trust_region(raw, clips)
    applied, queued, left = burst.spread(settings, state.generation, clipped, state.queued, state.queued_left)
    blame = None if evaluations[0].blame is None else np.asarray(evaluations[0].blame, np.float64)
    gains = bandit.realised_gains(outcome, proposal.modules[outcome.kept], settings.count)
    after = SearchState(
        generation=state.generation + 1,
        theta=(state.theta.astype(np.float64) + applied).astype(np.float32),
        credit=update_credit(state.credit, blame, settings.credit_rate),
        gain=bandit.update_gain(state.gain, gains, settings.credit_rate),
        queued=queued,
        queued_left=left,
    )
    return after, Update(
        raw_norm=step.norms(raw),
        step_norm=step.norms(applied),
        clip_bound=step.norms(raw) > clips,
        dropped=outcome.dropped,
        blame=blame,
        credit=after.credit,
        gains=gains,
    )


def _raw_step(settings: SearchSettings, proposal: Proposal, outcome: Outcome) -> NDArray[np.float64]:
    """gradient → learning rate → IPW → catch-up; the trust region follows."""
    kept = outcome.kept
    raw = step.gradient(
        proposal.epsilon[kept], outcome.plus, outcome.minus, proposal.modules[kept], proposal.sigma
    )
    raw = step.scaled(raw, settings.lr)
    if settings.arm.ipw:
        raw = step.scaled(raw, step.ipw_weights(proposal.allocation.pairs))
    return step.scaled(raw, burst.step_factors(settings, proposal.generation))


def _check_state(settings: SearchSettings, state: SearchState) -> None:
    expected = (settings.count, settings.dim)
    if state.theta.shape != expected:
        raise ConfigError(f"theta must be [modules, dim] = {expected}, the state has {state.theta.shape}")
    if state.generation >= settings.generations:
        raise ConfigError(f"the search has ended after {settings.generations} generations; raise generations")


def _check_evaluations(state: SearchState, proposal: Proposal, evaluations: Sequence[Evaluation]) -> None:
    if proposal.generation != state.generation:
        raise ConfigError(
            f"the proposal is of generation {proposal.generation}, the state at {state.generation}; ask again"
        )
    if len(evaluations) != len(proposal.thetas):
        raise ConfigError(
            f"{len(proposal.thetas)} candidates need as many evaluations, got {len(evaluations)}"
        )
