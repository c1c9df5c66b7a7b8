"""Task health: is there something to learn, whom do the failures fall on, how finely is success measured?"""

from __future__ import annotations

import numpy as np

from nograd.preflight.finding import Finding
from nograd.preflight.observed import Centers
from nograd.preflight.setting import Setting

NO_HEADROOM = 0.95
ONE_BOTTLENECK = 2 / 3
"""Share of the blame from which a module is the bottleneck."""
COARSE = 1 / 8
"""Steps of a batch's success beyond this hide progress."""


def headroom(centers: Centers) -> tuple[Finding, ...]:
    """The untouched model's success: near 1 there is nothing to gain, at 0 without partial reward nothing to
    climb."""
    success = centers.success
    reward = float(np.mean([each.reward for each in centers.evaluations]))
    shaped = any(each.fitness != each.reward for each in centers.evaluations)
    figures = {"success": success, "reward": reward}
    sentence = f"the untouched model succeeds on {success:.2f} of the tasks, mean reward {reward:.2f}"
    if success >= NO_HEADROOM:
        advice = "take harder tasks: there is next to nothing left to learn"
        return (Finding("headroom", None, "failed" if success == 1 else "warning", sentence, advice, figures),)
    if success == 0 and reward <= 0:
        if shaped:
            advice = "take easier tasks or worked examples: only the gold log-probabilities say where to go"
            return (Finding("headroom", None, "warning", sentence, advice, figures),)
        advice = "take easier tasks, or set reward.shaping above 0: every candidate is worth the same"
        return (Finding("headroom", None, "failed", sentence, advice, figures),)
    return (Finding("headroom", None, "ok", sentence, figures=figures),)


def blame_profile(setting: Setting, centers: Centers) -> tuple[Finding, ...]:
    """The modules' shares of the blame for the untouched model's failures, weighted by the failures of each batch;
    nothing if no blame is known."""
    blamed = [(1 - each.success, each.blame) for each in centers.evaluations if each.blame and each.success < 1]
    if not blamed:
        return ()
    weights, rows = zip(*blamed, strict=True)
    shares = dict(zip(setting.settings.modules, np.average(rows, axis=0, weights=weights).tolist(), strict=True))
    most = max(shares, key=shares.__getitem__)
    kind = f"one bottleneck, {most}" if shares[most] >= ONE_BOTTLENECK else "no single bottleneck"
    listed = ", ".join(f"{module} {share:.2f}" for module, share in shares.items())
    return (Finding("blame", None, "ok", f"{kind}; shares of the blame: {listed}", figures=shares),)


def resolution(setting: Setting) -> tuple[Finding, ...]:
    """The smallest step of a generation's success, and of the run's AUC."""
    batch, generations = setting.config.tasks.batch, setting.settings.generations
    step = 1 / batch
    figures = {"step": step, "auc_step": step / generations}
    sentence = (
        f"with {batch} tasks, success moves in steps of {step:.3f}, and the AUC of {generations} generations in "
        f"steps of {step / generations:.4f}"
    )
    if step <= COARSE:
        return (Finding("resolution", None, "ok", sentence, figures=figures),)
    advice = f"set tasks.batch to {round(1 / COARSE)} or more: one task more or less looks like progress"
    return (Finding("resolution", None, "warning", sentence, advice, figures),)
