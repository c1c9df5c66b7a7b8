"""`nograd export` and `nograd.export_run` on a real run: the folder, its card, and every refusal."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

import nograd
from nograd.cli import main
from nograd.errors import ExportError, NogradError, RunError
from nograd.export import start, verify
from nograd.export.base import Base, base_of
from nograd.export.card import render_card
from nograd.export.folder import check_free, folder_names, new_folder
from nograd.export.logits import chat_prompts, hub_model
from nograd.export.merged import write_model
from nograd.export.tuned import Tuned, tuned_of
from nograd.export.verify import verify_adapters
from nograd.llm.loading import load_weights
from nograd.llm.sources import Source, find_model
from nograd.llm.subspace import SubspaceSpec, build_subspace
from nograd.run import layout
from nograd.run.config_source import load_config
from nograd.run.evaluations import EvaluationRecord, checkpoint_of, header, write_evaluations
from nograd.run.start import run_config
from tiny_models import CPU


def test_a_run_becomes_adapters(tiny_run: Path, tmp_path: Path) -> None:
    done = nograd.export_run(tiny_run, tmp_path / "out")
    record = nograd.load_run(tiny_run)
    assert sorted(os.listdir(tmp_path / "out")) == ["README.md", "answer", "export.json", "plan_it"]
    assert (done.generation, done.rank, done.max_lora_rank, done.exact, done.verified) == (3, 4, 8, True, True)
    assert [stage.name for stage in done.stages] == ["plan it", "answer"]
    for module, stage in enumerate(done.stages):
        assert stage.norm == pytest.approx(float(np.linalg.norm(record.theta[3, module])))
        assert stage.check is not None
        assert stage.check.difference < 1e-4 < stage.check.moved
    assert not list(tmp_path.glob(".*")), "nothing is left beside it"
    facts = json.loads((tmp_path / "out" / "export.json").read_text())
    assert facts["base"]["fingerprint"] == record.environment["identity"]["facts"]["fingerprint"]


def test_the_directions_are_those_the_run_moved_in(tiny_run: Path) -> None:
    """It ran in bfloat16, whose rounded weights have other singular vectors."""
    record = nograd.load_run(tiny_run)
    tuned = tuned_of(record, 3)
    rounded = load_weights(tuned.source.folder, torch.bfloat16, CPU)
    exact = load_weights(tuned.source.folder, torch.float32, CPU)
    spec = SubspaceSpec(2, 4)
    then, other = (build_subspace(*loaded, spec, "x", None) for loaded in (rounded, exact))
    assert torch.equal(tuned.subspace.directions[0]["q"].u, then.directions[0]["q"].u)
    assert not torch.equal(tuned.subspace.directions[0]["q"].u, other.directions[0]["q"].u)


def test_a_generation_and_a_stage_of_it(tiny_run: Path, tmp_path: Path) -> None:
    done = nograd.export_run(tiny_run, tmp_path / "one", format="npz", generation=1, stages=["answer"])
    arrays = np.load(tmp_path / "one" / "theta.npz")
    assert np.array_equal(arrays["theta"], nograd.load_run(tiny_run).theta[1, 1:])
    assert (int(arrays["generation"]), done.generation, done.rank) == (1, 1, None)


def test_the_untouched_model_says_so(tiny_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(tiny_run), "--out", str(tmp_path / "zero"), "--generation", "0"]) == 0
    said = capsys.readouterr()
    assert "the coefficients of plan it, answer are all zero" in said.out
    assert "warning" not in said.err
    assert "(untouched)" in (tmp_path / "zero" / "README.md").read_text()


def _python(card: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", card, re.S)


def _run(code: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {}
    exec(compile(code, "card", "exec"), names)
    return names


@pytest.mark.parametrize("options", [{}, {"with_base": True}, {"dtype": "bfloat16"}])
def test_the_cards_code_loads_the_adapters(
    tiny_run: Path, tmp_path: Path, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    done = nograd.export_run(tiny_run, tmp_path / "out", **options)
    card = (tmp_path / "out" / "README.md").read_text()
    server, local = _python(card)
    compile(server, "card", "exec")
    names = _run(local, tmp_path / "out", monkeypatch)
    assert isinstance(names["complete"]("answer", [{"role": "user", "content": "a?"}]), str)
    assert set(names["model"].peft_config) == {"plan_it", "answer"}
    assert "--max-loras 2 --max-lora-rank 8" in card
    assert "--lora-modules plan_it=./plan_it answer=./answer" in card
    assert (names["base"] == "./base") is bool(options.get("with_base"))
    if "with_base" in options:
        hub_model(tmp_path / "out" / "base")
        config = json.loads((tmp_path / "out" / "answer" / "adapter_config.json").read_text())
        assert config["base_model_name_or_path"] == str(done.path / "base")


@pytest.mark.parametrize("format", ["merged", "npz"])
def test_the_cards_code_runs(
    tiny_run: Path, tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nograd.export_run(tiny_run, tmp_path / "out", format=format)
    (code,) = _python((tmp_path / "out" / "README.md").read_text())
    names = _run(code, tmp_path / "out", monkeypatch)
    assert capsys.readouterr().out
    if format == "npz":
        tuned = tuned_of(nograd.load_run(tiny_run), 3)
        wanted = tuned.subspace.delta(tuned.theta[0], 0, 0, "q").numpy()
        assert np.allclose(names["delta"], wanted, atol=1e-6)


def test_the_card_says_how_it_was_made(tiny_run: Path, tmp_path: Path) -> None:
    nograd.export_run(tiny_run, tmp_path / "out", verify=False)
    card = (tmp_path / "out" / "README.md").read_text()
    record = nograd.load_run(tiny_run)
    assert "arm `uniform`, seed 1, task family `own`, made in bfloat16" in card
    assert "after 3 of 3 generations" in card
    assert record.environment["identity"]["facts"]["fingerprint"] in card
    assert "Not verified" in card
    assert "not known here" in card, "nothing is claimed of a licence that is not known"
    zero, *later = [generation.success for generation in record.generations]
    assert f"| own, the run's own batches (mean of the last 2) | {zero:.2f} | {sum(later) / 2:.2f} |" in card


def test_the_card_shows_what_was_evaluated(tiny_run: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(tiny_run, run)
    record = nograd.load_run(run)
    results = [
        EvaluationRecord(generation, checkpoint_of(record, generation), success, 0.0, {}, ())
        for generation, success in ((0, 0.25), (2, 0.5), (3, 0.75))
    ]
    write_evaluations(layout.evaluations(run, "held_out"), header(record, "held_out", "hash"), results)
    assert "| held_out, all tasks | 0.25 | 0.75 |" in _card(run, tmp_path / "last")
    assert "| held_out, all tasks | 0.25 | 0.50 |" in _card(run, tmp_path / "second", generation=2)
    assert "held_out" not in _card(run, tmp_path / "first", generation=1), "it was not evaluated"


def _card(run: Path, out: Path, **options: Any) -> str:
    return (nograd.export_run(run, out, verify=False, **options).path / "README.md").read_text()


def test_an_export_is_never_written_over(tiny_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    fast: Callable[..., Any] = lambda **options: nograd.export_run(tiny_run, out, format="npz", **options)  # noqa: E731
    fast(generation=1)
    with pytest.raises(ExportError, match="already holds an export; give --out another folder, or --force"):
        fast()
    (out / "mine.txt").write_text("mine")
    nograd.export_run(tiny_run, out, force=True, verify=False)
    assert sorted(os.listdir(out)) == ["README.md", "answer", "export.json", "mine.txt", "plan_it"]
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("mine")
    with pytest.raises(ExportError, match="something other than an export"):
        nograd.export_run(tiny_run, other, force=True)
    with pytest.raises(ExportError, match="is a file"):
        check_free(other / "thesis.tex", True)
    assert (other / "thesis.tex").read_text() == "mine"


def test_a_model_of_the_hub_is_named_by_id_and_revision(tiny_run: Path, tmp_path: Path) -> None:
    record = nograd.load_run(tiny_run)
    done = nograd.export_run(tiny_run, tmp_path / "out", verify=False)
    base = base_of(record, Source("owner/name", tmp_path, "abc"), None)
    card = render_card({**asdict(done), "base": asdict(base), "version": "1"}, record)
    assert card.startswith("---\nbase_model: owner/name\n")
    assert "vllm serve owner/name --revision abc --dtype bfloat16" in card
    assert 'from_pretrained(base, revision="abc")' in card
    own = base_of(record, Source("owner/name", tmp_path, "abc"), tmp_path / "out")
    assert (own.path, own.path_for_adapters) == ("./base", str(tmp_path / "out" / "base"))
    assert (own.commit, own.revision) == ("abc", None), "the folder within the export has no revisions"


def test_the_embedded_models_origin_and_licence_are_known(tiny_run: Path, tmp_path: Path) -> None:
    base = base_of(nograd.load_run(tiny_run), Source("smollm2-135m", tmp_path), None)
    assert (base.origin, base.license, base.converted) == (
        "HuggingFaceTB/SmolLM2-135M-Instruct",
        "Apache-2.0",
        True,
    )


@pytest.mark.parametrize("format", ["peft", "merged"])
def test_a_failed_verification_leaves_nothing(
    tiny_run: Path, tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(verify, "TOLERANCE", 0.0)
    command = ["export", str(tiny_run), "--format", format, "--out", str(tmp_path / "out")]
    assert main(command) == 2
    assert "nothing was exported" in capsys.readouterr().err
    assert not any(tmp_path.iterdir())
    nograd.export_run(tiny_run, tmp_path / "out", format="npz")
    before = sorted(tmp_path.rglob("*"))
    assert main([*command, "--force"]) == 2
    assert sorted(tmp_path.rglob("*")) == before, "the earlier export stays"


def test_the_base_within_the_export_is_what_is_verified(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(tuned: Tuned, module: int | None, folder: Path) -> None:
        write_model(tuned, module, folder)
        tensors = load_file(folder / "model.safetensors")
        tensors["model.norm.weight"] *= 1.01
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})

    monkeypatch.setattr(start, "write_model", damaged)
    with pytest.raises(ExportError, match="differ from the engine's"):
        nograd.export_run(tiny_run, tmp_path / "out", with_base=True)


def test_what_the_disk_refuses(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportError, match=r"cannot write .*file"), new_folder(tmp_path / "file" / "out"):
        pass


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"format": "gguf"}, "unknown format 'gguf'"),
        ({"dtype": "int8"}, "unknown dtype 'int8'"),
        ({"stages": ["anwser"]}, "unknown stage 'anwser'; did you mean 'answer'"),
        ({"generation": 4}, "generation = 4 was asked for, but .* has 3"),
        ({"generation": -1}, "generation = -1 was asked for"),
        ({"format": "npz", "dtype": "bfloat16"}, "npz holds float32"),
        ({"format": "merged", "with_base": True}, "with_base is for the format 'peft'"),
    ],
)
def test_mistakes_end_in_a_sentence(tiny_run: Path, tmp_path: Path, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(NogradError, match=sentence):
        nograd.export_run(tiny_run, tmp_path / "out", **options)
    assert not any(tmp_path.iterdir())


def test_a_run_without_a_model_is_refused(tmp_path: Path) -> None:
    run_config(load_config(None, ["evaluator=synthetic", "search.generations=2"]), tmp_path / "run")
    with pytest.raises(NogradError, match="'synthetic', which has no language model to export"):
        nograd.export_run(tmp_path / "run", tmp_path / "out")
    with pytest.raises(RunError, match="holds no run"):
        nograd.export_run(tmp_path, tmp_path / "out")


def test_other_weights_are_refused(tiny_run: Path, tmp_path: Path) -> None:
    model = Path(nograd.load_run(tiny_run).config.model.spec) / "model.safetensors"
    before = model.read_bytes()
    try:
        model.write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
        with pytest.raises(RunError, match="put the weights back that it ran with"):
            nograd.export_run(tiny_run, tmp_path / "out")
    finally:
        model.write_bytes(before)


@given(st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=4, unique=True))
@settings(deadline=None)
def test_folder_names_are_safe_and_distinct(stages: list[str]) -> None:
    try:
        names = folder_names(stages)
    except ExportError:  # two of them would share a folder
        return
    assert len(set(names)) == len(stages)
    for name in names:
        assert re.fullmatch(r"[A-Za-z0-9_-]+", name)
        torch.nn.ModuleDict({name: torch.nn.Identity()})


def test_names_that_torch_or_the_base_want_are_changed() -> None:
    assert folder_names(["planner", "base", "update", "a b"]) == ["planner", "base_", "update_", "a_b"]
    with pytest.raises(ExportError, match="'a b' and 'a/b' would both go to the folder a_b"):
        folder_names(["a b", "a/b"])


@pytest.mark.real
def test_the_embedded_model(tmp_path: Path) -> None:
    from nograd.assets import cache_dir
    from nograd.export.adapters import write_adapter

    source = find_model("smollm2-135m")
    architecture, weights = load_weights(source.folder, torch.float32, CPU)
    spec = SubspaceSpec(4, 32)
    subspace = build_subspace(architecture, weights, spec, "144c4f6518e28433", cache_dir() / "subspaces")
    theta = np.random.default_rng(1).normal(scale=0.3, size=(4, 32)).astype(np.float32)
    tuned = Tuned(("a", "b", "c", "d"), theta, source, architecture, subspace)
    base = Base(source.name, None, "", str(source.folder), None, str(source.folder), None, None, True)
    write_adapter(tuned, 3, tmp_path / "d", base)
    prompts = chat_prompts(source.folder, source.name)
    checks = verify_adapters(tuned, {3: tmp_path / "d"}, prompts, True, source.folder)
    assert checks[3].difference < 1e-3
    assert checks[3].moved > 1
