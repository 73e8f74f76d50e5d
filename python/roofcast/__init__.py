"""Forecasts how a large language model will serve: TTFT, TPOT, throughput, memory, cost, energy.

    >>> import roofcast
    >>> roofcast.estimate(model="llama-3.1-8b", gpu="h100-sxm", batch=16).tpot_ms

Every function answers what the command of the same name does, with the same keys and the same numbers. A scenario is a
dict, YAML text, the path of a file, or the name of a shipped one. Keywords stand for keys of the scenario, as the flags
of the command line do: model, gpu, engine, tp, pp, dp, dcp, ep, attention_dp, weights, activations, kv_cache_dtype, price,
seed, fidelity ("calibrated" or "ideal"), force_unsupported; `set` is a dict of dotted keys. A model is a name, a YAML
file, a Hugging Face config.json or the folder of one.

What is wrong with the input raises ConfigError; that no answer exists, Infeasible. Long computations free the GIL, call
progress(done, of) on the thread of the caller, and end on Ctrl-C. All functions may be called on several threads.
"""

import os as _os

from roofcast import _core
from roofcast._errors import ConfigError, Infeasible, RoofcastWarning

__version__ = _core.version
__all__ = [
    "estimate", "estimate_grid", "simulate", "plan", "sweep", "compare", "validate", "ladder",
    "models", "gpus", "engines", "workloads", "recipes", "clients", "scenarios", "plans", "sweeps",
    "model", "gpu", "engine", "workload", "recipe", "client",
    "read_result", "ConfigError", "Infeasible", "RoofcastWarning",
]

_configs = _os.path.join(_os.path.dirname(_os.path.abspath(__file__)), "configs")
if _os.path.isdir(_configs):  # of an installed package
    _core.use_configs(_configs)


def __getattr__(name):
    if name == "results":  # loaded when it is needed: the import stays quick
        import importlib

        return importlib.import_module("roofcast.results")
    raise AttributeError(f"module 'roofcast' has no attribute '{name}'")


def _result(kind, answer, arithmetic=False):
    from roofcast import results

    result = None if answer.empty else results.CLASSES[kind]._of(answer)
    for note in answer.notes:
        import warnings

        warnings.warn(note, RoofcastWarning, stacklevel=3)
    if answer.reason and not arithmetic:
        raise Infeasible(answer.reason, result)
    return result


def estimate(scenario=None, *, batch=1, prompt_tokens=1024, output_tokens=128, context=None, kv_cache=True, **flags):
    """TTFT, TPOT, memory and cost of a batch of equal requests in closed form, operator by operator.

    batch: sequences at a time on one replica. prompt_tokens, output_tokens: of each. context: tokens in the cache at
    the decode step (default: prompt + half of the output). kv_cache=False: every token recomputes the whole sequence.
    Returns roofcast.results.Estimate. What does not fit raises Infeasible, whose `result` has the numbers all the same,
    unless fidelity="ideal" asks only for the arithmetic.
    """
    answer = _core.estimate(scenario, batch, prompt_tokens, output_tokens, context, kv_cache, flags)
    return _result("estimate", answer, flags.get("fidelity") == "ideal")


def estimate_grid(scenario, grid, *, zip=None, where=None, batch=None, prompt_tokens=None, output_tokens=None,
                  context=None, progress=None, **flags):
    """Estimates of a whole grid in one call, as arrays.

    grid: values by dotted key of the scenario, or by batch, prompt_tokens, output_tokens, context; crossed, the last
    fastest. What the grid leaves open of the last four are keywords, as of estimate(). zip: the same, side by side, of equal lengths. where: conditions of points to keep, such as
    "parallelism.tp * parallelism.pp <= 8". Returns Columns: {name: numpy array}, the keys of the grid first, then the
    metrics of a sweep's points; "fits" tells which hold; "error", where there is one, why a point is not possible.
    """
    from roofcast._base import Columns, array_of, needed

    numpy = needed("numpy", "estimate_grid()")
    request = {"batch": batch, "prompt_tokens": prompt_tokens, "output_tokens": output_tokens, "context": context}
    given = {key: value for key, value in request.items() if value is not None}
    flags["set"] = {**given, **flags.get("set", {})}
    axes, columns = _core.grid(scenario, grid, zip or {}, where or [], progress, flags)
    out = Columns()
    for key, positions in axes:
        values = grid[key] if key in grid else zip[key]
        out[key] = array_of(list(values))[numpy.frombuffer(positions, dtype=numpy.uint32)]
    for name, (kind, values) in columns.items():
        out[name] = numpy.array(values, dtype=object) if kind == "text" else numpy.frombuffer(values, dtype=kind)
    return out


def simulate(scenario=None, *, trace=None, trace_format=None, per_request=False, intervals=False, progress=None,
             **flags):
    """A scenario under load, request by request. The same seed gives the same result.

    trace: a file of arrivals and lengths in place of the scenario's workload. per_request=True: the attribute
    `per_request` holds Columns, one entry a request, in the order in which they end. intervals=True adds 90 % intervals
    and, over time, queue, batch, cache and tokens. Returns roofcast.results.Simulation.
    """
    from roofcast._base import Columns, needed

    numpy = needed("numpy", "per_request=True") if per_request else None
    answer = _core.simulate(scenario, trace, trace_format, per_request, intervals, progress, flags)
    result = _result("simulation", answer)
    if per_request:
        result.__dict__["per_request"] = Columns(
            (name, numpy.frombuffer(values, dtype=float)) for name, values in answer.requests.items()
        )
    return result


def plan(plan, *, confidence=None, exhaustive=False, progress=None, **flags):
    """The cheapest deployments that meet the objectives, the winner first.

    confidence: probability that all objectives are met (default 0.9; 0: not judged). exhaustive=True simulates every
    candidate, whatever the bounds say. Returns roofcast.results.Plan, of several `services` ServicesPlan; where
    nothing meets the objectives raises Infeasible, whose `result` has the nearest deployment.
    """
    answer = _core.plan(plan, confidence, exhaustive, progress, flags)
    return _result(answer.value("kind"), answer)


def sweep(sweep, *, store=":memory:", progress=None, **flags):
    """A grid of scenarios on all cores. `store`: a file (SQLite) that keeps finished points, so that only missing ones
    run. Returns roofcast.results.Sweep; columns() has one entry a point."""
    return _result("sweep", _core.sweep(sweep, _os.fspath(store), progress, flags))


def compare(scenario, bench=None, *, run=None, prometheus=None, window=None, progress=None, **flags):
    """A measured run compared with its prediction, and what explains the difference.

    bench: file of vllm bench serve, SGLang bench_serving, AIPerf, GenAI-Perf, GuideLLM, MLPerf LoadGen or llama-bench.
    run: which of the runs in it, from 1. prometheus: instead, a saved /metrics page of a server, or two:
    (before, after). window: the time that they cover, seconds or "10 min". Returns roofcast.results.Comparison.
    """
    if (bench is None) == (prometheus is None):
        raise ConfigError("compare: give either 'bench' or 'prometheus'")
    scrapes = [] if prometheus is None else [prometheus] if isinstance(prometheus, (str, _os.PathLike)) else prometheus
    scrapes = [_os.fspath(file) for file in scrapes]
    source = "" if bench is None else _os.fspath(bench)
    window = "" if window is None else window if isinstance(window, str) else f"{window} s"
    return _result("comparison", _core.compare(scenario, source, run, scrapes, window, progress, flags))


def validate(data, *, gpu=None, model=None, intervals=False, progress=None):
    """Simulates measured serving runs by their own protocol: errors by group and load.

    data: a table of runs (CSV), or the requests of one run (JSON lines), for which gpu and model name what it ran where
    the file does not say. Returns roofcast.results.Validation.
    """
    return _result("validation", _core.validate(_os.fspath(data), gpu or "", model or "", intervals, progress))


def ladder(scenario, *, concurrency=64, requests=0, progress=None, **flags):
    """The techniques of serving one after another, and what each buys. Returns roofcast.results.Ladder."""
    return _result("ladder", _core.ladder(scenario, concurrency, requests, progress, flags))


def read_result(path):
    """A result that `--format json` or to_json() wrote, as its class of roofcast.results."""
    import json

    from roofcast import results

    with open(path, encoding="utf-8") as file:
        try:
            data = json.load(file)
        except json.JSONDecodeError as error:
            place = f"{path}:{error.lineno}:{error.colno}"
            raise ConfigError(f"{place}: not JSON: {error.msg}", str(path), error.lineno, error.colno) from None
        except ValueError as error:
            raise ConfigError(f"{path}: not JSON: {error}", str(path)) from None
    kind = data.get("kind") if isinstance(data, dict) else None
    if kind not in results.CLASSES or data.get("schema") != results.SCHEMAS[kind]:
        raise ConfigError(f"{path}: not a result of this roofcast: kind {kind!r}", str(path))
    return results.CLASSES[kind].from_dict(data)


def _names(folder, what):
    def names():
        return _core.names(folder)

    names.__doc__ = f"The names of the {what} that are shipped."
    names.__name__ = names.__qualname__ = what
    return names


models = _names("models", "models")
gpus = _names("hardware", "gpus")
engines = _names("engines", "engines")
workloads = _names("workloads", "workloads")
recipes = _names("recipes", "recipes")
clients = _names("clients", "clients")
scenarios = _names("scenarios", "scenarios")
plans = _names("plans", "plans")
sweeps = _names("sweeps", "sweeps")


def _entry(kind, what):
    def entry(name):
        return _core.entry(kind, _os.fspath(name))

    entry.__doc__ = f"One {what} by name or file, as a dict: `roofcast {kind} NAME --format json` without its head."
    entry.__name__ = entry.__qualname__ = what
    return entry


model = _entry("models", "model")
gpu = _entry("gpus", "gpu")
engine = _entry("engines", "engine")
workload = _entry("workloads", "workload")
recipe = _entry("recipes", "recipe")
client = _entry("clients", "client")
