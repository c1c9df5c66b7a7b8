"""Merged models and arrays, read back by what others read them with."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from export_worlds import PROMPTS, STAGES, tuned_model
from safetensors.torch import load_file, save_file

from nograd.errors import ExportError
from nograd.export.arrays import delta_of, verify_arrays, write_arrays
from nograd.export.logits import hub_model
from nograd.export.merged import stored_dtype, write_model
from nograd.export.tuned import Tuned
from nograd.export.verify import Check, verify_models
from nograd.llm.layouts import KINDS
from nograd.llm.loading import load_weights
from nograd.llm.subspace import TARGETS, SubspaceSpec
from tiny_models import CPU, LAYOUTS, MODULES, merged, save_tiny

ModelOf = Callable[[str], Path]


def write_and_verify(
    tuned: Tuned, root: Path, dtype: torch.dtype | None = None, exact: bool = True
) -> dict[int, Check]:
    folders = {module: root / name for module, name in enumerate(STAGES)}
    for module, folder in folders.items():
        write_model(tuned, module, folder, dtype)
    return verify_models(tuned, folders, PROMPTS, exact, tuned.source.folder)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_round_trips_merged(model_of: ModelOf, layout: str, tmp_path: Path) -> None:
    tuned = tuned_model(model_of(layout))
    checks = write_and_verify(tuned, tmp_path)
    hub = hub_model(tuned.source.folder)
    oracle = merged(hub, tuned.architecture, tuned.subspace, 2, tuned.theta[2].tobytes())
    read = hub_model(tmp_path / "third").state_dict()
    assert all(torch.equal(tensor, read[name]) for name, tensor in oracle.state_dict().items())
    assert max(check.difference for check in checks.values()) < 1e-4
    assert checks[0].moved < 1e-5 < 0.1 < checks[1].moved


@pytest.mark.parametrize("layout", ["llama tied", "gemma", "llama"])
def test_tied_embeddings_survive(model_of: ModelOf, layout: str, tmp_path: Path) -> None:
    tuned = tuned_model(model_of(layout))
    write_model(tuned, 1, tmp_path / "once")
    model = hub_model(tmp_path / "once")
    tied = layout != "llama"
    assert ("lm_head.weight" in load_file(tmp_path / "once" / "model.safetensors")) is not tied
    shared = model.lm_head.weight.data_ptr() == model.model.embed_tokens.weight.data_ptr()
    assert shared is tied
    architecture, weights = load_weights(tmp_path / "once", torch.float32, CPU)
    assert architecture == tuned.architecture, "nograd itself reads it, too"
    untouched = load_weights(tuned.source.folder, torch.float32, CPU)[1]
    delta = tuned.subspace.delta(tuned.theta[1], 1, 1, "q")
    assert torch.equal(weights.layers[1].q, untouched.layers[1].q + delta)


def test_a_head_that_repeats_tied_embeddings_is_not_written(tmp_path: Path) -> None:
    save_tiny(tmp_path / "model", LAYOUTS["llama tied"])
    file = tmp_path / "model" / "model.safetensors"
    tensors = load_file(file)
    save_file({**tensors, "lm_head.weight": tensors["model.embed_tokens.weight"].clone()}, file)
    tuned = tuned_model(tmp_path / "model")
    write_model(tuned, 1, tmp_path / "out")
    assert "lm_head.weight" not in load_file(tmp_path / "out" / "model.safetensors")


def test_a_model_in_several_files(tmp_path: Path) -> None:
    save_tiny(tmp_path / "whole", LAYOUTS["qwen3"]).save_pretrained(tmp_path / "model", max_shard_size="100KB")
    assert len(list((tmp_path / "model").glob("*.safetensors"))) > 2
    tuned = tuned_model(tmp_path / "model")
    checks = write_and_verify(tuned, tmp_path / "out")
    assert checks[2].moved > 0.1
    index = json.loads((tmp_path / "out" / "third" / "model.safetensors.index.json").read_text())
    source = json.loads((tmp_path / "model" / "model.safetensors.index.json").read_text())
    assert index["weight_map"].keys() == source["weight_map"].keys()
    assert index["metadata"]["total_size"] == source["metadata"]["total_size"]


def test_a_lower_precision_states_its_rounding(model_of: ModelOf, tmp_path: Path) -> None:
    tuned = tuned_model(model_of("llama"))
    checks = write_and_verify(tuned, tmp_path, torch.bfloat16, exact=False)
    assert 1e-4 < checks[2].difference < checks[2].moved
    assert stored_dtype(tmp_path / "third") == "bfloat16"
    assert json.loads((tmp_path / "third" / "config.json").read_text())["dtype"] == "bfloat16"


def test_stored_dtypes_are_kept(tmp_path: Path) -> None:
    save_tiny(tmp_path / "whole", {}).bfloat16().save_pretrained(tmp_path / "model")
    tuned = tuned_model(tmp_path / "model")
    write_model(tuned, 2, tmp_path / "kept")
    assert stored_dtype(tmp_path / "kept") == "bfloat16"
    write_and_verify(tuned, tmp_path / "wide", torch.float32)
    assert stored_dtype(tmp_path / "wide" / "third") == "float32"


def test_the_untouched_model_and_what_servers_look_for(model_of: ModelOf, tmp_path: Path) -> None:
    source = model_of("phi3")
    config = json.loads((source / "config.json").read_text())
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.safetensors").write_bytes((source / "model.safetensors").read_bytes())
    (tmp_path / "model" / "config.json").write_text(json.dumps({**config, "architectures": None, "_name_or_path": "x"}))
    (tmp_path / "model" / "chat_template.jinja").write_text("{{ messages }}")
    write_model(tuned_model(tmp_path / "model"), None, tmp_path / "base")
    written = json.loads((tmp_path / "base" / "config.json").read_text())
    assert written["architectures"] == ["Phi3ForCausalLM"]
    assert "_name_or_path" not in written
    assert (tmp_path / "base" / "chat_template.jinja").read_text() == "{{ messages }}"
    before, after = load_file(source / "model.safetensors"), load_file(tmp_path / "base" / "model.safetensors")
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_every_supported_type_has_a_class_to_name() -> None:
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    assert KINDS.keys() <= MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.keys()


@pytest.mark.parametrize("per_layer", [False, True])
def test_arrays_rebuild_every_delta(model_of: ModelOf, per_layer: bool, tmp_path: Path) -> None:
    tuned = tuned_model(model_of("phi3"), SubspaceSpec(MODULES, 4, binding="shuffled", per_layer=per_layer))
    write_arrays(tuned, [0, 2], 7, "abc", tmp_path)
    arrays = np.load(tmp_path / "theta.npz", allow_pickle=False)
    assert list(arrays["modules"]) == ["first", "third"]
    assert np.array_equal(arrays["theta"], tuned.theta[[0, 2]])
    assert (int(arrays["generation"]), str(arrays["fingerprint"]), float(arrays["injection"])) == (7, "abc", 1.0)
    for layer in range(tuned.architecture.layers):
        for target in TARGETS:
            wanted = tuned.subspace.delta(tuned.theta[2], 2, layer, target).numpy()
            assert np.allclose(delta_of(arrays, 1, layer, target), wanted, atol=1e-6)
    checks = verify_arrays(tuned, [0, 2], tmp_path)
    assert checks[0].moved == 0
    assert checks[2].moved > 0.01


def test_wrong_arrays_are_seen(model_of: ModelOf, tmp_path: Path) -> None:
    tuned = tuned_model(model_of("llama"))
    write_arrays(tuned, [1], 0, "abc", tmp_path)
    arrays = dict(np.load(tmp_path / "theta.npz"))
    arrays["1.v.s"] = arrays["1.v.s"] * 1.001
    np.savez(tmp_path / "theta.npz", **arrays)
    with pytest.raises(ExportError, match=r"ΔW of 'second' as read back from theta\.npz differs"):
        verify_arrays(tuned, [1], tmp_path)
