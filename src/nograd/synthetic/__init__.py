"""A pipeline of four modules whose true bottleneck is known; no language model (paper §5.1)."""

from nograd.synthetic.landscape import CALIBRATED, Landscape
from nograd.synthetic.prestudy import Row, prestudy
from nograd.synthetic.regimes import REGIMES, Regime, find_regime
from nograd.synthetic.report import records, text_table
from nograd.synthetic.rollouts import Rewards
from nograd.synthetic.simulate import Curves, simulate
from nograd.synthetic.verdicts import Statement, agrees, structure
from nograd.synthetic.world import SyntheticEvaluator, World

__all__ = [
    "CALIBRATED",
    "REGIMES",
    "Curves",
    "Landscape",
    "Regime",
    "Rewards",
    "Row",
    "Statement",
    "SyntheticEvaluator",
    "World",
    "agrees",
    "find_regime",
    "prestudy",
    "records",
    "simulate",
    "structure",
    "text_table",
]
