"""Paired tests, equivalence, regression and their summaries. Pure functions of numbers: no I/O, no torch."""

from nograd.stats.bootstrap import bootstrap_mean
from nograd.stats.contrast import Contrast, compare, summarise
from nograd.stats.difference_in_differences import difference_in_differences
from nograd.stats.equivalence import MARGIN, Equivalence, tost, tost_of
from nograd.stats.holm import holm
from nograd.stats.intervals import Interval, t_interval, t_interval_of
from nograd.stats.pairing import DroppedSeed, Paired, pair
from nograd.stats.power import SeedsNeeded, seeds_for_equivalence, tost_power
from nograd.stats.regression import Line, StarvationFit, fit_line, fit_starvation
from nograd.stats.sign_flip import SignFlip, sign_flip, smallest_p

__all__ = [
    "MARGIN",
    "Contrast",
    "DroppedSeed",
    "Equivalence",
    "Interval",
    "Line",
    "Paired",
    "SeedsNeeded",
    "SignFlip",
    "StarvationFit",
    "bootstrap_mean",
    "compare",
    "difference_in_differences",
    "fit_line",
    "fit_starvation",
    "holm",
    "pair",
    "seeds_for_equivalence",
    "sign_flip",
    "smallest_p",
    "summarise",
    "t_interval",
    "t_interval_of",
    "tost",
    "tost_of",
    "tost_power",
]
