#!/usr/bin/env python3
"""Times an engine's own kernels on a machine with its wheels. Writes one JSON line per point, in the format of
`roofcast calibrate measure`. `roofcast calibrate fit` reads those of vLLM; those of PyTorch are for information:

    python3 collect_engines.py --out vllm.jsonl [--engine vllm|pytorch] [--budget 120]
        [--only gemm,attention_decode,attention_prefill]

vLLM: its CUTLASS GEMMs in fp8 with a scale per token and per channel, FlashAttention over a paged bf16 cache.
PyTorch, which Hugging Face Transformers uses: torch._scaled_mm with the same scales, and
scaled_dot_product_attention with one query group per key head. Every result is compared with PyTorch in fp32 before
the kernel is timed. A kernel that fails is recorded as failed, and the others are still measured.
"""

import argparse
import importlib
import json
import statistics
import time

PAGE = 16  # tokens, vLLM's default block size
SERVED = [(6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336)]  # the layers of an 8B model


def line_of(point, engine, kernel, device, samples, repeats, stop, note, states, commit="collect_engines"):
    """One JSON line. `samples`: microseconds per call; `states`: before, during and after."""
    median = statistics.median(samples) if samples else 0.0
    return json.dumps({
        "op": point["op"], "dtype": point["dtype"], "shape": point["shape"], "engine": engine, "kernel": kernel,
        "median_us": median, "stop": stop, "note": note, "flops": point["flops"], "bytes": point["bytes"],
        "device": device, "before": states[0], "during": states[1], "after": states[2], "commit": commit,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "repeats": repeats,
        "throttled_samples": list(range(len(samples))) if states[1]["throttled"] else [], "samples_us": samples})


def points():
    """The most informative points first."""
    def gemm(m, n, k, load=None):
        shape = {"m": m, "n": n, "k": k} | ({"load_ms": load} if load else {})
        return {"op": "gemm", "dtype": "fp8", "shape": shape, "flops": 2.0 * m * n * k,
                "bytes": 1.0 * m * k + n * k + 2.0 * m * n}

    def decode(batch, context):
        return {"op": "attention_decode", "dtype": "bf16",
                "shape": {"batch": batch, "context_len": context, "heads": 32, "kv_heads": 8, "head_dim": 128},
                "flops": 4.0 * batch * context * 32 * 128, "bytes": 4.0 * batch * context * 8 * 128}

    def prefill(batch, length):
        return {"op": "attention_prefill", "dtype": "bf16",
                "shape": {"batch": batch, "seq_len": length, "heads": 32, "kv_heads": 8, "head_dim": 128},
                "flops": 2.0 * batch * length * (length + 1) * 32 * 128, "bytes": 4.0 * batch * length * 40 * 128}

    out = [gemm(m, n, k) for m in (1, 16, 64, 256, 1024, 4096) for n, k in SERVED]
    out += [decode(b, c) for b in (1, 16, 64, 256) for c in (512, 2048, 8192)]
    out += [prefill(b, l) for b in (1, 4) for l in (128, 512, 2048, 4096)]
    out += [gemm(m, 28672, 4096, 100) for m in (1024, 4096, 8192)]
    out += [gemm(m, n, k) for m in (8, 32, 128, 512, 2048, 8192) for n, k in SERVED]
    out += [decode(b, c) for b in (4, 128) for c in (128, 1024, 4096, 16384)]
    return out


def product(torch, shape):
    """y[m, n] = x[m, k] w[n, k]^T by vLLM's CUTLASS kernel. Weights rotate, so that none is in L2."""
    from vllm import _custom_ops as ops
    m, n, k = shape["m"], shape["n"], shape["k"]
    l2 = torch.cuda.get_device_properties(0).L2_cache_size
    slots = max(1, min(64, -(-4 * l2 // (n * k))))
    fp8 = torch.float8_e4m3fn
    x = torch.randn(m, k, device="cuda").clamp(-3, 3).to(fp8)
    w = [torch.randn(n, k, device="cuda").clamp(-3, 3).to(fp8).t() for _ in range(slots)]
    of_x, of_w = torch.ones(m, 1, device="cuda"), torch.ones(1, n, device="cuda")

    def run(slot):
        return ops.cutlass_scaled_mm(x, w[slot % slots], scale_a=of_x, scale_b=of_w, out_dtype=torch.bfloat16)

    want = x[:64].float() @ w[0].float()
    return "cutlass_scaled_mm", run, want, lambda y: y[:64]


def torch_product(torch, shape):
    """The same GEMM by PyTorch's own kernel."""
    m, n, k = shape["m"], shape["n"], shape["k"]
    slots = max(1, min(64, -(-4 * torch.cuda.get_device_properties(0).L2_cache_size // (n * k))))
    fp8 = torch.float8_e4m3fn
    x = torch.randn(m, k, device="cuda").clamp(-3, 3).to(fp8)
    w = [torch.randn(n, k, device="cuda").clamp(-3, 3).to(fp8).t() for _ in range(slots)]
    of_x, of_w = torch.ones(m, 1, device="cuda"), torch.ones(1, n, device="cuda")

    def run(slot):
        return torch._scaled_mm(x, w[slot % slots], scale_a=of_x, scale_b=of_w, out_dtype=torch.bfloat16,
                                use_fast_accum=True)

    want = x[:64].float() @ w[0].float()
    return "torch._scaled_mm", run, want, lambda y: y[:64]


def torch_attention(torch, shape, prompt):
    """scaled_dot_product_attention as Transformers calls it: a cache of [batch, kv_heads, tokens, head_dim]."""
    sdpa = torch.nn.functional.scaled_dot_product_attention
    batch, heads, kv, dim = shape["batch"], shape["heads"], shape["kv_heads"], shape["head_dim"]
    length = shape["seq_len"] if prompt else shape["context_len"]
    queries = length if prompt else 1
    l2 = torch.cuda.get_device_properties(0).L2_cache_size
    slots = max(1, min(16, -(-4 * l2 // (4 * batch * length * kv * dim))))
    q = torch.randn(batch, queries, heads, dim, device="cuda", dtype=torch.bfloat16).transpose(1, 2)
    cache = [torch.randn(2, batch, kv, length, dim, device="cuda", dtype=torch.bfloat16) for _ in range(slots)]

    def run(slot):
        k, v = cache[slot % slots]
        return sdpa(q, k, v, is_causal=prompt, enable_gqa=True)

    k, v = (part[:1].float().repeat_interleave(heads // kv, 1) for part in cache[0])
    want = sdpa(q[:1].float(), k, v, is_causal=prompt)[0]
    return "scaled_dot_product_attention", run, want, lambda y: y[0]


def attention(torch, shape, prompt):
    """FlashAttention over pages, as vLLM calls it: prompts of `seq_len` tokens, or one token after `context_len` - 1."""
    from vllm.vllm_flash_attn import flash_attn_varlen_func
    batch, heads, kv, dim = shape["batch"], shape["heads"], shape["kv_heads"], shape["head_dim"]
    length = shape["seq_len"] if prompt else shape["context_len"]
    queries = length if prompt else 1
    version = 3 if torch.cuda.get_device_capability()[0] == 9 else 2
    pages = -(-length // PAGE)
    l2 = torch.cuda.get_device_properties(0).L2_cache_size
    slots = max(1, min(16, -(-4 * l2 // (4 * batch * length * kv * dim))))
    q = torch.randn(batch * queries, heads, dim, device="cuda", dtype=torch.bfloat16)
    cache = [torch.randn(2, batch * pages, PAGE, kv, dim, device="cuda", dtype=torch.bfloat16) for _ in range(slots)]
    table = torch.arange(batch * pages, device="cuda", dtype=torch.int32).view(batch, pages)
    starts = torch.arange(batch + 1, device="cuda", dtype=torch.int32) * queries
    used = torch.full((batch,), length, device="cuda", dtype=torch.int32)

    def run(slot):
        k, v = cache[slot % slots]
        return flash_attn_varlen_func(q=q, k=k, v=v, max_seqlen_q=queries, cu_seqlens_q=starts, max_seqlen_k=length,
                                      seqused_k=used, softmax_scale=dim ** -0.5, causal=True, block_table=table,
                                      fa_version=version)

    k, v = (part[:pages].reshape(-1, kv, dim)[:length].float().repeat_interleave(heads // kv, 1) for part in cache[0])
    rows = q[:queries].float()
    scores = torch.einsum("qhd,khd->hqk", rows, k) * dim ** -0.5
    if prompt:
        scores += torch.triu(torch.full((queries, length), float("-inf"), device="cuda"), 1)
    want = torch.einsum("hqk,khd->qhd", scores.softmax(-1), v)
    return f"FlashAttention-{version}", run, want, lambda y: y[:queries]


ENGINES = {"vllm": (product, attention), "pytorch": (torch_product, torch_attention)}


def make(torch, engine, point):
    of_product, of_attention = ENGINES[engine]
    if point["op"] == "gemm":
        return of_product(torch, point["shape"])
    return of_attention(torch, point["shape"], point["op"] == "attention_prefill")


class Clock:
    """Clocks and their limits from NVML; zeros without it."""

    def __init__(self):
        try:
            import pynvml
            pynvml.nvmlInit()
            self.nvml, self.handle = pynvml, pynvml.nvmlDeviceGetHandleByIndex(0)
        except Exception:
            self.nvml = None

    def state(self):
        out = {"sm_clock_mhz": 0, "memory_clock_mhz": 0, "temperature_c": 0, "power_w": 0, "throttled": False}
        if self.nvml is None:
            return out
        n, h = self.nvml, self.handle
        try:
            out["sm_clock_mhz"] = n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_SM)
            out["memory_clock_mhz"] = n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_MEM)
            out["temperature_c"] = n.nvmlDeviceGetTemperature(h, n.NVML_TEMPERATURE_GPU)
            out["power_w"] = n.nvmlDeviceGetPowerUsage(h) / 1000.0
            out["throttled"] = bool(n.nvmlDeviceGetCurrentClocksThrottleReasons(h) & 0xEC)  # power, heat, slow-down
        except n.NVMLError:
            pass
        return out


def measure(torch, engine, point, clock, flush):
    """Returns (kernel, samples in us, calls per sample, states). Raises if the result is wrong."""
    kernel, run, want, part = make(torch, engine, point)
    got = part(run(0)).float()
    error = ((got - want).norm() / want.norm()).item()
    if not error < 0.02:
        raise ArithmeticError(f"differs from fp32 by {error:.3g} of its norm")
    torch.cuda.synchronize()
    began = time.perf_counter()
    for i in range(3):
        run(i)
    torch.cuda.synchronize()
    repeats = max(1, min(300, int(1e-3 * 3 / (time.perf_counter() - began))))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(repeats):
            run(i)
    load = point["shape"].get("load_ms")
    graph.replay()
    torch.cuda.synchronize()
    time.sleep(0.025)
    before, samples = clock.state(), []
    if load:
        mark = lambda: torch.cuda.Event(enable_timing=True)
        events, end = [mark()], time.perf_counter() + load * 1e-3
        events[0].record()
        during = before
        while time.perf_counter() < end or len(events) < 4:
            for _ in range(4):
                graph.replay()
                events.append(mark())
                events[-1].record()
            events[-4].synchronize()  # stay only a few launches ahead of the device
            during = clock.state()
        torch.cuda.synchronize()
        times = [1e3 * a.elapsed_time(b) / repeats for a, b in zip(events, events[1:])]
        samples = times[len(times) // 2:]
    else:
        for _ in range(25):
            flush.sum()
            torch.cuda._sleep(200_000)  # cycles, about 0.1 ms: everything is queued before the graph starts
            start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            graph.replay()
            stop.record()
            stop.synchronize()
            samples.append(1e3 * start.elapsed_time(stop) / repeats)
        during = clock.state()
    return kernel, samples, repeats, (before, during, clock.state())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--engine", choices=ENGINES, default="vllm")
    parser.add_argument("--budget", type=float, default=120.0, help="seconds")
    parser.add_argument("--only", default="", help="OP,...")
    flags = parser.parse_args()
    try:
        import torch
        of_engine = torch if flags.engine == "pytorch" else importlib.import_module(flags.engine)
    except ImportError as error:
        parser.exit(3, f"collect_engines: {error}; it needs the wheels of the engine\n")
    if not torch.cuda.is_available():
        parser.exit(3, "collect_engines: PyTorch sees no CUDA device\n")
    p = torch.cuda.get_device_properties(0)
    device = {"name": p.name, "driver": "", "cuda": torch.version.cuda or "", "compute_capability": f"{p.major}.{p.minor}",
              "sm_count": p.multi_processor_count, "devices": 1, "memory_bytes": p.total_memory,
              "l2_bytes": p.L2_cache_size}
    engine = f"{flags.engine}-{of_engine.__version__.split('+')[0]}"
    clock, end = Clock(), time.monotonic() + flags.budget
    flush = torch.ones(2 * p.L2_cache_size // 4, device="cuda")
    wanted = set(flags.only.split(",")) if flags.only else None
    with open(flags.out, "a", encoding="utf-8") as out:
        for point in points():
            if time.monotonic() >= end or (wanted and point["op"] not in wanted):
                continue
            kernel, samples, repeats, stop, note = "", [], 1, "samples", ""
            states = (clock.state(),) * 3
            try:
                kernel, samples, repeats, states = measure(torch, flags.engine, point, clock, flush)
            except ArithmeticError as error:
                stop, note = "wrong_result", str(error)
            except torch.cuda.OutOfMemoryError as error:
                stop, note = "out_of_memory", str(error).splitlines()[0]
            except Exception as error:  # any error of the engine: recorded; the next point runs
                stop, note = "failed", f"{type(error).__name__}: {error}".splitlines()[0]
            out.write(line_of(point, engine, kernel, device, samples, repeats, stop, note, states) + "\n")
            out.flush()
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
