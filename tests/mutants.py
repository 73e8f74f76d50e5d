#!/usr/bin/env python3
"""Changes one operator, constant or statement of the sources at a time, and lists the changes that no test notices.

usage: tests/mutants.py [--most N] [--seed S] [--tests FILTER] FILE...

Works on a copy of the tree in build/mutants. Changes of a file are run against the test program of its folder.
"""
import argparse
import random
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COPY = ROOT / "build/mutants/tree"
BUILD = ROOT / "build/mutants/build"
PROGRAMS = {"base": "test_base", "hw": "test_hw", "sim/model": "test_model", "sim/step": "test_step",
            "sim/serve": "test_serve", "sim/plan": "test_plan", "reports": "test_reports"}
# Sources are formatted: an operator with a blank on both sides is neither a template's bracket nor a sign.
SWAPS = [(" < ", " <= "), (" <= ", " < "), (" > ", " >= "), (" >= ", " > "), (" == ", " != "), (" != ", " == "),
         (" && ", " || "), (" || ", " && "), (" + ", " - "), (" - ", " + "), (" * ", " / "), (" / ", " * "),
         (" += ", " -= "), (" -= ", " += "), ("++", "--"), ("--", "++"), ("std::min", "std::max"),
         ("std::max", "std::min"), ("true", "false"), ("false", "true"), ("if (", "if (!("), (" % ", " * ")]
NUMBER = re.compile(r"(?<![\w.])(\d+)(?![\w.'])")
PASSED = (0, 77)  # 77: some were skipped
STATEMENT = re.compile(r"^\s+(\(void\))?[\w\[\].>()*-]+(\(.*\)| [+-]?= .*);$")


def code_of(line):
    """The line with its strings and comments blanked, so that positions do not change."""
    line = re.sub(r'"(\\.|[^"\\])*"', lambda m: '"' + "_" * (len(m.group()) - 2) + '"', line)
    line = re.sub(r"'(\\.|[^'\\])'", "'_'", line)
    comment = line.find("//")
    return line if comment < 0 else line[:comment]


def closing(code, start):
    """Where the bracket that opens before `start` closes; -1 where it does not on this line."""
    depth = 1
    for i in range(start, len(code)):
        depth += {"(": 1, ")": -1}.get(code[i], 0)
        if depth == 0:
            return i
    return -1


def changes_of(line):
    code = code_of(line)
    if code.lstrip().startswith(("#", "using", "static_assert", "namespace", "template", "///")) or "SIM_CHECK" in code:
        return
    for old, new in SWAPS:
        for m in re.finditer(re.escape(old), code):
            if old.isalpha() and re.match(r"\w", code[m.end():m.end() + 1]):
                continue
            if old == "if (":
                end = closing(code, m.end())
                if end < 0 or ";" in code[m.end():end]:
                    continue
                yield line[:m.start()] + new + line[m.end():end] + ")" + line[end:]
            else:
                yield line[:m.start()] + new + line[m.end():]
    for m in NUMBER.finditer(code):
        yield line[:m.start()] + str(int(m.group()) + 1) + line[m.end():]
    if STATEMENT.match(code) and not re.match(r"\s+return\b", code):
        yield re.match(r"\s+", line).group() + ";"


def run(command, seconds=900):
    """The exit status; None after a timeout."""
    try:
        return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=seconds).returncode
    except subprocess.TimeoutExpired:
        return None


def prepare(programs):
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout.split(b"\0")
    for name in filter(None, (f.decode() for f in files)):
        source, there = ROOT / name, COPY / name
        if not source.is_file() or (there.is_file() and there.read_bytes() == source.read_bytes()):
            continue
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, there)  # with the time of now: what was built of an earlier version is older
    if not (BUILD / "build.ninja").is_file():
        subprocess.run(["cmake", "-G", "Ninja", "-S", COPY, "-B", BUILD, "-DCMAKE_BUILD_TYPE=Release",
                        "-DCMAKE_CXX_FLAGS_RELEASE=-O1", "-DROOFCAST_CUDA=OFF"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", BUILD, *programs], check=True, stdout=sys.stderr)


def program_of(name):
    box = next((b for b in PROGRAMS if name.startswith(b + "/")), None)
    if box is None:
        sys.exit(f"{name}: no test program is known for it; those of {', '.join(PROGRAMS)} are")
    return PROGRAMS[box]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--most", type=int, default=0, help="changes of a file, drawn at random (default: all)")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--tests", default="*", help="doctest filter of test cases")
    options.add_argument("files", nargs="+")
    asked = options.parse_args()
    programs = {name: program_of(name) for name in asked.files}
    prepare(sorted(set(programs.values())))
    counts = {"noticed": 0, "survived": 0, "no program": 0}
    for name, program in programs.items():
        path, test = COPY / name, [BUILD / "tests" / program, "-aa=1", f"-tc={asked.tests}"]
        began = time.monotonic()
        if run(test) not in PASSED:
            sys.exit(f"{program} fails without any change")
        patience = 10 + 5 * (time.monotonic() - began)
        lines = path.read_text().split("\n")
        changes = [(i, new) for i, line in enumerate(lines) for new in changes_of(line)]
        if asked.most and len(changes) > asked.most:
            changes = sorted(random.Random(asked.seed).sample(changes, asked.most))
        try:
            for i, new in changes:
                path.write_text("\n".join(lines[:i] + [new] + lines[i + 1:]))
                if run(["ninja", "-C", BUILD, program]) != 0:
                    counts["no program"] += 1
                elif run(test, patience) in PASSED:
                    counts["survived"] += 1
                    print(f"{name}:{i + 1}: {lines[i].strip()}\n    survives as: {new.strip()}", flush=True)
                else:
                    counts["noticed"] += 1
        finally:
            path.write_text("\n".join(lines))
        subprocess.run(["ninja", "-C", BUILD, program], check=True, stdout=subprocess.DEVNULL)
        print(f"{name}: {counts} so far", file=sys.stderr, flush=True)
    print(", ".join(f"{n} {what}" for what, n in counts.items()))


if __name__ == "__main__":
    main()
