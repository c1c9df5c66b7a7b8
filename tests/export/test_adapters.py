"""LoRA adapters against the delta they stand for: weight by weight, and logit by logit after peft loaded them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from export_worlds import PROMPTS, STAGES, tuned_model
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from nograd.errors import ExportError
from nograd.export.adapters import max_lora_rank, write_adapter
from nograd.export.base import Base
from nograd.export.logits import engine_logits, hub_logits, hub_model
from nograd.export.projections import lora_factors, lora_rank, projections
from nograd.export.tuned import Tuned
from nograd.export.verify import Check, judge, verify_adapters
from nograd.llm.subspace import SubspaceSpec
from nograd.llm.subspace_choices import Binding, Kind
from tiny_models import LAYOUTS, MODULES, merged

ModelOf = Callable[[str], Path]
BASE = Base("owner/name", "abc", "f" * 64, "owner/name", "abc", "owner/name", None, None, False)


def write_all(tuned: Tuned, root: Path) -> dict[int, Path]:
    folders = {module: root / name for module, name in enumerate(tuned.modules)}
    for module, folder in folders.items():
        write_adapter(tuned, module, folder, BASE)
    return folders


def peft_model(tuned: Tuned, folders: dict[int, Path]) -> Any:
    """As a user loads them."""
    from peft import PeftModel

    first, *rest = folders.values()
    model: Any = PeftModel.from_pretrained(hub_model(tuned.source.folder), first, adapter_name=first.name)
    for folder in rest:
        model.load_adapter(folder, folder.name)
    return model


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_round_trips_through_peft(model_of: ModelOf, layout: str, tmp_path: Path) -> None:
    tuned = tuned_model(model_of(layout))
    folders = write_all(tuned, tmp_path)
    checks = verify_adapters(tuned, folders, PROMPTS, True, tuned.source.folder)
    hub = hub_model(tuned.source.folder)
    model = peft_model(tuned, folders)
    for module, name in enumerate(STAGES):
        model.set_adapter(name)
        oracle = merged(hub, tuned.architecture, tuned.subspace, module, tuned.theta[module].tobytes())
        assert (hub_logits(model, PROMPTS) - hub_logits(oracle, PROMPTS)).abs().max() < 1e-4
        assert checks[module].difference < 1e-4
    assert checks[0].moved == 0, "θ = 0 is the untouched model, bit for bit"
    assert all(checks[module].moved > 0.1 for module in (1, 2))


@pytest.mark.parametrize("layout", ["llama", "phi3"])
def test_coefficients_per_layer_round_trip(model_of: ModelOf, layout: str, tmp_path: Path) -> None:
    tuned = tuned_model(model_of(layout), SubspaceSpec(MODULES, dim=4, per_layer=True))
    assert tuned.theta.shape == (MODULES, 8)
    checks = verify_adapters(tuned, write_all(tuned, tmp_path), PROMPTS, True, tuned.source.folder)
    assert checks[2].moved > 0.1


specs = st.builds(
    SubspaceSpec,
    modules=st.integers(2, 3),
    dim=st.integers(1, 8),
    kind=st.sampled_from(get_args(Kind)),
    binding=st.sampled_from(get_args(Binding)),
    per_layer=st.booleans(),
    strength=st.floats(0.01, 10),
    seed=st.integers(0, 2**32),
)


@given(spec=specs, layout=st.sampled_from(["llama", "mistral", "gemma", "phi3"]), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=30)
def test_the_factors_are_the_delta(model_of: ModelOf, spec: SubspaceSpec, layout: str, seed: int) -> None:
    tuned = tuned_model(model_of(layout), spec, seed)
    rank = lora_rank(tuned.architecture, spec.dim)
    for projection in projections(tuned.architecture):
        wanted = torch.zeros(projection.out, lora_factors(tuned, 1, projection, rank)[0].shape[1])
        for target, rows in projection.rows.items():
            wanted[rows] = tuned.subspace.delta(tuned.theta[1], 1, projection.layer, target)
        a, b = lora_factors(tuned, 1, projection, rank)
        assert a.shape[0] == b.shape[1] == rank
        assert torch.allclose(b @ a, wanted, rtol=1e-5, atol=1e-6 * float(wanted.abs().max()))


@pytest.mark.parametrize(
    ("layout", "rank", "targets"),
    [("qwen3", 4, ["o_proj", "q_proj", "v_proj"]), ("phi3", 8, ["o_proj", "qkv_proj"])],
)
def test_the_configuration_is_peft_own(
    model_of: ModelOf, layout: str, rank: int, targets: list[str], tmp_path: Path
) -> None:
    tuned = tuned_model(model_of(layout))
    folders = write_all(tuned, tmp_path)
    config = json.loads((folders[1] / "adapter_config.json").read_text())
    assert config["r"] == config["lora_alpha"] == rank, "one rank for all projections, scaling 1"
    assert config["target_modules"] == targets
    assert (config["peft_type"], config["task_type"]) == ("LORA", "CAUSAL_LM")
    assert (config["base_model_name_or_path"], config["revision"]) == ("owner/name", "abc")
    factors = load_file(folders[1] / "adapter_model.safetensors")
    assert len(factors) == 2 * len(targets) * tuned.architecture.layers
    assert {tensor.dtype for tensor in factors.values()} == {torch.float32}
    assert all(key.startswith("base_model.model.model.layers.") for key in factors)


def test_the_keys_of_a_fused_projection_stay_untouched(model_of: ModelOf) -> None:
    tuned = tuned_model(model_of("phi3"))
    fused = projections(tuned.architecture)[0]
    _, b = lora_factors(tuned, 1, fused, 8)
    queries, values = fused.rows["q"], fused.rows["v"]
    assert not b[queries.stop : values.start].any(), "the key rows"
    assert not b[queries, 4:].any(), "the values' columns do not reach the queries"
    assert not b[values, :4].any()


def test_the_same_bytes_each_time(model_of: ModelOf, tmp_path: Path) -> None:
    tuned = tuned_model(model_of("llama"))
    once, again = write_all(tuned, tmp_path / "once")[1], write_all(tuned, tmp_path / "again")[1]
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        assert (once / name).read_bytes() == (again / name).read_bytes()


def _edit(folder: Path, change: Callable[[dict[str, torch.Tensor]], Any]) -> None:
    factors = load_file(folder / "adapter_model.safetensors")
    change(factors)
    save_file(factors, folder / "adapter_model.safetensors")


KEY = "base_model.model.model.layers.1.self_attn.v_proj.lora_B.weight"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda f: f[KEY].mul_(1.01), "differ from the engine's"),
        (lambda f: f[KEY].fill_(float("nan")), "differ from the engine's"),
        (lambda f: f.pop(KEY), "missing .*layers.1.self_attn.v_proj.lora_B"),
        (lambda f: f.update({KEY.replace("v_proj", "k_proj"): f[KEY].clone()}), "unexpected .*k_proj"),
    ],
)
def test_verification_sees_a_wrong_adapter(
    model_of: ModelOf, change: Callable[[dict[str, torch.Tensor]], Any], sentence: str, tmp_path: Path
) -> None:
    tuned = tuned_model(model_of("llama"))
    folders = write_all(tuned, tmp_path)
    _edit(folders[2], change)
    with pytest.raises(ExportError, match=sentence):
        verify_adapters(tuned, folders, PROMPTS, True, tuned.source.folder)


def test_the_verdict(model_of: ModelOf) -> None:
    tuned = tuned_model(model_of("llama"))
    judge(tuned, 1, Check(difference=1e-3, moved=2.0, largest=40.0), exact=True)
    judge(tuned, 0, Check(difference=1e-3, moved=0.0, largest=40.0), exact=True)
    judge(tuned, 1, Check(difference=0.5, moved=2.0, largest=40.0), exact=False)
    with pytest.raises(ExportError, match=r"more than 0\.004"):
        judge(tuned, 1, Check(difference=5e-3, moved=2.0, largest=40.0), exact=True)
    with pytest.raises(ExportError, match="are the untouched model's although"):
        judge(tuned, 1, Check(difference=0.0, moved=0.0, largest=40.0), exact=True)
    with pytest.raises(ExportError, match="export with --dtype float32"):
        judge(tuned, 1, Check(difference=2.0, moved=1.0, largest=40.0), exact=False)


def test_the_engine_logits_are_those_that_scores_come_from(model_of: ModelOf) -> None:
    """The reference of the verification against the path that runs use."""
    from nograd.llm.delta import Perturbation
    from nograd.llm.engine import Engine
    from nograd.llm.loading import load_weights
    from nograd.llm.requests import Score, ScoreRequest
    from nograd.llm.transformer import Transformer
    from tiny_models import CPU

    tuned = tuned_model(model_of("qwen2"))
    prompt = PROMPTS[0]
    (logits,) = engine_logits(tuned, [2], [prompt])
    architecture, weights = load_weights(tuned.source.folder, torch.float32, CPU)
    perturbation = Perturbation(architecture, tuned.subspace, CPU, torch.float32)
    engine = Engine(Transformer(architecture, weights), perturbation, frozenset(), 4096)
    (score,) = engine.run([ScoreRequest(2, tuned.theta[2].tobytes(), tuple(prompt[:1]), target=tuple(prompt[1:]))])
    assert isinstance(score, Score)
    rows = logits.double().log_softmax(-1)[range(len(prompt) - 1), prompt[1:]]
    assert np.allclose(rows.numpy(), score.log_probabilities, atol=1e-5)


@given(st.integers(1, 600))
@settings(deadline=None)
def test_the_rank_of_a_server_is_the_smallest_that_fits(rank: int) -> None:
    allowed = [8, 16, 32, 64, 128, 256, 320, 512]
    assert max_lora_rank(rank) == min((a for a in allowed if a >= rank), default=None)
