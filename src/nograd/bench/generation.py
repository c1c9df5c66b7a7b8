"""The benchmark: one generation in each way, in one process, order rotated; and the machine's limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch

from nograd.agent.scheduler import Scheduler
from nograd.bench import alone
from nograd.bench.adapters import PeftEngine
from nograd.bench.limits import flops_per_output, flops_per_token, product_rate
from nograd.bench.naive import NaiveEngine
from nograd.bench.setting import Setting, build, workload
from nograd.bench.stock import stock_model
from nograd.bench.workload import Measured, Workload, differing, run_one_by_one, run_together
from nograd.llm.engine import Engine
from nograd.llm.loading import DeviceName, DTypeName
from nograd.llm.requests import CompletionRequest
from nograd.llm.sources import find_model

Runner = Callable[[], Measured]
_DECODE_ROWS, _DECODE_TOKENS = 64, 32


@dataclass(frozen=True)
class Way:
    """One way's medians over the repetitions. differing: trajectories unlike nograd's, of the same work."""

    name: str
    seconds: float
    tokens: int
    differing: int | None


@dataclass(frozen=True)
class Report:
    """ways: a row each; figures: the JSON keys of issue and documentation; setting: machine, dtype, threads."""

    ways: tuple[Way, ...]
    figures: Mapping[str, float]
    setting: Mapping[str, Any]


def run_benchmark(
    dtype: DTypeName, device: DeviceName, *, pairs: int, batch: int, repeats: int, say: Callable[[str], None]
) -> Report:
    """Everything that `nograd bench` prints. say: told what each measurement took."""
    started = alone.measure(dtype, device, pairs, batch)
    setting = build(dtype, device, batch)
    model_dtype = setting.engine.transformer.dtype
    runners = _runners(setting, workload(setting, pairs), workload(setting, 4 * pairs))
    taken: dict[str, list[Measured]] = {name: [] for name in runners}
    prefill: list[float] = []
    runners["nograd"]()
    for repeat in range(repeats):
        names = list(runners)
        for name in names[repeat % len(names) :] + names[: repeat % len(names)]:
            taken[name].append(runners[name]())
            say(f"{name}, {repeat + 1} of {repeats}: {taken[name][-1].seconds:.1f} s")
            if name == "nograd":
                prefill.append(_prefill_rate(setting.engine))
    ways = tuple(_way(name, taken[name], taken["nograd"][0]) for name in runners)
    seconds = {way.name: way.seconds for way in ways}
    plain, packed = (
        product_rate(
            setting.engine.transformer.architecture, model_dtype, setting.engine.transformer.device, packed=fast
        )
        for fast in (False, True)
    )
    decode = _decode_rate(setting)
    figures = {
        "naive_over_nograd": seconds["naive"] / seconds["nograd"],
        "peft_over_nograd": seconds["peft"] / seconds["nograd"],
        "naive_float32_over_auto": seconds.get("naive float32", seconds["naive"]) / seconds["nograd"],
        "perturbed_over_unperturbed": seconds["unperturbed"] / seconds["tiny perturbation"],
        "prefill_share": median(prefill) / plain,
        "decode_share": decode / plain,
        "growth_p16_over_p4": seconds["nograd, 4 x pairs"] / seconds["nograd"],
        "start_s": started["start_s"],
        "differing_trajectories": float(_way("naive", taken["naive"], taken["nograd"][0]).differing or 0),
        "peak_memory_bytes": started["peak_memory_bytes"],
        "cache_bytes": started["cache_bytes"],
        "prefill_share_of_packed": median(prefill) / packed,
        "decode_share_of_packed": decode / packed,
        "product_rate": plain,
        "packed_product_rate": packed,
    }
    facts = {
        "dtype": str(model_dtype).removeprefix("torch."),
        "device": setting.engine.transformer.device.type,
        "threads": torch.get_num_threads(),
        "pairs": pairs,
        "batch": batch,
        "repeats": repeats,
    }
    return Report(ways, figures, facts)


def _runners(setting: Setting, work: Workload, larger: Workload) -> dict[str, Runner]:
    """Every way by name. `naive float32` only where the dtype is another."""
    engine = setting.engine
    device, dtype = engine.transformer.device, engine.transformer.dtype
    chat, stages = setting.scheduler.chat, tuple(setting.scheduler.stages)
    folder = find_model("smollm2-135m", None).folder

    def naive(kind: torch.dtype) -> Runner:
        stock = NaiveEngine(stock_model(folder, kind, device), engine.eos_ids, device, setting.subspace)
        scheduler = Scheduler(stock, chat, stages)
        return lambda: run_one_by_one(scheduler, work)

    adapters = PeftEngine(stock_model(folder, dtype, device), engine.eos_ids, device, setting.subspace)
    adapters.prepare(work.keys())
    mixed = Scheduler(adapters, chat, stages)
    unperturbed = Scheduler(Engine(engine.transformer, None, engine.eos_ids), chat, stages)
    tiny = Workload(work.agent, work.tasks, work.thetas * 1e-20)
    found: dict[str, Runner] = {
        "naive": naive(dtype),
        "peft": lambda: run_together(mixed, work),
        "nograd": lambda: run_together(setting.scheduler, work),
        "unperturbed": lambda: run_together(unperturbed, tiny),
        "tiny perturbation": lambda: run_together(setting.scheduler, tiny),
        "nograd, 4 x pairs": lambda: run_together(setting.scheduler, larger),
    }
    if dtype != torch.float32:
        found["naive float32"] = naive(torch.float32)
    return found


def _way(name: str, taken: list[Measured], reference: Measured) -> Way:
    same_work = name in ("naive", "peft", "nograd", "naive float32")
    return Way(
        name,
        median(measured.seconds for measured in taken),
        taken[0].tokens,
        differing(taken[0], reference) if same_work else None,
    )


def _prefill_rate(engine: Engine) -> float:
    """Floating-point operations per second of the model's products in the last generation's prefill passes."""
    counts, architecture = engine.counts, engine.transformer.architecture
    flops = counts.tokens_prefilled * flops_per_token(architecture)
    flops += counts.prefill_outputs * flops_per_output(architecture)
    return flops / counts.prefill_seconds


def _decode_rate(setting: Setting) -> float:
    """The same while 64 rows under 64 θ decode 32 tokens each; median of 3."""
    engine = Engine(setting.engine.transformer, setting.engine.perturbation, frozenset())
    architecture = engine.transformer.architecture
    thetas = workload(setting, _DECODE_ROWS // 2).thetas[1:, 0]
    task = setting.evaluator.family.tasks[0]
    prompt = tuple(setting.scheduler.chat.encode_text(task.question * 8))
    requests = [CompletionRequest(0, theta.tobytes(), prompt, _DECODE_TOKENS) for theta in thetas[:_DECODE_ROWS]]
    rates = []
    for _ in range(4):
        engine.forget()
        engine.run(requests)
        flops = engine.counts.tokens_decoded * (flops_per_token(architecture) + flops_per_output(architecture))
        rates.append(flops / engine.counts.decode_seconds)
    return median(rates[1:])
