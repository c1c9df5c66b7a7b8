"""The configuration of a run: frozen sections with the defaults of DESIGN §4, checked before work starts."""

from __future__ import annotations

import hashlib
import os
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator

from nograd.errors import NogradError
from nograd.run.strict_json import dumps
from nograd.search.arms import parse_arm

DEFAULT_CLIP = 0.5


class Section(BaseModel):
    """A table of the configuration: no unknown keys, no silent conversions, no NaN."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]
Name = Annotated[str, Field(min_length=1)]
File = Annotated[Name, AfterValidator(os.path.abspath)]


def _canonical_arm(text: str) -> str:
    try:
        return parse_arm(text).label
    except NogradError as error:
        raise ValueError(str(error)) from error


def _clip(value: object) -> float | dict[str, float]:
    if isinstance(value, dict):
        if value and all(isinstance(name, str) and _is_positive(clip) for name, clip in value.items()):
            return {name: float(clip) for name, clip in value.items()}
    elif _is_positive(value):
        return float(value)  # type: ignore[arg-type]
    raise ValueError("must be a number greater than 0, or a table of such numbers by module name")


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _default_batch(values: dict[str, Any]) -> int:
    return 12 if values["family"].startswith("bfcl") else 16


class ModelConfig(Section):
    """Which frozen model. spec: a name of `nograd models`, a Hugging Face id or a local folder."""

    spec: Name = "smollm2-135m"
    revision: str | None = Field(default=None, min_length=1)
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"


class TasksConfig(Section):
    """Which tasks. path, tools: files of the family jsonl, made absolute; what is in them counts, not where they lie.
    batch: tasks per generation (default 16; 12 for the bfcl families)."""

    family: Name = "in_house"
    path: File | None = None
    tools: File | None = None
    batch: Count = Field(default_factory=_default_batch)


class TokenLimits(Section):
    """Most tokens that a stage of the four-stage agent may write."""

    planner: Count = 32
    selector: Count = 16
    caller: Count = 64
    synthesizer: Count = 16


class AgentConfig(Section):
    """The four-stage agent. attempts: calls the caller may try in one rollout."""

    token_limits: TokenLimits = TokenLimits()
    attempts: Count = 2


class SubspaceConfig(Section):
    """Where the coefficients live (DESIGN §4 "Subspace"; paper §3).

    dim: coefficients d per module. basis: which directions. binding: which of them a module owns.
    parameterisation: one set for all layers, or one for each. injection: the strength c of the delta.
    """

    dim: Count = 32
    basis: Literal["svd", "random", "matched"] = "svd"
    binding: Literal["round_robin", "shuffled"] = "round_robin"
    parameterisation: Literal["tied", "per_layer"] = "tied"
    injection: Positive = 1.0


class SearchConfig(Section):
    """The evolution strategy (DESIGN §4 "Allocation", "ES update").

    arm: scheme and options, e.g. "hard_noisy:q=0.5,floor=1"; kept in its canonical spelling.
    pairs: mirrored pairs P per generation. sigma: size of a perturbation, in units of θ. lr: step per estimated
    gradient. clip: largest norm of a step, in units of θ, inf for no limit; or a table by module name (modules left
    out keep 0.5).
    credit_rate: α of the credit's moving average.
    """

    arm: Annotated[str, AfterValidator(_canonical_arm)] = "uniform"
    pairs: Count = 4
    generations: Count = 45
    sigma: Positive = 0.3
    lr: Positive = 0.3
    clip: Annotated[float | dict[str, float], PlainValidator(_clip)] = DEFAULT_CLIP
    credit_rate: Annotated[float, Field(ge=0, le=1)] = 0.2


class RewardConfig(Section):
    """Rollout reward and fitness (DESIGN §4). attempt_cost is subtracted per extra attempt.

    shaping: the weight w of the gold log-probability; 0 asks for no scoring at all.
    """

    tool: NonNegative = 0.15
    call: NonNegative = 0.15
    attempt_cost: NonNegative = 0.03
    shaping: NonNegative = 0.5


class SyntheticConfig(Section):
    """The evaluator "synthetic" (paper §5.1). regime: which of the four; it fixes the coefficients per module.
    Of the other sections it takes the search, tasks.batch, reward.tool and reward.call."""

    regime: Name = "stationary_tight"


class ExecutionConfig(Section):
    """How the run is executed; no results depend on it, so it may change when a run is resumed.

    threads: None leaves the choice to the libraries. token_budget: tokens whose keys and values are held at once
    (more are computed in parts), None: automatic.
    """

    device: Literal["auto", "cpu", "cuda"] = "auto"
    threads: Count | None = None
    token_budget: Count | None = None
    progress: bool = True
    track: Literal["tensorboard"] | None = None


class RunConfig(Section):
    """One run. evaluator: which builder of `run.evaluators` turns the rest into an evaluator."""

    seed: int = 1
    evaluator: Name = "agent"
    model: ModelConfig = ModelConfig()
    tasks: TasksConfig = TasksConfig()
    agent: AgentConfig = AgentConfig()
    subspace: SubspaceConfig = SubspaceConfig()
    search: SearchConfig = SearchConfig()
    reward: RewardConfig = RewardConfig()
    synthetic: SyntheticConfig = SyntheticConfig()
    execution: ExecutionConfig = ExecutionConfig()


def results_bearing(config: RunConfig) -> dict[str, Any]:
    """Everything that the results depend on: the configuration without `execution`, and without the places of
    own files, whose hashes are among a run's facts."""
    return config.model_dump(exclude={"execution": True, "tasks": {"path", "tools"}})


def results_hash(config: RunConfig) -> str:
    """sha256 (hex) of the results-bearing configuration in canonical JSON."""
    return hashlib.sha256(dumps(results_bearing(config))).hexdigest()
