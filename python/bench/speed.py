"""Speed of the Python package.

usage: PYTHONPATH=build/release/python python3 python/bench/speed.py [PROGRAM]
PROGRAM: build/release/bench/roofcast_library_bench, the same estimate in C++ only.
"""

import subprocess
import sys
import time

IMPORT = "import sys, time; start = time.perf_counter(); import roofcast; print(time.perf_counter() - start)"


def best(call, repeats):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times), sorted(times)[repeats // 2]


def show(name, times, unit=1e6, suffix="us"):
    print(f"{name:<58} {times[0] * unit:9.1f} {suffix} at best, {times[1] * unit:9.1f} {suffix} median")


def main():
    imports = [float(subprocess.check_output([sys.executable, "-c", IMPORT])) for _ in range(11)]
    show("import roofcast", (min(imports), sorted(imports)[5]), 1e3, "ms")

    import roofcast

    scenario = {"model": "llama-3.1-8b", "gpu": "h100-sxm"}
    roofcast.estimate(scenario)  # reads the specs
    show("estimate({...}, batch=16)", best(lambda: roofcast.estimate(scenario, batch=16), 3000))
    show("the same, and .tpot_ms", best(lambda: roofcast.estimate(scenario, batch=16).tpot_ms, 3000))
    show("the same, and every operator", best(lambda: roofcast.estimate(scenario, batch=16).operators, 1000))
    show("the same, and to_dict()", best(lambda: roofcast.estimate(scenario, batch=16).to_dict(), 1000))
    grid = {"batch": range(1, 101), "prompt_tokens": range(100, 10_100, 100), "output_tokens": range(10, 110, 10)}
    points = 10**5
    seconds = best(lambda: roofcast.estimate_grid(scenario, grid), 2)
    show(f"estimate_grid of {points} points", seconds, 1, "s")
    print(f"{'a point of it':<58} {seconds[0] / points * 1e6:9.1f} us")
    if len(sys.argv) > 1:
        print(subprocess.run([sys.argv[1]], capture_output=True, text=True).stdout)


main()
