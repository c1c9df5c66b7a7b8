"""The engine against a plain loop over transformers' models, one request and one token at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from nograd.llm.chat import Message
from nograd.llm.engine import Engine
from nograd.llm.loading import load_chat, load_weights
from nograd.llm.requests import Completion, CompletionRequest, Request, Result, Score, ScoreRequest
from nograd.llm.sources import find_model
from nograd.llm.subspace import Subspace, SubspaceSpec
from tiny_models import (
    CPU,
    EOS,
    LAYOUTS,
    MODULES,
    Tiny,
    merged,
    plain_completion,
    plain_score,
    save_tiny,
    thetas,
    tiny,
)

LIMIT = 192
Make = Callable[..., Tiny]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    return tiny(tmp_path_factory.mktemp("model"), {})


@pytest.fixture(scope="module")
def subspace(model: Tiny) -> Subspace:
    return model.subspace()


def tokens(seed: int, count: int) -> tuple[int, ...]:
    return tuple(np.random.default_rng(seed).integers(3, 61, count).tolist())


def mixed_requests(size: int, count: int = 24, seed: int = 0) -> list[Request]:
    """Completions and scores under several θ and modules, with prompts that share beginnings."""
    draw = np.random.default_rng(seed)
    choices = thetas(4, size, seed)
    common = [tokens(seed + 1, 70), tokens(seed + 2, 33), ()]
    requests: list[Request] = []
    for i in range(count):
        shared = common[draw.integers(3)]
        prompt = shared[: draw.integers(len(shared) + 1)] + tokens(1000 + i, int(draw.integers(1, 40)))
        module, theta = int(draw.integers(MODULES)), choices[draw.integers(4)]
        if draw.integers(2):
            requests.append(CompletionRequest(module, theta, prompt, int(draw.integers(1, 25))))
        else:
            requests.append(ScoreRequest(module, theta, prompt, tokens(2000 + i, int(draw.integers(1, 9)))))
    return requests


def check_against_plain_loop(
    model: Tiny,
    subspace: Subspace,
    requests: Sequence[Request],
    found: Sequence[Result],
    eos_ids: frozenset[int] = EOS,
) -> None:
    oracles: dict[tuple[int, bytes], Any] = {}
    for request, result in zip(requests, found, strict=True):
        key = (request.module, request.theta)
        if key not in oracles:
            oracles[key] = merged(model.hub, model.architecture, subspace, *key)
        if isinstance(request, CompletionRequest):
            expected, finish = plain_completion(oracles[key], request, eos_ids)
            assert result == Completion(tuple(expected), finish)  # type: ignore[arg-type]
        else:
            assert isinstance(request, ScoreRequest)
            assert isinstance(result, Score)
            scores = plain_score(oracles[key], request)
            assert result.log_probabilities.dtype == np.float64
            assert np.abs(result.log_probabilities - scores).max() < 1e-4


def bits(result: Result) -> object:
    """A result so that equal means: the same bits."""
    if isinstance(result, Score):
        return (result.log_probabilities.tobytes(), result.too_long)
    return result


@pytest.mark.parametrize("seed", range(3))
def test_mixed_batches(seed: int, model: Tiny, subspace: Subspace) -> None:
    requests = mixed_requests(subspace.size, seed=seed)
    found = model.engine(subspace).run(requests)
    check_against_plain_loop(model, subspace, requests, found)
    completions = [c for c in found if isinstance(c, Completion)]
    assert {c.finish for c in completions} == {"stop", "length"}
    assert len({c.tokens for c in completions}) > 5


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "llama"])
def test_every_layout(layout: str, tmp_path: Path) -> None:
    model = tiny(tmp_path, LAYOUTS[layout])
    subspace = model.subspace()
    requests = mixed_requests(subspace.size, count=8, seed=7)
    check_against_plain_loop(model, subspace, requests, model.engine(subspace).run(requests))


def test_plain_operations_agree_with_the_kernels(model: Tiny, subspace: Subspace) -> None:
    requests = mixed_requests(subspace.size, count=24, seed=3)
    fast, plain = (model.engine(subspace, plain=p).run(requests) for p in (False, True))
    for one, other in zip(fast, plain, strict=True):
        if isinstance(one, Score):
            assert isinstance(other, Score)
            assert np.abs(one.log_probabilities - other.log_probabilities).max() < 1e-4
        else:
            assert one == other


def test_per_layer_coefficients(model: Tiny) -> None:
    subspace = model.subspace(SubspaceSpec(MODULES, 4, per_layer=True))
    requests = mixed_requests(subspace.size, count=12, seed=5)
    check_against_plain_loop(model, subspace, requests, model.engine(subspace).run(requests))


def first_tokens(engine: Engine, subspace: Subspace, prompt: tuple[int, ...], count: int) -> tuple[int, ...]:
    """What the model writes after a prompt if nothing ends it."""
    free = Engine(engine.transformer, engine.perturbation, frozenset(), 4096)
    result = free.run([CompletionRequest(0, thetas(1, subspace.size)[0], prompt, count)])[0]
    assert isinstance(result, Completion)
    return result.tokens


def test_several_ends_and_an_end_at_once(model: Tiny, subspace: Subspace) -> None:
    engine = model.engine(subspace)
    zero = thetas(1, subspace.size)[0]
    prompts = [tokens(seed, 12) for seed in range(8)]
    written = [first_tokens(engine, subspace, prompt, 10) for prompt in prompts]
    eos_ids = frozenset({written[0][0], written[1][2], written[2][4]})
    requests = [CompletionRequest(0, zero, prompt, 10) for prompt in prompts]
    found = model.engine(subspace, eos_ids=eos_ids).run(requests)
    assert found[0] == Completion((), "stop"), "ended before anything was written"
    for completion, whole in zip(found, written, strict=True):
        end = next((i for i, token in enumerate(whole) if token in eos_ids), None)
        expected = Completion(whole, "length") if end is None else Completion(whole[:end], "stop")
        assert completion == expected
    check_against_plain_loop(model, subspace, requests, found, eos_ids)


@pytest.mark.parametrize("count", [0, 1, 2, 33])
def test_limits(count: int, model: Tiny, subspace: Subspace) -> None:
    engine = model.engine(subspace, eos_ids=frozenset())
    prompts = [tokens(seed, 31) for seed in range(3)]
    requests = [CompletionRequest(1, thetas(1, subspace.size)[0], prompt, count) for prompt in prompts]
    found = engine.run(requests)
    assert [(len(c.tokens), c.finish) for c in found] == [(count, "length")] * 3  # type: ignore[union-attr]
    check_against_plain_loop(model, subspace, requests, found, frozenset())
    assert engine.counts.decode_passes <= max(0, count - 1), "no pass whose output nobody wants"


def test_an_end_beyond_the_limit_does_not_count(model: Tiny, subspace: Subspace) -> None:
    """A completion that is cut right before its end token was cut."""
    prompt = tokens(3, 9)
    written = first_tokens(model.engine(subspace), subspace, prompt, 4)
    assert written[3] not in written[:3]
    engine = model.engine(subspace, eos_ids=frozenset({written[3]}))
    zero = thetas(1, subspace.size)[0]
    found = engine.run([CompletionRequest(0, zero, prompt, n) for n in (3, 4)])
    assert found == [Completion(written[:3], "length"), Completion(written[:3], "stop")]


def test_related_prompts(model: Tiny, subspace: Subspace) -> None:
    """Prompts that are prefixes of others, come twice, or are another's prompt and target."""
    zero, theta = thetas(2, subspace.size)
    long = tokens(1, 80)
    requests: list[Request] = []
    for cut in (1, 2, 31, 32, 33, 63, 64, 65, 80):
        for each in (zero, theta):
            requests.append(CompletionRequest(0, each, long[:cut], 6))
            requests.append(ScoreRequest(0, each, long[:cut], long[cut : cut + 7] or tokens(4, 5)))
    requests += [requests[4], requests[5], requests[4]]
    requests += [ScoreRequest(0, zero, long[:20], long[20:40]), CompletionRequest(0, zero, long[:40], 6)]
    requests += [ScoreRequest(0, zero, long[:20], (*long[20:39], 5)), ScoreRequest(0, zero, long[:1], (9,))]
    for order in (1, -1):
        found = model.engine(subspace).run(requests[::order])
        check_against_plain_loop(model, subspace, requests[::order], found)


def test_shared_tokens_are_computed_once(model: Tiny, subspace: Subspace) -> None:
    engine = model.engine(subspace)
    zero, theta = thetas(2, subspace.size)
    long = tokens(1, 60)
    engine.run([ScoreRequest(0, zero, long, (5, 6, 7)), CompletionRequest(0, zero, long, 1)])
    assert engine.counts.tokens_prefilled == 60 + 2, "one prefill for a score and a completion"
    engine.run([CompletionRequest(0, zero, (*long, 8, 9), 1)])
    assert engine.counts.tokens_prefilled == 62 + 2, "the prompt was kept"
    engine.run([CompletionRequest(0, theta, long, 1), CompletionRequest(1, zero, long, 1)])
    assert engine.counts.tokens_prefilled == 64 + 120, "another θ or stage has another cache"
    engine.forget()
    assert engine.counts.tokens_prefilled == 0
    assert engine.pool.available == engine.pool.capacity


def test_too_long_is_an_outcome(model: Tiny, subspace: Subspace) -> None:
    engine = model.engine(subspace, eos_ids=frozenset())
    zero = thetas(1, subspace.size)[0]
    prompt = tokens(2, LIMIT)
    requests: list[Request] = [
        CompletionRequest(0, zero, prompt[:-4], 4),
        CompletionRequest(0, zero, prompt[:-4], 5),
        CompletionRequest(0, zero, (*prompt, 3), 0),
        ScoreRequest(0, zero, prompt[:-4], (3, 4, 5, 6, 7)),
        ScoreRequest(0, zero, prompt[:-4], (3, 4, 5, 6, 7, 8)),
        CompletionRequest(0, zero, prompt[:3], 2),
    ]
    found = engine.run(requests)
    finishes = [r.finish if isinstance(r, Completion) else r.too_long for r in found]
    assert finishes == ["length", "too_long", "too_long", False, True, "length"]
    for index in (1, 2):
        assert found[index] == Completion((), "too_long")
    assert isinstance(found[4], Score)
    assert np.isnan(found[4].mean)
    kept = [0, 5]
    check_against_plain_loop(
        model, subspace, [requests[i] for i in kept], [found[i] for i in kept], frozenset()
    )
    with torch.no_grad():
        ids = torch.tensor([[*prompt[:-4], 3, 4, 5, 6]])
        expected = model.hub(ids).logits[0, -1].double().log_softmax(-1)[7]
    assert isinstance(found[3], Score)
    assert found[3].log_probabilities[-1] == pytest.approx(float(expected), abs=1e-4)


def test_nothing_to_do_costs_nothing(model: Tiny, subspace: Subspace) -> None:
    engine = model.engine(subspace)
    assert engine.run([]) == []
    (score,) = engine.run([ScoreRequest(0, thetas(1, subspace.size)[0], tokens(1, 20), ())])
    assert isinstance(score, Score)
    assert (len(score.log_probabilities), score.too_long) == (0, False)
    assert np.isnan(score.mean)
    assert engine.counts.tokens_prefilled == 0


def test_without_a_perturbation(model: Tiny, subspace: Subspace) -> None:
    """The plain model answers as θ = 0 does, whatever θ a request carries."""
    requests = mixed_requests(subspace.size, seed=4)
    zero = thetas(1, subspace.size)[0]
    plain = model.engine(None).run(requests)
    unperturbed: list[Request] = [
        CompletionRequest(r.module, zero, r.prompt, r.max_tokens)
        if isinstance(r, CompletionRequest)
        else ScoreRequest(r.module, zero, r.prompt, r.target)  # type: ignore[attr-defined]
        for r in requests
    ]
    mine = model.engine(subspace).run(unperturbed)
    assert [bits(r) for r in mine] == [bits(r) for r in plain]


@pytest.mark.parametrize(("budget", "pass_tokens"), [(1, 1024), (1, 7), (300, 33), (None, 64)])
def test_a_batch_that_is_split_has_the_same_bits(
    budget: int | None, pass_tokens: int, model: Tiny, subspace: Subspace
) -> None:
    requests = mixed_requests(subspace.size, count=30, seed=9)
    whole, split = (
        model.engine(subspace, token_budget=40_000),
        model.engine(subspace, token_budget=budget, pass_tokens=pass_tokens),
    )
    expected = [bits(r) for r in whole.run(requests)]
    for _ in range(2):  # with nothing, then with whatever is cached by now
        assert [bits(r) for r in split.run(requests)] == expected
    assert split.counts.prefill_passes > whole.counts.prefill_passes
    split.forget()
    assert split.pool.available == split.pool.capacity


def test_cached_prefixes_have_the_bits_of_fresh_ones(model: Tiny, subspace: Subspace) -> None:
    requests = mixed_requests(subspace.size, count=42, seed=11)
    fresh, engine = (model.engine(subspace, token_budget=40_000) for _ in range(2))
    for first in range(0, 42, 7):
        part = requests[first : first + 7]
        fresh.forget()
        expected = [bits(r) for r in fresh.run(part)]
        assert [bits(r) for r in engine.run(part)] == expected
    before = engine.counts.tokens_prefilled
    again = [bits(r) for r in engine.run(requests)]
    assert engine.counts.tokens_prefilled - before < before / 2
    fresh.forget()
    assert again == [bits(r) for r in fresh.run(requests)]


def test_a_broken_theta_stays_alone(model: Tiny, subspace: Subspace) -> None:
    """NaN coefficients fill pages with NaN; no later sequence in those pages may see it."""
    requests = mixed_requests(subspace.size, count=8, seed=12)
    for plain in (False, True):
        expected = [bits(r) for r in model.engine(subspace, plain=plain).run(requests)]
        engine = model.engine(subspace, plain=plain)
        broken = np.full(subspace.size, np.nan, dtype=np.float32).tobytes()
        sick = [ScoreRequest(m, broken, tokens(m, 150), tokens(5, 8)) for m in range(MODULES)]
        scores = engine.run(sick)
        assert all(np.isnan(s.log_probabilities).all() for s in scores)  # type: ignore[union-attr]
        assert [bits(r) for r in engine.run([*sick, *requests])][MODULES:] == expected
        engine.forget()
        assert [bits(r) for r in engine.run(requests)] == expected


def test_generation_defaults_have_no_influence(tmp_path: Path, subspace: Subspace, model: Tiny) -> None:
    """A repetition penalty in the folder's generation defaults is read by nobody."""
    save_tiny(tmp_path, {})
    (tmp_path / "generation_config.json").write_text('{"repetition_penalty": 9.0, "do_sample": true}')
    other = Tiny(model.hub, *load_weights(tmp_path, torch.float32, torch.device("cpu")))
    requests = mixed_requests(subspace.size, seed=2)
    found = other.engine(subspace).run(requests)
    assert [bits(r) for r in found] == [bits(r) for r in model.engine(subspace).run(requests)]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_gpu_agrees_with_the_cpu(
    tmp_path: Path, model: Tiny, subspace: Subspace, record_property: Callable[[str, object], None]
) -> None:
    """float32 on both; completions may differ only where rounding decided, which is counted and kept rare."""
    torch.backends.cuda.matmul.allow_tf32 = False
    there = tiny(tmp_path, {}, device=torch.device("cuda"))
    requests = mixed_requests(subspace.size, count=60, seed=13)
    pairs = zip(model.engine(subspace).run(requests), there.engine(subspace).run(requests), strict=True)
    differing = 0
    for here, remote in pairs:
        if isinstance(here, Score):
            assert isinstance(remote, Score)
            assert np.abs(here.log_probabilities - remote.log_probabilities).max() < 1e-3
        else:
            differing += here != remote
    record_property("differing_completions", differing)
    assert differing <= 2


@pytest.mark.real
def test_the_embedded_model() -> None:
    """A handful of real prompts, plain and perturbed, against transformers in float32."""
    folder = find_model("smollm2-135m", None).folder
    load: Any = AutoModelForCausalLM.from_pretrained
    model = Tiny(load(folder, dtype=torch.float32).eval(), *load_weights(folder, torch.float32, CPU))
    chat = load_chat(folder, "embedded")
    subspace = model.subspace(SubspaceSpec(MODULES, 8, "random", strength=2.0))
    zero, theta = thetas(2, subspace.size)
    requests: list[Request] = []
    for module, own, question in ((0, zero, "What is 3 + 4?"), (1, theta, "Name the capital of France.")):
        system = Message("system", "Answer in one short sentence.")
        prompt = tuple(chat.encode_chat([system, Message("user", question)]))
        requests.append(CompletionRequest(module, own, prompt, 6))
        requests.append(ScoreRequest(module, own, prompt, tuple(chat.encode_text("It is Paris."))))
    found = model.engine(subspace, eos_ids=chat.eos_ids).run(requests)
    check_against_plain_loop(model, subspace, requests, found, chat.eos_ids)
