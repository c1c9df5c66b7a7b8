"""The configuration: defaults, TOML, settings, and every mistake at once."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nograd.errors import ConfigError
from nograd.run.config import RunConfig, results_bearing, results_hash
from nograd.run.config_source import load_config, make_config, to_toml
from nograd.search.arms import parse_arm

counts = st.integers(1, 10**6)
numbers = st.floats(1e-12, 1e12)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
clips = numbers | st.just(float("inf"))


def tables(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


configs = tables(
    seed=st.integers(-(2**63), 2**63),
    evaluator=names,
    model=tables(spec=names, revision=names, dtype=st.sampled_from(["auto", "float32", "bfloat16"])),
    tasks=tables(family=names, batch=counts),
    agent=tables(attempts=counts, token_limits=tables(planner=counts, caller=counts)),
    subspace=tables(dim=counts, basis=st.sampled_from(["svd", "random", "matched"]), injection=numbers),
    search=tables(
        arm=st.sampled_from(["uniform", "hard_noisy:q=0.25,floor=1", "lock:module=caller"]),
        pairs=counts,
        sigma=numbers,
        clip=clips | st.dictionaries(names, clips, min_size=1, max_size=4),
        credit_rate=st.floats(0, 1),
    ),
    reward=tables(tool=st.floats(0, 10), shaping=st.floats(0, 10)),
    execution=tables(threads=counts, progress=st.booleans(), track=st.just("tensorboard")),
)


@settings(deadline=None)
@given(values=configs)
@example(values={"model": {"spec": "\x7f\"\\\n\r\t'é😀"}, "search": {"clip": {"a.b \x00": 1.0}}})
def test_toml_round_trip(values: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    config = make_config(values)
    path = tmp_path_factory.getbasetemp() / "round_trip.toml"
    path.write_bytes(to_toml(config).encode())
    again = load_config(path)
    assert again == config
    assert to_toml(again) == to_toml(config)
    assert results_hash(again) == results_hash(config)


def test_defaults_are_the_design_s() -> None:
    config = load_config()
    search = config.search
    assert (search.sigma, search.lr, search.clip, search.pairs, search.generations) == (0.3, 0.3, 0.5, 4, 45)
    assert (config.subspace.dim, config.subspace.injection, config.search.credit_rate) == (32, 1.0, 0.2)
    reward = config.reward
    assert (reward.tool, reward.call, reward.attempt_cost, reward.shaping) == (0.15, 0.15, 0.03, 0.5)
    assert config.agent.attempts == 2
    assert config == RunConfig()


@pytest.mark.parametrize(("family", "batch"), [("in_house", 16), ("bfcl", 12), ("bfcl_echo", 12)])
def test_the_batch_follows_the_family_unless_set(family: str, batch: int) -> None:
    assert load_config(None, [f"tasks.family={family}"]).tasks.batch == batch
    assert load_config(None, [f"tasks.family={family}", "tasks.batch=5"]).tasks.batch == 5


def test_settings_override_the_file(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text('seed = 7\n[search]\nsigma = 0.1\nlr = 0.2\narm = "soft"\n[model]\nrevision = "x"\n')
    config = load_config(path, ["search.sigma=1", "search.arm=lock:module=caller", "model.revision="])
    assert (config.seed, config.search.sigma, config.search.lr) == (7, 1.0, 0.2)
    assert config.search.arm == parse_arm("lock:module=caller").label
    assert config.model.revision is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12e5", "12e5"),
        ("2024-01-01", "2024-01-01"),
        ("true", "true"),
        ("'a b'", "a b"),
        ('"7"', "7"),
        ("a=b", "a=b"),
    ],
)
def test_text_settings_stay_text(text: str, value: str) -> None:
    assert load_config(None, [f"model.revision={text}"]).model.revision == value


def test_a_clip_table_from_settings() -> None:
    config = load_config(None, ["search.clip.caller=2", "search.clip.planner=inf"])
    assert config.search.clip == {"caller": 2.0, "planner": float("inf")}


def test_all_mistakes_are_reported_at_once(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text(
        "sigma = 0.3\nsead = 1\n[search]\nsigm = 0.2\npairs = 0\nlr = true\nclip = -1\n"
        'arm = "sotf"\n[model]\ndtype = "float8"\n[tasks]\nbatch = 1.5\n[execution]\ndevice = "tpu"\n'
    )
    with pytest.raises(ConfigError) as refused:
        load_config(path)
    heading, *lines = str(refused.value).split("\n")
    assert heading == "10 settings cannot be used:"
    expected = [
        "sigma = 0.3: unknown key; did you mean search.sigma?",
        "sead = 1: unknown key; did you mean seed?",
        "search.sigm = 0.2: unknown key; did you mean search.sigma?",
        "search.pairs = 0: must be greater than or equal to 1",
        "search.lr = True: must be a valid number",
        "search.clip = -1: must be a number greater than 0, or a table of such numbers by module name",
        "search.arm = 'sotf': unknown scheme 'sotf'; did you mean 'soft'?",
        "model.dtype = 'float8': must be 'auto', 'float32', 'bfloat16' or 'float16'",
        "tasks.batch = 1.5: must be a valid integer",
        "execution.device = 'tpu': must be 'auto', 'cpu' or 'cuda'",
    ]
    for wanted in expected:
        assert any(line.strip().startswith(wanted) for line in lines), wanted


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "0", "true", "'0.3'"])
def test_sigma_is_a_finite_positive_number(value: str) -> None:
    with pytest.raises(ConfigError, match=r"^search\.sigma = "):
        load_config(None, [f"search.sigma={value}"])


@pytest.mark.parametrize("value", ["nan", "0", "true", "{}", "{a = 0}", "{a = true}", "[1]"])
def test_a_clip_is_positive(value: str) -> None:
    with pytest.raises(ConfigError, match=r"^search\.clip = "):
        load_config(None, [f"search.clip={value}"])


@pytest.mark.parametrize("setting", ["seed", "=3", "search.=3", ".sigma=3", "search..sigma=3"])
def test_what_is_no_setting_says_how_to_write_one(setting: str) -> None:
    with pytest.raises(ConfigError, match=r"write it as section\.key=value"):
        load_config(None, [setting])


def test_an_unknown_key_far_from_all_lists_its_section() -> None:
    with pytest.raises(
        ConfigError, match=r"reward\.zzz = 1: unknown key; known here: tool, call, attempt_cost, shaping$"
    ):
        load_config(None, ["reward.zzz=1"])


def test_unreadable_files_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load_config(tmp_path / "absent.toml")
    (tmp_path / "bad.toml").write_text("seed = \n")
    with pytest.raises(ConfigError, match="not valid TOML"):
        load_config(tmp_path / "bad.toml")


def test_results_do_not_depend_on_execution_and_do_on_all_else() -> None:
    base = load_config()
    assert results_hash(load_config(None, ["execution.threads=2", "execution.device=cpu"])) == results_hash(
        base
    )
    assert "execution" not in results_bearing(base)
    for setting in (
        "seed=2",
        "model.revision=x",
        "search.clip=inf",
        "agent.token_limits.caller=33",
        "reward.shaping=0",
    ):
        assert results_hash(load_config(None, [setting])) != results_hash(base)


def test_the_values_given_are_not_changed() -> None:
    values = {"search": {"clip": {"caller": 1}}}
    before = copy.deepcopy(values)
    make_config(values)
    assert values == before
