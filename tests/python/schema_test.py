"""The JSON output of every command matches its schema in docs/schemas.

usage: schema_test.py
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import jsonschema
except ImportError:
    print("SKIPPED: no jsonschema (apt-get install python3-jsonschema)")
    sys.exit(77)

PROGRAM = os.environ["ROOFCAST_PROGRAM"]
SOURCE = pathlib.Path(os.environ["ROOFCAST_SOURCE_DIR"])
DATA = SOURCE / "tests/data"
LOAD = """{model: llama-3.1-8b, gpu: h100-sxm, objectives: {ttft_p90: %s}, workload: {arrivals: {process: poisson,
  rate: 20 /s}, prompt_tokens: 100, output_tokens: 20, requests: 60}, search: {gpus: [h100-sxm], max_gpus: 2, tp: [1]}}"""
SERVICES = """{model: llama-3.1-8b, price: {tier: owned, usd_per_gpu: 30000, years: 4, host: 8}, objectives: {ttft_p90: 2 s},
  workload: {arrivals: {process: poisson, rate: 20 /s}, prompt_tokens: 100, output_tokens: 20},
  services: [{name: a, search: {growth: {per_month: 0.5, months: 6}}}, {name: b}],
  search: {gpus: [h100-sxm], max_gpus: %d, tp: [1]}}"""
SWEEP = "{run: %s, scenario: %s, grid: {gpu: [h100-sxm, l40s]}}"
SCENARIO = LOAD[: LOAD.index(", search")] % "2 s" + "}"
BENCH = {"completed": 60, "duration": 3.2, "mean_ttft_ms": 30, "mean_tpot_ms": 9, "output_throughput": 385,
         "total_input_tokens": 6000, "total_output_tokens": 1200}


def commands(folder):
    """(words, whether no answer is expected)."""

    def file(name, text):
        path = folder / name
        path.write_text(text)
        return str(path)

    scenario = file("scenario.yaml", SCENARIO)
    bench = file("bench.json", json.dumps(BENCH))
    small = ["--model", "llama-3.1-8b", "--gpu", "h100-sxm"]
    yield "estimate", *small
    yield "estimate", *small, "--fidelity", "ideal", "--set", "speculation={method: eagle}"
    yield "estimate", "--model", "llama-3.1-405b", "--gpu", "h100-sxm"
    yield "simulate", scenario, "--intervals"
    yield "simulate", scenario, "--set", "autoscaling={min: 1, max: 2, policy: concurrency, target: 8}"
    yield "simulate", scenario, "--set", "workload.arrivals.rate=500 /s"
    yield "sweep", file("estimates.yaml", SWEEP % ("estimate", SCENARIO)), "--store", ":memory:"
    yield "sweep", file("runs.yaml", SWEEP % ("simulate", SCENARIO)), "--store", ":memory:"
    yield "plan", file("plan.yaml", LOAD % "2 s")
    yield "plan", file("no-plan.yaml", LOAD % "1 us")
    for max_gpus in (1, 4):  # too few; and the instance that both share
        yield "plan", file(f"services-{max_gpus}.yaml", SERVICES % max_gpus), "--confidence", "0"
    yield "ladder", scenario, "--concurrency", "8", "--requests", "16"
    yield "compare", scenario, "--bench", bench
    yield "validate", "serving", "--data", str(DATA / "e2e/agg.csv"), "--intervals", "--spreads"
    yield "validate", "serving", "--data", str(DATA / "e2e/offline.csv")
    yield "validate", "kernels", "--gpu", "h100-sxm", "--data", str(next((DATA / "kernels/h100-sxm").glob("gemm*.csv")))
    yield "calibrate", "show", "h100-sxm"
    yield "lecture", "cache-waste"
    for kind in ("models", "gpus", "engines", "workloads", "recipes", "clients", "kernels", "lecture"):
        yield (kind,)
    for words in ("models llama-3.1-8b", "gpus h100-sxm", "engines vllm", "engines mlx", "workloads agentic-coding",
                  "recipes aiconfigurator", "clients aiperf", "kernels cublaslt"):
        yield words.split()
    yield "import", bench, "--model", "llama-3.1-8b", "--gpu", "h100-sxm"
    yield "calibrate", "host", "--scenario", scenario, "--bench", bench, "--bench", bench, "--evaluations", "5"


def main():
    seen = set()
    with tempfile.TemporaryDirectory() as folder:
        for words in commands(pathlib.Path(folder)):
            done = subprocess.run([PROGRAM, *words, "--format", "json"], capture_output=True, text=True)
            assert done.returncode in (0, 3), f"{words}: {done.stderr}"
            result = json.loads(done.stdout)
            schema = json.loads((SOURCE / f"docs/schemas/{result['kind']}.json").read_text())
            errors = list(jsonschema.Draft202012Validator(schema).iter_errors(result))
            assert not errors, f"{words}: {'.'.join(map(str, errors[0].path))}: {errors[0].message}"
            seen.add(result["kind"])
            if words[0] == "estimate":  # a schema that takes anything tests nothing
                del result["memory"]["weight_bytes"]
                result["ttft_ms"] = "1 ms"
                assert len(list(jsonschema.Draft202012Validator(schema).iter_errors(result))) == 2
    kinds = {path.stem for path in (SOURCE / "docs/schemas").glob("*.json")}
    assert seen == kinds, f"no result of {kinds - seen}"
    print(f"{len(seen)} kinds of results")


main()
