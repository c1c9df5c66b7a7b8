"""Loading models from every kind of source, without the network where a cache has them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import huggingface_hub.constants
import numpy as np
import pytest
import torch
from gguf import GGUFWriter
from hub_server import COMMIT, Hub, hub
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM

from nograd.errors import ConfigError, ModelError
from nograd.llm import fingerprint as fingerprints
from nograd.llm import gguf as gguf_module
from nograd.llm.chat import Message
from nograd.llm.fingerprint import fingerprint
from nograd.llm.loading import load_model, pick_device, pick_dtype
from nograd.llm.sources import MODELS, find_model

TEMPLATE = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
SPECIAL = ["<unk>", "</s>", "<|end|>", "<|user|>", "<|system|>", "<|assistant|>"]
FIRST_LETTER = len(SPECIAL)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Tests keep what they cache apart, but those of the embedded model, which would fetch it again."""
    if not request.node.get_closest_marker("real"):
        monkeypatch.setenv("NOGRAD_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model folder as the hub has them: a tiny Llama with a tokenizer of letters."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=40,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=64,
        bos_token_id=None,
        eos_token_id=[1, 5],
    )
    path = tmp_path / "tiny"
    LlamaForCausalLM(config).save_pretrained(path)
    letters = {char: FIRST_LETTER + i for i, char in enumerate("abcdefghijklmnopqrstuvwxyz")}
    tokenizer = Tokenizer(models.WordLevel({"<unk>": 0, **letters}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    vocab = json.loads(tokenizer.to_str())
    vocab["model"]["vocab"] |= {text: i for i, text in enumerate(SPECIAL)}
    tokenizer = Tokenizer.from_str(json.dumps(vocab))
    tokenizer.add_special_tokens([AddedToken(text, normalized=False) for text in SPECIAL])
    tokenizer.save(str(path / "tokenizer.json"))
    settings = {"eos_token": {"content": "</s>"}, "unk_token": "<unk>", "chat_template": TEMPLATE}
    (path / "tokenizer_config.json").write_text(json.dumps(settings))
    (path / "generation_config.json").write_text(json.dumps({"eos_token_id": 3, "repetition_penalty": 9.0}))
    return path


def test_local_folder(folder: Path) -> None:
    model = load_model(str(folder), dtype="float32", device="cpu")
    assert (model.name, model.revision) == ("tiny", None)
    assert (model.dtype, model.device.type) == (torch.float32, "cpu")
    stored = load_file(folder / "model.safetensors")
    assert torch.equal(model.weights.layers[1].q, stored["model.layers.1.self_attn.q_proj.weight"])
    assert model.chat.encode_chat([Message("user", "ab")]) == [3, FIRST_LETTER, FIRST_LETTER + 1, 2]
    assert model.chat.eos_ids == {1, 2, 3, 5}, "both configurations, the eos token, the turn's end"
    assert model.fingerprint == fingerprint([folder / "model.safetensors"])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_dtype_is_that_of_all_weights(folder: Path, dtype: str) -> None:
    weights = load_model(str(folder), dtype=dtype, device="cpu").weights  # type: ignore[arg-type]
    expected = getattr(torch, dtype)
    layer = weights.layers[0]
    assert {t.dtype for t in (weights.embedding, weights.head, layer.q, layer.mlp_norm)} == {expected}
    assert weights.inverse_frequencies.dtype == torch.float32


def test_weights_do_not_change_with_the_file(folder: Path) -> None:
    model = load_model(str(folder), dtype="float32", device="cpu")
    before = model.weights.embedding.clone()
    size = (folder / "model.safetensors").stat().st_size
    with (folder / "model.safetensors").open("r+b") as file:
        file.write(b"\xff" * size)
    assert torch.equal(model.weights.embedding, before)


def test_shards_are_put_together(folder: Path) -> None:
    whole = load_model(str(folder), dtype="float32", device="cpu")
    shard(folder)
    parts = load_model(str(folder), dtype="float32", device="cpu")
    assert torch.equal(parts.weights.head, whole.weights.head)
    assert parts.fingerprint == whole.fingerprint, "splitting into files does not matter"
    (folder / "model-1.safetensors").unlink()
    with pytest.raises(ModelError, match=r"lacks model-1\.safetensors; download"):
        load_model(str(folder), dtype="float32", device="cpu")


def shard(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    names = sorted(tensors)
    index = {}
    for i, part in enumerate((names[:5], names[5:])):
        save_file({name: tensors[name] for name in part}, folder / f"model-{i}.safetensors")
        index |= dict.fromkeys(part, f"model-{i}.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    (folder / "model.safetensors").unlink()


def test_fingerprint_sees_names_shapes_dtypes_and_bytes(tmp_path: Path) -> None:
    base = {"a": torch.arange(6.0), "b": torch.ones(2)}
    variants = [
        base,
        {"a": base["a"], "c": base["b"]},
        {"a": base["a"].reshape(2, 3), "b": base["b"]},
        {"a": base["a"].to(torch.float16), "b": base["b"]},
        {"a": base["a"], "b": torch.zeros(2)},
        {"a": base["a"]},
    ]
    found = set()
    for i, tensors in enumerate(variants):
        save_file(tensors, tmp_path / f"{i}.safetensors", metadata={"note": str(i)})
        found.add(fingerprint([tmp_path / f"{i}.safetensors"]))
    assert len(found) == len(variants)
    save_file(base, tmp_path / "again.safetensors")
    assert fingerprint([tmp_path / "again.safetensors"]) in found, "metadata does not matter"


def test_fingerprint_is_remembered_until_the_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.safetensors"
    save_file({"a": torch.ones(2)}, file)
    first = fingerprint([file])
    calls = []
    hash_tensors = fingerprints._hash_tensors
    monkeypatch.setattr(fingerprints, "_hash_tensors", lambda files: calls.append(1) or hash_tensors(files))
    assert fingerprint([file]) == first
    assert calls == []
    save_file({"a": torch.zeros(2)}, file)
    assert fingerprint([file]) != first
    assert calls == [1]


def test_damaged_weights(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-10])
    with pytest.raises(ModelError, match=r"model\.safetensors cannot be read .*download the model again"):
        load_model(str(folder))


def test_pickles_are_never_opened(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ModelError, match=r"only pickles.*pytorch_model\.bin.*safetensors"):
        load_model(str(folder))


def test_remote_code_is_never_run(folder: Path, tmp_path: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "mine", "auto_map": {"AutoConfig": "mine.C", "AutoModelForCausalLM": "mine.M"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "mine.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    with pytest.raises(ModelError, match="'mine'"):
        load_model(str(folder))
    assert not (tmp_path / "ran").exists()


def test_template_file_comes_before_the_settings(folder: Path) -> None:
    (folder / "chat_template.jinja").write_text("x{{ messages[0].content }}")
    chat = load_model(str(folder), dtype="float32").chat
    assert chat.encode_chat([Message("user", "ab")])[1:] == [FIRST_LETTER, FIRST_LETTER + 1]


def test_the_default_of_several_templates(folder: Path) -> None:
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    named = [{"name": "rag", "template": "r"}, {"name": "default", "template": TEMPLATE}]
    (folder / "tokenizer_config.json").write_text(json.dumps({**settings, "chat_template": named}))
    assert load_model(str(folder), dtype="float32").chat.encode_chat([Message("user", "a")])[0] == 3


def test_no_template(folder: Path) -> None:
    (folder / "tokenizer_config.json").write_text("{}")
    with pytest.raises(ModelError, match="tiny has no chat template"):
        load_model(str(folder))


def test_no_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match=r"no tokenizer\.json.*add"):
        load_model(str(folder))


def test_added_tokens_declared_only_in_the_settings(folder: Path) -> None:
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings["added_tokens_decoder"] = {"32": {"content": "<|tool|>", "special": True, "normalized": False}}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    chat = load_model(str(folder), dtype="float32").chat
    assert chat.vocab_size == 33
    assert 32 not in chat.encode_text("<|tool|>")


def test_tokenizer_of_another_model(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    tensors = load_file(folder / "model.safetensors")
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        tensors[name] = tensors[name][:20].clone()
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({**config, "vocab_size": 20}))
    with pytest.raises(ModelError, match="ids up to 31, its embedding only 20 rows"):
        load_model(str(folder))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("smolm2-135m", "did you mean 'smollm2-135m'.*owner/name"),
        ("no/such/folder", "no folder and no Hugging Face id"),
        ("missing.gguf", r"no file missing\.gguf"),
    ],
)
def test_specs_that_are_nothing(spec: str, message: str) -> None:
    with pytest.raises((ModelError, ConfigError), match=message):
        load_model(spec)


def test_folders_that_hold_no_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="found: none"):
        load_model(str(tmp_path))
    (tmp_path / "a.gguf").touch()
    (tmp_path / "b.gguf").touch()
    with pytest.raises(ModelError, match=r"found: a\.gguf, b\.gguf"):
        load_model(str(tmp_path))
    (tmp_path / "b.gguf").unlink()
    with pytest.raises(ModelError, match=r"cannot read .*a\.gguf"):
        load_model(str(tmp_path))


def test_revisions_belong_to_hub_ids(folder: Path) -> None:
    for spec in ("smollm2-135m", str(folder)):
        with pytest.raises(ModelError, match="has no revisions"):
            load_model(spec, revision="main")


@pytest.fixture
def tiny_hub(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    """A hub with the tiny model, files that must not be fetched, and an empty local hub cache."""
    (folder / "pytorch_model.bin").write_bytes(b"pickle")
    (folder / "consolidated.safetensors").write_bytes(b"twice")
    (folder / "onnx").mkdir()
    (folder / "onnx" / "config.json").write_text("{}")
    with hub("someone/tiny", folder) as server:
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", server.url)
        template = server.url + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
        yield server


def test_hub_model_is_fetched_once(tiny_hub: Hub) -> None:
    model = load_model("someone/tiny", dtype="float32", device="cpu")
    assert (model.name, model.revision) == ("someone/tiny", COMMIT)
    assert torch.equal(
        model.weights.head, load_file(tiny_hub.folder / "model.safetensors")["lm_head.weight"]
    )
    fetched = {path.rpartition("/")[2] for path in tiny_hub.requests if "/resolve/" in path}
    assert {"model.safetensors", "tokenizer.json"} <= fetched
    assert not any("onnx" in path or path.endswith((".bin", "consolidated.safetensors")) for path in fetched)
    tiny_hub.requests.clear()
    again = load_model("someone/tiny", dtype="float32", device="cpu")
    pinned = load_model("someone/tiny", revision=COMMIT, dtype="float32", device="cpu")
    assert again.fingerprint == pinned.fingerprint == model.fingerprint
    assert tiny_hub.requests == [], "the network is not asked for what the cache holds"


@pytest.mark.usefixtures("tiny_hub")
def test_an_unfinished_download_is_finished(tmp_path: Path) -> None:
    load_model("someone/tiny", dtype="float32", device="cpu")
    (tmp_path / "hub" / "models--someone--tiny" / "snapshots" / COMMIT / "model.safetensors").unlink()
    load_model("someone/tiny", dtype="float32", device="cpu")


def test_an_unsupported_hub_model_is_refused_before_its_weights(tiny_hub: Hub) -> None:
    (tiny_hub.folder / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    for _ in range(2):
        with pytest.raises(ModelError, match="'gpt2'"):
            load_model("someone/tiny")
    assert not any(path.endswith(".safetensors") for path in tiny_hub.requests)


def test_a_hub_model_with_pickles_only_is_refused(tiny_hub: Hub) -> None:
    for file in tiny_hub.folder.glob("*.safetensors"):
        file.unlink()
    with pytest.raises(ModelError, match=r"no \.safetensors weights \(pickled ones are never opened\)"):
        load_model("someone/tiny")
    assert not any(path.endswith(".bin") for path in tiny_hub.requests)


@pytest.mark.usefixtures("tiny_hub")
def test_a_hub_model_that_is_not_there() -> None:
    with pytest.raises(ModelError, match=r"'someone/other' cannot be downloaded at revision 'main'.*check"):
        load_model("someone/other")


def test_a_hub_that_cannot_be_reached(tiny_hub: Hub) -> None:
    tiny_hub.shutdown()
    tiny_hub.server_close()
    with pytest.raises(ModelError, match="'someone/tiny' cannot be downloaded"):
        load_model("someone/tiny")


def test_device_and_dtype_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = torch.device("cpu")
    for capabilities, expected in (
        ({"avx512_bf16": True}, torch.bfloat16),
        ({"amx_bf16": True, "avx512_bf16": False}, torch.bfloat16),
        ({"bf16": True}, torch.bfloat16),
        ({"avx512_f": True, "avx512_bf16": False}, torch.float32),
    ):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda value=capabilities: value, raising=False)
        assert pick_dtype("auto", cpu) == expected
        assert pick_dtype("float32", cpu) == torch.float32
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert pick_device("auto") == cpu
    with pytest.raises(ModelError, match="no CUDA device"):
        pick_device("cuda")
    with pytest.raises(ConfigError, match="unknown device 'mps'"):
        pick_device("mps")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="unknown dtype 'float8'"):
        pick_dtype("float8", cpu)  # type: ignore[arg-type]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert pick_device("auto").type == pick_device("cuda").type == "cuda"
    assert pick_device("cpu") == cpu
    assert pick_dtype("auto", torch.device("cuda")) == torch.bfloat16


def write_tiny_gguf(path: Path) -> dict[str, np.ndarray]:
    """A one-layer Llama with a byte-level tokenizer as a GGUF file; returns its tensors."""
    writer = GGUFWriter(path, "llama")
    writer.add_block_count(1)
    writer.add_context_length(64)
    writer.add_embedding_length(32)
    writer.add_feed_forward_length(64)
    writer.add_head_count(2)
    writer.add_head_count_kv(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(16)
    writer.add_rope_freq_base(10_000.0)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = ["<unk>", "<s>", "</s>", *alphabet, "ab", "12"]
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([3, 3, 3, *[1] * (len(alphabet) + 2)])
    writer.add_token_merges(["a b", "1 2"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_chat_template("{% for m in messages %}<s>{{ m.content }}</s>{% endfor %}")
    shapes = {
        "token_embd.weight": (len(tokens), 32),
        "output_norm.weight": (32,),
        "blk.0.attn_norm.weight": (32,),
        "blk.0.attn_q.weight": (32, 32),
        "blk.0.attn_k.weight": (16, 32),
        "blk.0.attn_v.weight": (16, 32),
        "blk.0.attn_output.weight": (32, 32),
        "blk.0.ffn_norm.weight": (32,),
        "blk.0.ffn_gate.weight": (64, 32),
        "blk.0.ffn_up.weight": (64, 32),
        "blk.0.ffn_down.weight": (32, 64),
    }
    random = np.random.default_rng(0)
    tensors = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    for name, tensor in tensors.items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return tensors


def test_gguf_is_converted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model").mkdir()
    file = tmp_path / "model" / "tiny.gguf"
    tensors = write_tiny_gguf(file)
    model = load_model(str(file), dtype="float32", device="cpu")
    assert model.name == "tiny.gguf"
    assert model.architecture.tied_embeddings
    assert torch.equal(model.weights.layers[0].down, torch.from_numpy(tensors["blk.0.ffn_down.weight"]))
    assert torch.equal(model.weights.layers[0].v, torch.from_numpy(tensors["blk.0.attn_v.weight"]))
    assert model.chat.eos_ids == {2}
    assert [model.chat.decode([i]) for i in model.chat.encode_text("ab 12")] == ["ab", " ", "1", "2"]
    monkeypatch.setattr(gguf_module, "_convert", lambda *_: pytest.fail("converted again"))
    assert load_model(str(file.parent), dtype="float32").fingerprint == model.fingerprint


def test_a_gguf_beside_its_config(tmp_path: Path) -> None:
    write_tiny_gguf(tmp_path / "tiny.gguf")
    (tmp_path / "config.json").write_text("{}")
    assert find_model(str(tmp_path)).name == "tiny.gguf"


def test_a_failed_conversion_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tiny_gguf(tmp_path / "tiny.gguf")
    monkeypatch.setattr(gguf_module, "save_file", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(ModelError, match=r"cannot be unpacked .*disk full.*NOGRAD_CACHE"):
        load_model(str(tmp_path / "tiny.gguf"))
    models_cache = tmp_path / "cache" / "models"
    assert [path for path in models_cache.iterdir() if path.suffix != ".lock"] == []


@pytest.mark.real
def test_embedded_model_is_what_it_should_be() -> None:
    model = load_model("smollm2-135m", dtype="float32", device="cpu")
    parts = [model.weights.embedding, model.weights.final_norm]
    parts += [t for layer in model.weights.layers for t in vars(layer).values() if t is not None]
    assert sum(part.numel() for part in parts) == MODELS["smollm2-135m"].parameters
    assert model.weights.head is model.weights.embedding
    assert model.architecture.max_positions == 8192
    assert model.fingerprint == "144c4f6518e28433a9993f00051d7758725abb4934905beaa3006046436e0ce5"


@pytest.mark.real
def test_embedded_model_loads_fast_and_without_transformers() -> None:
    find_model("smollm2-135m")
    code = (
        "import sys, time, torch, nograd.llm.loading as l\n"
        "start = time.perf_counter(); l.load_model('smollm2-135m')\n"
        "print(time.perf_counter() - start, 'transformers' in sys.modules)"
    )
    seconds, imported = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert imported == "False"
    assert float(seconds) < 10, "0.2 s when measured; a wide margin for busy machines"


def test_nothing_is_written_beside_the_model(folder: Path) -> None:
    files = set(folder.iterdir())
    load_model(str(folder), dtype="float32")
    assert set(folder.iterdir()) == files


def test_a_cache_that_cannot_be_written_is_done_without(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("NOGRAD_CACHE", str(tmp_path / "file"))
    assert load_model(str(folder), dtype="float32").fingerprint == fingerprint([folder / "model.safetensors"])
