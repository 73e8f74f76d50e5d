"""The Python package against the program: both must give the same results."""

import dataclasses
import json
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings

import roofcast
from roofcast import _core, results

PROGRAM = os.environ["ROOFCAST_PROGRAM"]
SOURCE = pathlib.Path(os.environ["ROOFCAST_SOURCE_DIR"])
warnings.simplefilter("ignore", roofcast.RoofcastWarning)

SMALL = {"model": "llama-3.1-8b", "gpu": "h100-sxm"}
LOAD = {
    **SMALL,
    "workload": {
        "arrivals": {"process": "poisson", "rate": "20 /s"},
        "prompt_tokens": 100,
        "output_tokens": 20,
        "requests": 100,
    },
}


def printed(*words, status=0):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True)
    if done.returncode != status:
        raise AssertionError(f"{words}: status {done.returncode}: {done.stderr}")
    return done.stdout


class Differential(unittest.TestCase):
    def same(self, result, *words, status=0):
        text = printed(*words, "--format", "json", status=status)
        self.assertEqual(json.loads(result.to_json()), json.loads(text))
        self.assertEqual(result.to_dict(), json.loads(text))

    def test_estimate(self):
        result = roofcast.estimate(model="llama-3.1-8b", gpu="h100-sxm", tp=2, batch=8, output_tokens=64)
        self.same(result, "estimate", "--model", "llama-3.1-8b", "--gpu", "h100-sxm", "--tp", "2", "--batch", "8",
                  "--output-tokens", "64")
        self.same(roofcast.estimate(SMALL, kv_cache=False, fidelity="ideal"), "estimate", "--model", "llama-3.1-8b",
                  "--gpu", "h100-sxm", "--no-kv-cache", "--fidelity", "ideal")
        self.same(roofcast.estimate(SMALL, set={"speculation": {"method": "eagle"}}, context=5000, weights="fp8"),
                  "estimate", "--model", "llama-3.1-8b", "--gpu", "h100-sxm", "--set", "speculation={method: eagle}",
                  "--context", "5000", "--weights", "fp8")

    def test_simulate(self):
        result = roofcast.simulate("chat-70b-4xh100", set={"workload.requests": 20}, seed=3, intervals=True)
        self.same(result, "simulate", "chat-70b-4xh100", "--set", "workload.requests=20", "--seed", "3", "--intervals")

    def test_trace(self):
        trace = SOURCE / "tests/data/traces/azure_2023_conv.csv"
        result = roofcast.simulate(SMALL, trace=trace, set={"workload.requests": 30})
        self.same(result, "simulate", "--model", "llama-3.1-8b", "--gpu", "h100-sxm", "--trace", trace, "--set",
                  "workload.requests=30")

    def test_plan(self):
        plan = {**LOAD, "objectives": {"ttft_p90": "1 s"}, "search": {"gpus": ["h100-sxm"], "max_gpus": 2, "tp": [1]}}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "plan.yaml")
            path.write_text(json.dumps(plan))
            self.same(roofcast.plan(plan), "plan", path)
            self.same(roofcast.plan(path, confidence=0), "plan", path, "--confidence", "0")
            plan["objectives"] = {"ttft_p90": "1 us"}
            path.write_text(json.dumps(plan))
            with self.assertRaises(roofcast.Infeasible) as caught:
                roofcast.plan(plan)
            self.assertTrue(caught.exception.reason.startswith("no deployment"))
            self.same(caught.exception.result, "plan", path, status=3)
            self.assertEqual(caught.exception.result.nearest.gpu, "h100-sxm")
            both = {"services": [{"name": name, **LOAD, "objectives": {"ttft_p90": "1 s"}} for name in "ab"],
                    "search": {"gpus": ["h100-sxm"], "max_gpus": 2, "tp": [1], "confidence": 0}}
            path.write_text(json.dumps(both))
            result = roofcast.plan(both)
            self.same(result, "plan", path)
            self.assertEqual([service.name for service in result.services], ["a", "b"])

    def test_sweep(self):
        result = roofcast.sweep("llama-2-13b-batch")
        self.same(result, "sweep", "llama-2-13b-batch", "--store", ":memory:")
        table = printed("sweep", "llama-2-13b-batch", "--store", ":memory:", "--format", "csv").splitlines()
        self.assertEqual(len(result.columns()["tpot_ms"]), len(table) - 1)

    def test_ladder(self):
        self.same(roofcast.ladder(LOAD, concurrency=8, requests=16), "ladder", self.scenario_file(), "--concurrency",
                  "8", "--requests", "16")

    def scenario_file(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name, "scenario.yaml")
        path.write_text(json.dumps(LOAD))
        return path

    def test_compare(self):
        scenario = self.scenario_file()
        bench = scenario.with_name("bench.json")
        bench.write_text(json.dumps({"completed": 100, "duration": 5.2, "mean_ttft_ms": 30, "mean_tpot_ms": 9,
                                     "output_throughput": 385, "total_input_tokens": 10000,
                                     "total_output_tokens": 2000}))
        self.same(roofcast.compare(scenario, bench), "compare", scenario, "--bench", bench)

    def test_validate(self):
        data = SOURCE / "tests/data/e2e/offline.csv"
        self.same(roofcast.validate(data), "validate", "serving", "--data", data)

    def test_catalogue(self):
        for kind in ("models", "gpus", "engines", "workloads", "recipes", "clients"):
            names = getattr(roofcast, kind)()
            listed = json.loads(printed(kind, "--format", "json"))
            self.assertEqual((listed["kind"], listed["of"]), ("catalog", kind))
            self.assertEqual(names, [entry["name"] for entry in listed["entries"]])
            entry = getattr(roofcast, kind[:-1])(names[0])
            shown = json.loads(printed(kind, names[0], "--format", "json"))
            self.assertEqual({"kind": "catalog_entry", "schema": 1, "of": kind, **entry}, shown)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "gpus.json")
            path.write_text(printed("gpus", "--format", "json"))
            self.assertEqual([entry.name for entry in roofcast.read_result(path).entries], roofcast.gpus())

    def test_requests(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder, "requests.csv")
            printed("simulate", "chat-70b-4xh100", "--set", "workload.requests=50", "--requests-out", out)
            lines = out.read_text().splitlines()
        requests = roofcast.simulate("chat-70b-4xh100", set={"workload.requests": 50}, per_request=True).per_request
        self.assertEqual(",".join(requests), lines[0])
        for line, row in zip(lines[1:], zip(*requests.values()), strict=True):
            cells = line.split(",")
            for cell, value in zip(cells, row, strict=True):
                digits = len(cell.partition(".")[2])
                self.assertEqual(f"{value:.{digits}f}", cell)


class Inputs(unittest.TestCase):
    def test_every_kind_of_document(self):
        want = roofcast.estimate(SMALL).to_json()
        self.assertEqual(roofcast.estimate("{model: llama-3.1-8b, gpu: h100-sxm}").to_json(), want)
        self.assertEqual(roofcast.estimate("model: llama-3.1-8b\ngpu: h100-sxm\n").to_json(), want)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "scenario.yaml")
            path.write_text("model: llama-3.1-8b\ngpu: h100-sxm\n")
            self.assertEqual(roofcast.estimate(path).to_json(), want)
            self.assertEqual(roofcast.estimate(str(path)).to_json(), want)
            path.write_text("model: llama-3.1-8b\ngpu: h200-sxm\nprecision: {weights: fp8}\n")  # edited between calls
            os.utime(path, (1, 1))
            for edited in (path, str(path)):
                self.assertEqual(roofcast.estimate(edited).gpu, "h200-sxm")

    def test_specs_are_read_again(self):
        """A model, a GPU and its constants may change between calls, and what was missing may come."""
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder, "model.yaml")
            with self.assertRaises(roofcast.ConfigError):
                roofcast.estimate(model=model, gpu="h100-sxm")
            text = (pathlib.Path(_core.configs()) / "models/llama-3.1-8b.yaml").read_text()
            model.write_text(text)
            first = roofcast.estimate(model=model, gpu="h100-sxm")
            self.assertEqual(first.memory.weight_bytes, roofcast.estimate(SMALL).memory.weight_bytes)
            model.write_text(text.replace("num_hidden_layers: 32", "num_hidden_layers: 33"))
            self.assertGreater(roofcast.estimate(model=model, gpu="h100-sxm").memory.weight_bytes,
                               first.memory.weight_bytes)

    def test_hugging_face_folder(self):
        config = (SOURCE / "tests/data/hf_configs/Qwen__Qwen3-8B.json").read_text()
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder, "my-qwen")
            model.mkdir()
            (model / "config.json").write_text(config)
            result = roofcast.estimate(model=model, gpu="h100-sxm")
            self.assertEqual(result.to_json(), printed("estimate", "--model", model, "--gpu", "h100-sxm", "--format",
                                                       "json"))

    def test_a_gpu_without_a_name(self):
        """A GPU of a dict is named after the one that it is like."""
        changed = {"like": "h100-sxm", "memory_bandwidth": "4 TB/s"}
        unnamed = roofcast.estimate(model="llama-3.1-8b", gpu=changed)
        named = roofcast.estimate(model="llama-3.1-8b", gpu={"name": "mine", **changed})
        self.assertEqual((unnamed.gpu, named.gpu), ("like-h100-sxm", "mine"))
        self.assertEqual(unnamed.tpot_ms, named.tpot_ms)
        self.assertLess(unnamed.tpot_ms, roofcast.estimate(model="llama-3.1-8b", gpu="h100-sxm").tpot_ms)

    def test_without_numpy(self):
        code = "import sys; sys.modules['numpy'] = None; import roofcast\nprint(roofcast.estimate(%r).batch)\n" % SMALL
        for call, what in (("simulate(%r, per_request=True)" % LOAD, "per_request=True"),
                           ("estimate_grid(%r, {'batch': [1, 2]})" % SMALL, "estimate_grid()")):
            done = subprocess.run([sys.executable, "-c", code + "roofcast." + call], capture_output=True, text=True)
            self.assertEqual(done.stdout, "1\n", done.stderr)
            self.assertTrue(done.stderr.rstrip().endswith(
                f"ImportError: {what} needs numpy: pip install numpy, or apt-get install python3-numpy"), done.stderr)

    def test_numpy_values(self):
        import numpy

        result = roofcast.estimate(SMALL, tp=numpy.int64(2), batch=numpy.int32(4))
        self.assertEqual(result.to_json(), roofcast.estimate(SMALL, tp=2, batch=4).to_json())

    def test_flags_are_those_of_the_command_line(self):
        stub = (pathlib.Path(roofcast.__file__).parent / "__init__.pyi").read_text()
        body = stub[stub.index("class Flags"):stub.index("def estimate")]
        named = {line.split(":")[0].strip() for line in body.splitlines()[1:] if ":" in line}
        self.assertEqual(named, {name for name, _, _ in _core.flags()} |
                         {"seed", "force_unsupported", "set", "fidelity"})


class Errors(unittest.TestCase):
    def error(self, call):
        with self.assertRaises(roofcast.ConfigError) as caught:
            call()
        return caught.exception

    def test_of_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "mine.yaml")
            path.write_text("model: llama-3.1-8b\ngpu: h100-sxm\nparallelism: {tpp: 2}\n")
            error = self.error(lambda: roofcast.estimate(path))
        self.assertEqual((error.path, error.line, error.column), (str(path), 3, 15))
        self.assertTrue(error.message.startswith("unknown key 'tpp'"))
        self.assertEqual(str(error), f"{path}:3:15: {error.message}")

    def test_of_text_and_dict(self):
        error = self.error(lambda: roofcast.estimate("model: ["))
        self.assertEqual((error.path, error.line), ("text", 1))
        error = self.error(lambda: roofcast.estimate({**SMALL, "parallelism": {"tp": "many"}}))
        self.assertEqual((error.path, error.line), ("parallelism.tp", None))
        error = self.error(lambda: roofcast.estimate({**SMALL, "enginee": "vllm"}))
        self.assertEqual(error.path, "enginee")
        error = self.error(lambda: roofcast.simulate({**LOAD, "workload": {**LOAD["workload"], "ratee": 3}}))
        self.assertEqual(error.path, "workload.ratee")
        self.assertIn("parallelism", self.error(lambda: roofcast.estimate({**SMALL, "paralelism": {}})).message)
        self.assertEqual(str(self.error(lambda: roofcast.estimate(SMALL, batch=0))),
                         "batch: must be from 1 to 1000000, got 0")
        self.assertEqual(str(self.error(lambda: roofcast.estimate(SMALL, batch=1.5))), "batch: must be a whole number")
        self.assertIn("must be finite", str(self.error(lambda: roofcast.estimate({**SMALL, "seed": float("nan")}))))
        self.assertIn("cannot be a", str(self.error(lambda: roofcast.estimate({**SMALL, "engine": object()}))))
        self.assertIn("nearest", self.error(lambda: roofcast.estimate(model="llama-3.1-8", gpu="h100-sxm")).message)
        self.assertIsInstance(pickle.loads(pickle.dumps(error)), roofcast.ConfigError)

    def test_unknown_keyword(self):
        with self.assertRaisesRegex(TypeError, "unknown keyword 'tpp'"):
            roofcast.estimate(SMALL, tpp=2)

    def test_what_does_not_fit(self):
        with self.assertRaises(roofcast.Infeasible) as caught:
            roofcast.estimate(model="llama-3.1-405b", gpu="h100-sxm")
        self.assertIn("would fit", caught.exception.reason)
        self.assertFalse(caught.exception.result.memory.fits)
        self.assertFalse(roofcast.estimate(model="llama-3.1-405b", gpu="h100-sxm", fidelity="ideal").memory.fits)
        with self.assertRaises(roofcast.Infeasible) as caught:
            roofcast.simulate({**LOAD, "model": "llama-3.1-405b"})
        self.assertIsNone(caught.exception.result)


class Results(unittest.TestCase):
    def test_attributes_are_the_keys(self):
        """Every class of results against a full result: all declared attributes exist, with their type."""
        run = roofcast.simulate({**LOAD, "objectives": {"ttft_p90": "1 s"}}, intervals=True)
        for result in (roofcast.estimate(SMALL), run, roofcast.sweep("llama-2-13b-batch")):
            self.compare(result, result.to_dict())

    def compare(self, thing, data):
        hints = {field.name: field.type for field in dataclasses.fields(thing)}
        for name, key, made in thing._SHAPE:
            value = getattr(thing, name)
            if key not in data:
                self.assertIsNone(value, name)
                self.assertIn("Optional", str(hints[name]))
            elif made is None:
                self.assertEqual(value, data[key], name)
                if hints[name] in (int, str, bool):
                    self.assertIsInstance(value, hints[name], name)
            elif isinstance(value, list):
                for entry, entry_data in zip(value, data[key], strict=True):
                    self.compare(entry, entry_data)
            else:
                self.compare(value, data[key])

    def test_round_trip(self):
        result = roofcast.estimate(SMALL)
        copy = pickle.loads(pickle.dumps(result))
        self.assertEqual(copy, result)
        self.assertEqual(copy.operators[0].time_us, result.operators[0].time_us)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "result.json")
            path.write_text(result.to_json())
            self.assertEqual(roofcast.read_result(path), result)
            path.write_text("{}")
            with self.assertRaises(roofcast.ConfigError):
                roofcast.read_result(path)
        with self.assertRaises(dataclasses.FrozenInstanceError):
            result.tpot_ms = 1
        with self.assertRaises(AttributeError):
            result.tpot

    def test_keys_that_no_class_declares(self):
        run = roofcast.simulate(LOAD, intervals=True)
        self.assertEqual(run.p99_ttft_ms_low, run.to_dict()["p99_ttft_ms_low"])

    def test_columns(self):
        import numpy

        columns = roofcast.sweep("llama-2-13b-batch").columns()
        self.assertEqual(columns["tpot_ms"].dtype, numpy.float64)
        self.assertEqual(columns["fits"].dtype, bool)
        self.assertEqual({len(column) for column in columns.values()}, {7})
        self.assertIn("tp", roofcast.estimate(SMALL).columns())

    def test_pandas(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("pandas is not installed")
        frame = roofcast.sweep("llama-2-13b-batch").to_pandas()
        self.assertIsInstance(frame, pandas.DataFrame)
        self.assertEqual(len(frame), 7)


class Grid(unittest.TestCase):
    def test_rows_are_estimates(self):
        batches, tps = [1, 8, 64], [1, 2]
        grid = roofcast.estimate_grid(SMALL, {"parallelism.tp": tps, "batch": batches}, prompt_tokens=500,
                                      set={"engine": "sglang"})
        self.assertEqual(len(grid["tpot_ms"]), 6)
        for row in range(6):
            tp, batch = int(grid["parallelism.tp"][row]), int(grid["batch"][row])
            self.assertEqual((tp, batch), (tps[row // 3], batches[row % 3]))
            one = roofcast.estimate(SMALL, tp=tp, batch=batch, prompt_tokens=500, engine="sglang")
            self.assertEqual(grid["tpot_ms"][row], one.tpot_ms)
            self.assertEqual(grid["usd_per_million_output_tokens"][row], one.cost.usd_per_million_output_tokens)
            self.assertEqual(grid["decode_bound"][row], one.decode.bound)

    def test_what_is_not_possible(self):
        grid = roofcast.estimate_grid(SMALL, {"parallelism.tp": [1, 3]})
        self.assertEqual(grid["error"][0], "")
        self.assertIn("3", grid["error"][1])
        with self.assertRaises(roofcast.ConfigError):
            roofcast.estimate_grid(SMALL, {"parallelism.tp": [3]})
        with self.assertRaisesRegex(roofcast.ConfigError, "varies"):
            roofcast.estimate_grid(SMALL, {"parallelism.tp": [1, 2]}, tp=2)

    def test_zip_and_where(self):
        grid = roofcast.estimate_grid(
            SMALL, {"batch": range(1, 9)}, zip={"prompt_tokens": [100, 200], "output_tokens": [10, 20]},
            where=["batch < 3"])
        self.assertEqual(list(grid["batch"]), [1, 1, 2, 2])
        self.assertEqual(list(grid["output_tokens"]), [10, 20, 10, 20])


LONG = {**LOAD, "workload": {**LOAD["workload"], "requests": 4_000_000}}


class LongWork(unittest.TestCase):
    def test_progress(self):
        told = []
        roofcast.simulate(LOAD, progress=lambda done, of: told.append((done, of)))
        self.assertEqual(told[-1], (100, 100))
        told.clear()
        roofcast.sweep("llama-2-13b-batch", progress=lambda done, of: told.append((done, of)))
        self.assertEqual(told[-1], (7, 7))

    def test_progress_may_stop(self):
        class Enough(Exception):
            pass

        def progress(done, of):
            if done > 0:
                raise Enough

        with self.assertRaises(Enough):
            roofcast.simulate(LONG, progress=progress)

    def interrupted(self, call):
        """Seconds from Ctrl-C to KeyboardInterrupt in a process of its own."""
        script = f"""
import roofcast, threading, time, os, signal, json
LONG = json.loads({json.dumps(json.dumps(LONG))})
SMALL = {SMALL!r}
def stop():
    time.sleep(0.5)
    global sent
    sent = time.monotonic()
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=stop).start()
try:
    {call}
    print("ended by itself")
except KeyboardInterrupt:
    print(time.monotonic() - sent)
"""
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return float(done.stdout)

    def test_interrupt(self):
        self.assertLess(self.interrupted("roofcast.simulate(LONG)"), 1.0)
        self.assertLess(self.interrupted("roofcast.plan('offline-70b-2xh100')"), 1.0)
        grid = "{'batch': range(1, 1000), 'prompt_tokens': range(1, 1000)}"
        self.assertLess(self.interrupted(f"roofcast.estimate_grid(SMALL, {grid})"), 1.0)

    def test_gil_is_free(self):
        ticks = 0
        done = threading.Event()

        def count():
            nonlocal ticks
            while not done.is_set():
                ticks += 1
                time.sleep(0.001)

        other = threading.Thread(target=count)
        other.start()
        roofcast.simulate({**LONG, "workload": {**LONG["workload"], "requests": 400_000}})
        done.set()
        other.join()
        self.assertGreater(ticks, 20)

    def test_eight_threads_give_the_same_bytes(self):
        def work():
            return [
                roofcast.estimate(SMALL, tp=2, batch=16).to_json(),
                roofcast.simulate(LOAD, seed=1).to_json(),
                roofcast.sweep("llama-2-13b-batch").to_json(),
                bytes(roofcast.estimate_grid(SMALL, {"batch": [1, 2, 4]})["tpot_ms"]),
            ]

        want, found = work(), [None] * 8

        def run(i):
            found[i] = work()

        threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for one in found:
            self.assertEqual(one, want)


if __name__ == "__main__":
    unittest.main()
