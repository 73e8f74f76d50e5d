#!/usr/bin/env python3
"""Loads a simulated run into Prometheus and runs every query of docs/grafana/vllm.json: each must have a result.

usage: tests/reports/dashboard.py ROOFCAST [FOLDER OF promtool AND prometheus]
Exits with 77 without Prometheus (Debian: prometheus).
"""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
BEGIN = 1735689600  # 2025-01-01, when a simulated run begins


def program(name):
    return shutil.which(name, path=sys.argv[2] if len(sys.argv) > 2 else None)


def answers(address, expression):
    """Values that are numbers, of a query every ten seconds."""
    query = urllib.parse.urlencode({"query": expression, "start": BEGIN, "end": BEGIN + 600, "step": 10})
    with urllib.request.urlopen(f"{address}/api/v1/query_range?{query}", timeout=20) as reply:
        series = json.load(reply)["data"]["result"]
    return [float(value) for s in series for _, value in s["values"] if value not in ("NaN", "+Inf")]


def main():
    roofcast = os.path.abspath(sys.argv[1])
    promtool, prometheus = program("promtool"), program("prometheus")
    if not promtool or not prometheus:
        print("SKIPPED: no promtool and prometheus (Debian: prometheus)")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([roofcast, "simulate", "chat-70b-4xh100", "--openmetrics", "run.txt", "--out", "run.csv", "--format", "csv"],
                       check=True, cwd=folder, stderr=subprocess.DEVNULL)
        subprocess.run([promtool, "tsdb", "create-blocks-from", "openmetrics", "run.txt", "data"], check=True, cwd=folder,
                       stdout=subprocess.DEVNULL)
        pathlib.Path(folder, "none.yml").write_text("{}\n")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        server = subprocess.Popen([prometheus, "--config.file=none.yml", "--storage.tsdb.path=data", "--storage.tsdb.retention.time=100y",
                                   f"--web.listen-address={address}"], cwd=folder, stderr=subprocess.DEVNULL)
        try:
            for _ in range(200):
                try:
                    urllib.request.urlopen(f"http://{address}/-/ready", timeout=5)
                    break
                except OSError:
                    time.sleep(0.05)
            bad = 0
            for panel in json.loads((ROOT / "docs/grafana/vllm.json").read_text())["panels"]:
                for target in panel["targets"]:
                    if "simulated" not in target["legendFormat"]:
                        continue
                    expression = target["expr"].replace("$__rate_interval", "1m").replace("${shift}", "1s").replace("$model", ".*")
                    values = answers(f"http://{address}", expression)
                    print(f"{panel['title']}, {target['legendFormat']}: {len(values)} values" +
                          (f", {min(values):.4g} to {max(values):.4g}" if values else ""))
                    bad += len(values) < 10
        finally:
            server.terminate()
            server.wait()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
