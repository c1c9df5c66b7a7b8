"""The benchmark: one generation in each way, in one process, order rotated; and the machine's limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
class Rates:
    """Floating-point operations per second of the model's products: in the generation's prefill passes, in decoding,
    and alone, by torch's plain call and with weights laid out for the machine."""

    prefill: float
    decode: float
    plain: float
    packed: float

    def __str__(self) -> str:
        return ", ".join(f"{name} {value / 1e9:,.0f} GFLOP/s" for name, value in vars(self).items())


@dataclass(frozen=True)
class Report:
    """ways: a row each; figures: the JSON keys of issue and documentation; setting: machine, dtype, threads."""

    ways: tuple[Way, ...]
    figures: Mapping[str, float]
    setting: Mapping[str, Any]


def run_benchmark(
    dtype: DTypeName,
    device: DeviceName,
    *,
    pairs: int,
    batch: int,
    repeats: int,
    own: bool,
    say: Callable[[str], None],
) -> Report:
    """Everything that `nograd bench` prints. own: only nograd's own ways. say: told what each measurement took."""
    started = alone.measure(dtype, device, pairs, batch)
    setting = build(dtype, device, batch)
    work = workload(setting, pairs)
    runners = _own_runners(setting, work, workload(setting, 4 * pairs))
    if not own:
        runners = _usual_runners(setting, work) | runners
    if not own and setting.engine.transformer.dtype != torch.float32:
        runners |= _float32_runners(device, pairs, batch)
    taken: dict[str, list[Measured]] = {name: [] for name in runners}
    rates: list[Rates] = []
    runners["nograd"]()
    for repeat in range(repeats):
        names = list(runners)
        for name in names[repeat % len(names) :] + names[: repeat % len(names)]:
            taken[name].append(runners[name]())
            say(f"{name}, {repeat + 1} of {repeats}: {taken[name][-1].seconds:.1f} s")
            if name == "nograd":
                rates.append(_rates(setting))
                say(f"products per second, {repeat + 1} of {repeats}: {rates[-1]}")
    ways = tuple(
        Way(name, median(m.seconds for m in found), found[0].tokens, _differing(name, taken))
        for name, found in taken.items()
    )
    facts = {
        "dtype": str(setting.engine.transformer.dtype).removeprefix("torch."),
        "device": setting.engine.transformer.device.type,
        "threads": torch.get_num_threads(),
        "pairs": pairs,
        "batch": batch,
        "repeats": repeats,
    }
    return Report(ways, _figures(ways, rates, started), facts)


def _figures(ways: Sequence[Way], rates: Sequence[Rates], started: Mapping[str, Any]) -> dict[str, float]:
    """Every figure by its JSON key; shares are medians over the repetitions, each against limits measured beside it."""
    seconds = {way.name: way.seconds for way in ways}
    differing = {way.name: float(way.differing or 0) for way in ways}
    figures: dict[str, float] = {}
    if "naive" in seconds:
        figures |= {
            "naive_over_nograd": seconds["naive"] / seconds["nograd"],
            "peft_over_nograd": seconds["peft"] / seconds["nograd"],
            "naive_float32_over_auto": seconds.get("naive float32", seconds["naive"]) / seconds["nograd"],
            "differing_trajectories": differing["naive"],
        }
    figures |= {
        "perturbed_over_unperturbed": seconds["unperturbed"] / seconds["tiny perturbation"],
        "prefill_share": median(rate.prefill / rate.plain for rate in rates),
        "decode_share": median(rate.decode / rate.plain for rate in rates),
        "growth_p16_over_p4": seconds["nograd, 4 x pairs"] / seconds["nograd"],
        "start_s": started["start_s"],
        "peak_memory_bytes": started["peak_memory_bytes"],
        "cache_bytes": started["cache_bytes"],
        "prefill_share_of_packed": median(rate.prefill / rate.packed for rate in rates),
        "decode_share_of_packed": median(rate.decode / rate.packed for rate in rates),
        "product_rate": median(rate.plain for rate in rates),
        "packed_product_rate": median(rate.packed for rate in rates),
    }
    if "naive float32" in seconds:
        figures["naive_over_nograd_float32"] = seconds["naive float32"] / seconds["nograd float32"]
        figures["differing_trajectories_float32"] = differing["naive float32"]
    return figures


def _rates(setting: Setting) -> Rates:
    """The rates of the generation just run, of decoding, and of the machine's products."""
    transformer = setting.engine.transformer
    prefill = _prefill_rate(setting.engine)
    plain, packed = (
        product_rate(transformer.architecture, transformer.dtype, transformer.device, packed=fast)
        for fast in (False, True)
    )
    return Rates(prefill, _decode_rate(setting), plain, packed)


def _naive(setting: Setting, work: Workload) -> Runner:
    transformer = setting.engine.transformer
    model = stock_model(find_model("smollm2-135m", None).folder, transformer.dtype, transformer.device)
    stock = NaiveEngine(model, setting.engine.eos_ids, transformer.device, setting.subspace)
    scheduler = Scheduler(stock, setting.scheduler.chat, tuple(setting.scheduler.stages))
    return lambda: run_one_by_one(scheduler, work)


def _usual_runners(setting: Setting, work: Workload) -> dict[str, Runner]:
    """How such a study is normally written, in the engine's dtype."""
    transformer = setting.engine.transformer
    model = stock_model(find_model("smollm2-135m", None).folder, transformer.dtype, transformer.device)
    adapters = PeftEngine(model, setting.engine.eos_ids, transformer.device, setting.subspace)
    adapters.prepare(work.keys())
    mixed = Scheduler(adapters, setting.scheduler.chat, tuple(setting.scheduler.stages))
    return {"naive": _naive(setting, work), "peft": lambda: run_together(mixed, work)}


def _own_runners(setting: Setting, work: Workload, larger: Workload) -> dict[str, Runner]:
    """This engine, with and without perturbations, and with more of them."""
    engine = setting.engine
    plain = Engine(engine.transformer, None, engine.eos_ids)
    unperturbed = Scheduler(plain, setting.scheduler.chat, tuple(setting.scheduler.stages))
    tiny = Workload(work.agent, work.tasks, work.thetas * 1e-20)
    return {
        "nograd": lambda: run_together(setting.scheduler, work),
        "unperturbed": lambda: run_together(unperturbed, tiny),
        "tiny perturbation": lambda: run_together(setting.scheduler, tiny),
        "nograd, 4 x pairs": lambda: run_together(setting.scheduler, larger),
    }


def _float32_runners(device: DeviceName, pairs: int, batch: int) -> dict[str, Runner]:
    """The usual way and nograd's in float32, where the other ways run in another dtype."""
    setting = build("float32", device, batch)
    work = workload(setting, pairs)
    return {
        "naive float32": _naive(setting, work),
        "nograd float32": lambda: run_together(setting.scheduler, work),
    }


def _differing(name: str, taken: Mapping[str, list[Measured]]) -> int | None:
    """Trajectories unlike nograd's in the same dtype; None where the work is another."""
    references = {"naive": "nograd", "peft": "nograd", "nograd": "nograd"}
    references |= {"naive float32": "nograd float32", "nograd float32": "nograd float32"}
    if name not in references:
        return None
    return differing(taken[name][0], taken[references[name]][0])


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
