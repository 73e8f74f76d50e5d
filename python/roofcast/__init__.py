"""Forecasts how a large language model will serve: TTFT, TPOT, throughput, memory, cost, energy.

    >>> import roofcast
    >>> roofcast.estimate(model="llama-3.1-8b", gpu="h100-sxm", batch=16).tpot_ms

Every function returns what the command of the same name prints, with the same keys and numbers. A scenario is a dict,
YAML text, the path of a file, or the name of a shipped scenario. Keyword arguments set keys of the scenario, like the
flags of the command line: model, gpu, engine, tp, pp, dp, dcp, ep, attention_dp, weights, activations, kv_cache_dtype, price,
seed, fidelity ("calibrated" or "ideal"), force_unsupported; `set` is a dict of dotted keys. A model is a name, a YAML
file, a Hugging Face config.json, or a folder with one.

Invalid input raises ConfigError. If no answer exists, Infeasible is raised. Long computations release the GIL, call
progress(done, of) on the caller's thread, and stop on Ctrl-C. All functions are thread-safe.
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
if _os.path.isdir(_configs):  # in an installed package
    _core.use_configs(_configs)


def __getattr__(name):
    if name == "results":  # loaded on demand, to keep the import fast
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

    batch: concurrent sequences on one replica. prompt_tokens, output_tokens: per sequence. context: tokens in the cache
    at the decode step (default: prompt + half of the output). kv_cache=False: every token recomputes the whole sequence.
    Returns roofcast.results.Estimate. Raises Infeasible if the model does not fit; its `result` still has the numbers.
    With fidelity="ideal" the fit is not checked.
    """
    answer = _core.estimate(scenario, batch, prompt_tokens, output_tokens, context, kv_cache, flags)
    return _result("estimate", answer, flags.get("fidelity") == "ideal")


def estimate_grid(scenario, grid, *, zip=None, where=None, batch=None, prompt_tokens=None, output_tokens=None,
                  context=None, progress=None, **flags):
    """Estimates all points of a grid in one call. Returns arrays.

    grid: lists of values by dotted key of the scenario, or by batch, prompt_tokens, output_tokens, context. All
    combinations are computed; the last key varies fastest. The last four may instead be keyword arguments, as in
    estimate(). zip: lists of equal length whose values are taken in parallel. where: conditions for points to keep, such
    as "parallelism.tp * parallelism.pp <= 8". Returns Columns, {name: numpy array}: the keys of the grid, then the
    metrics of a sweep's points. "fits" says whether the model fits; "error", if there is one, why a point is invalid.
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
    """Simulates a scenario under load, request by request. The same seed gives the same result.

    trace: a file of arrivals and lengths that replaces the scenario's workload. per_request=True: the attribute
    `per_request` is Columns with one entry per request, in the order of completion. intervals=True adds 90 % intervals,
    and queue, batch, cache and tokens over time. Returns roofcast.results.Simulation.
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
    """Finds the cheapest deployments that meet the objectives, the best first.

    confidence: probability that all objectives are met (default 0.9; 0: not judged). exhaustive=True simulates every
    candidate, even those ruled out by bounds. Returns roofcast.results.Plan; for several `services`, ServicesPlan.
    Raises Infeasible if nothing meets the objectives; its `result` has the nearest deployment.
    """
    answer = _core.plan(plan, confidence, exhaustive, progress, flags)
    return _result(answer.value("kind"), answer)


def sweep(sweep, *, store=":memory:", progress=None, **flags):
    """Runs a grid of scenarios on all cores. `store`: an SQLite file that keeps finished points, so that only missing
    ones run. Returns roofcast.results.Sweep; columns() has one entry per point."""
    return _result("sweep", _core.sweep(sweep, _os.fspath(store), progress, flags))


def compare(scenario, bench=None, *, run=None, prometheus=None, window=None, progress=None, **flags):
    """Compares a measured run with its prediction and explains the difference.

    bench: a file of vllm bench serve, SGLang bench_serving, AIPerf, GenAI-Perf, GuideLLM, MLPerf LoadGen or llama-bench.
    run: the number of the run in the file, from 1. prometheus: in place of `bench`, a saved /metrics page of a server, or
    two: (before, after). window: the time between them, in seconds or as "10 min". Returns roofcast.results.Comparison.
    """
    if (bench is None) == (prometheus is None):
        raise ConfigError("compare: give either 'bench' or 'prometheus'")
    scrapes = [] if prometheus is None else [prometheus] if isinstance(prometheus, (str, _os.PathLike)) else prometheus
    scrapes = [_os.fspath(file) for file in scrapes]
    source = "" if bench is None else _os.fspath(bench)
    window = "" if window is None else window if isinstance(window, str) else f"{window} s"
    return _result("comparison", _core.compare(scenario, source, run, scrapes, window, progress, flags))


def validate(data, *, gpu=None, model=None, intervals=False, progress=None):
    """Simulates measured serving runs with their own protocol. Returns errors by group and load.

    data: a table of runs (CSV), or the requests of one run (JSON lines). For the latter, gpu and model are needed if the
    file does not name them. Returns roofcast.results.Validation.
    """
    return _result("validation", _core.validate(_os.fspath(data), gpu or "", model or "", intervals, progress))


def ladder(scenario, *, concurrency=64, requests=0, progress=None, **flags):
    """Adds serving techniques one after another and shows the gain of each. Returns roofcast.results.Ladder."""
    return _result("ladder", _core.ladder(scenario, concurrency, requests, progress, flags))


def read_result(path):
    """Reads a result written by `--format json` or to_json(). Returns its class of roofcast.results."""
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

    names.__doc__ = f"The names of the shipped {what}."
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

    entry.__doc__ = f"One {what} by name or file, as a dict: `roofcast {kind} NAME --format json` without its header."
    entry.__name__ = entry.__qualname__ = what
    return entry


model = _entry("models", "model")
gpu = _entry("gpus", "gpu")
engine = _entry("engines", "engine")
workload = _entry("workloads", "workload")
recipe = _entry("recipes", "recipe")
client = _entry("clients", "client")
