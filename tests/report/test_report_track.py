"""TensorBoard gets the scalars of the record, also across a resumed run."""

from __future__ import annotations

from pathlib import Path

import pytest

from nograd.run.config_source import load_config
from nograd.run.load import load_run
from nograd.run.start import run_config
from nograd.run.track import FOLDER

SETTINGS = ["evaluator=synthetic", "search.arm=hard", "search.generations=5"]


def scalars(path: Path) -> dict[str, list[tuple[int, float]]]:
    event_accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = event_accumulator.EventAccumulator(str(path / FOLDER))
    events.Reload()
    return {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def test_scalars_are_those_of_the_record_and_resume_adds_the_rest(tmp_path: Path) -> None:
    tracked = load_config(None, [*SETTINGS, "execution.track=tensorboard"])

    def stop(record: object) -> None:
        if getattr(record, "generation", 0) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_config(tracked, tmp_path, on_generation=stop)
    run_config(tracked, tmp_path, resume=True)
    run, found = load_run(tmp_path), scalars(tmp_path)
    assert found["success"] == [(g, pytest.approx(v)) for g, v in enumerate(run.array("success"))]
    applied = run.array("step_applied")[:, run.modules.index("caller")]
    assert [v for _, v in found["step_applied/caller"]] == pytest.approx(applied.tolist())
    assert {"metrics/tool_accuracy", "counts/rollouts", "fitness", "seconds"} <= set(found)


def test_without_tracking_there_is_nothing(tmp_path: Path) -> None:
    run_config(load_config(None, SETTINGS), tmp_path)
    assert not (tmp_path / FOLDER).exists()
