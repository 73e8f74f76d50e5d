#!/usr/bin/env python3
"""Prints which share of the lines the tests ran, folder by folder, and the files with the most lines that none ran.

usage: tests/coverage.py BUILD [--files N] [--lines PREFIX]

BUILD was compiled by g++ with --coverage, and its tests were run. --lines lists the lines of the sources under PREFIX.
"""
import argparse
import collections
import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("base", "hw", "sim", "reports", "library", "explore", "calibrate", "cli")
BATCH = 20


def counts_of(notes):
    """What gcov says of some objects: {source: {line: runs}}."""
    told = subprocess.run(["gcov", "--json-format", "--stdout", *notes], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, check=True).stdout
    runs = collections.defaultdict(collections.Counter)
    for line in told.splitlines():
        for source in json.loads(line)["files"] if line.startswith("{") else []:
            path = Path(source["file"])
            if not path.is_relative_to(ROOT) or path.relative_to(ROOT).parts[0] not in FOLDERS:
                continue
            counted = runs[str(path.relative_to(ROOT))]
            for one in source["lines"]:
                counted[one["line_number"]] += one["count"]
    return runs


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--files", type=int, default=20, help="so many files with the most lines that no test ran")
    parser.add_argument("--lines", metavar="PREFIX", help="list these lines for the sources whose path begins so")
    args = parser.parse_args()
    if not shutil.which("gcov"):
        sys.exit("coverage: gcov is missing; it is part of the package gcc")
    notes = sorted(str(path) for path in args.build.rglob("*.gcno"))  # also of objects that nothing ran
    if not any(args.build.rglob("*.gcda")):
        sys.exit(f"coverage: no test has run in {args.build}; ./dev coverage builds and runs them")

    runs = collections.defaultdict(collections.Counter)
    with ThreadPoolExecutor() as pool:
        for part in pool.map(counts_of, (notes[i : i + BATCH] for i in range(0, len(notes), BATCH))):
            for source, counted in part.items():
                runs[source].update(counted)

    missed = {source: sorted(line for line, count in counted.items() if count == 0) for source, counted in runs.items()}
    if args.lines is not None:
        for source in sorted(missed):
            if source.startswith(args.lines):
                text = (ROOT / source).read_text().splitlines()
                for line in missed[source]:
                    print(f"{source}:{line}: {text[line - 1]}")
        return
    print(f"{'folder':<12}{'lines':>8}{'run':>8}{'share':>9}")
    for folder in FOLDERS:
        inside = [source for source in runs if source.startswith(folder + "/")]
        lines = sum(len(runs[source]) for source in inside)
        if lines:
            ran = lines - sum(len(missed[source]) for source in inside)
            print(f"{folder:<12}{lines:>8}{ran:>8}{100 * ran / lines:>7.1f} %")
    print("\nlines that no test ran")
    for source in sorted(missed, key=lambda source: (-len(missed[source]), source))[: args.files]:
        if missed[source]:
            print(f"{len(missed[source]):>5} of {len(runs[source]):<5} {source}")


if __name__ == "__main__":
    main()
