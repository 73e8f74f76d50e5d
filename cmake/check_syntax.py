#!/usr/bin/env python3
"""Compiles every source of a configured build without making objects, on all cores, and prints what fails.

usage: cmake/check_syntax.py BUILD_FOLDER [WORD]     (WORD: only sources with it in their path)

Generated sources are skipped.
"""
import concurrent.futures
import json
import os
import shlex
import subprocess
import sys


def check(entry):
    words = shlex.split(entry["command"])
    at = words.index("-o")
    words[at:at + 2] = ["-fsyntax-only"]
    done = subprocess.run(words, cwd=entry["directory"], capture_output=True, text=True)
    return entry["file"], done.returncode, done.stderr


def main():
    folder, word = os.path.abspath(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""
    with open(os.path.join(folder, "compile_commands.json")) as file:
        entries = {entry["file"]: entry for entry in json.load(file)}
    entries = [e for e in entries.values() if not e["file"].startswith(folder + "/") and word in e["file"]]
    if not entries:
        sys.exit(f"no source of {folder} has '{word}' in its path")
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for file, status, errors in pool.map(check, entries):
            if status != 0:
                failed += 1
                print(errors, file=sys.stderr)
    print(f"{len(entries)} sources, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
