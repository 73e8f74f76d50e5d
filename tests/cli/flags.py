#!/usr/bin/env python3
"""Gives each flag of the commands that forecast, one at a time: it acts, is refused, is reported, or stands in SILENT.

usage: tests/cli/flags.py PROGRAM
"""
import functools
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = os.path.realpath(sys.argv[1])
FILES = {
    "s.yaml": "model: llama-3.1-8b\ngpu: h100-sxm\nprecision: fp8\nworkload: {arrivals: {process: poisson, rate: 8 /s}, requests: 40, "
              "prompt_tokens: 500, output_tokens: 60}\n",
    "plan.yaml": "model: llama-3.1-8b\nprecision: fp8\nworkload: {arrivals: {process: poisson, rate: 2 /s}, requests: 60, "
                 "prompt_tokens: 300, output_tokens: 50}\nobjectives: {ttft_p99: 2 s, tpot_p99: 100 ms}\n"
                 "search: {gpus: [h100-sxm], max_gpus: 2, tp: [1]}\n",
    "sweep.yaml": "scenario: {model: llama-3.1-8b, gpu: h100-sxm, precision: fp8}\nrun: estimate\ngrid: {batch: [1, 2]}\n",
    "trace.csv": "arrival_s,prompt_tokens,output_tokens\n0,10,5\n1,10,5\n",
}
COMMANDS = {
    "estimate": ["--model", "llama-3.1-8b", "--gpu", "h100-sxm", "--weights", "fp8"],
    "simulate": ["s.yaml"],
    "plan": ["plan.yaml"],
    "sweep": ["sweep.yaml", "--format", "csv"],
    "ladder": ["s.yaml"],
}
VALUES = {
    "--model": "qwen3-0.6b", "--gpu": "b200-sxm", "--engine": "sglang", "--weights": "int8", "--activations": "bf16",
    "--kv-cache-dtype": "fp8", "--price": "spot", "--fidelity": "ideal", "--set": "engine=sglang", "--format": "json",
    "--columns": "gpus", "--image-size": "500x500", "--trace": "trace.csv", "--trace-format": "csv",
    "--bench-format": "sglang", "--confidence": "0", "--emit": "vllm", "--emit-as": "compose", "--shard": "1/2",
    "--tp": "4", "--requests": "20",
}
SILENT = {
    "--force-unsupported": "permits what is not asked for here",
    "--yes": "permits what is not asked for here",
    "--exhaustive": "the same answer by a longer way",
    "--store": "where points are kept",
}


def run(words):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, re.sub(r"in [\d.]+ s", "in a time", done.stderr)


@functools.lru_cache
def without(words):
    return run(words)


def flags_of(command):
    return re.findall(r"^ +(--[\w-]+)(?: (\S+))?", run([command, "--help"])[1], re.M)


def value_of(flag, word):
    """The value to give; None for a switch, whose help follows at once."""
    if flag in VALUES:
        return VALUES[flag]
    if word and "FILE" in word:
        return "made" + flag
    return "2" if word and re.fullmatch(r"[A-Z][A-Z.,=|]*", word) else None


def verdict(command, flag, value):
    words = dict(zip(COMMANDS[command][::2], COMMANDS[command][1::2])) if command == "estimate" else {}
    plain = [command, *COMMANDS[command]]
    if flag in words:
        asked = [command, *(w for pair in {**words, flag: value}.items() for w in pair)]
    else:
        asked = [*plain, flag] + ([value] if value is not None else [])
    kept = ["--store", ":memory:"] if command == "sweep" else []
    before, after = without(tuple(plain + kept)), run(asked + kept)
    if after[0] == 3:  # no answer with it
        return ""
    if after[0] != 0:
        named = re.search(rf"(?<![\w-])(--)?{re.escape(flag[2:])}(?![\w-])", after[2].replace("_", "-"))
        return "" if named else f"status {after[0]} without its name: {after[2]}"
    made = value is not None and value.startswith("made") and Path(value).stat().st_size > 0
    return "" if made or after[1:] != before[1:] else "changes nothing, and nothing says so"


def main():
    os.environ["COLUMNS"] = "200"
    faults = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, text in FILES.items():
            Path(name).write_text(text)
        for command in COMMANDS:
            flags = flags_of(command)
            assert len(flags) > 15, f"{command} --help lists {len(flags)} flags"
            for flag, word in flags:
                if flag == "--help" or flag in SILENT:
                    continue
                fault = verdict(command, flag, value_of(flag, word))
                faults += fault != ""
                if fault:
                    print(f"{command} {flag}: {fault}")
    sys.exit(faults > 0)


main()
