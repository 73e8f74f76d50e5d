#!/usr/bin/env python3
"""Times the explorer's page in a headless Chromium: cold start, a step of a slider, a plan, frames while a slider is dragged.

usage: tests/explore/speed.py ROOFCAST [SITE]       SITE: build/wasm/site, measured beside the program's own page
Not a test: its output depends on the machine and its load. CPU time is that of all processes of the browser.
"""

import functools
import glob
import http.server
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser_test import ROOFCAST, Browser  # noqa: E402

STATE = "const s = document.getElementById('plan-state'), w = document.getElementById('plan-winner'); return [performance.now(), w ? w.textContent.length > 10 : false, s ? s.textContent : '', s ? s.className : '']"
DRAG = """
  const [id, from, to, page, done] = arguments, c = document.getElementById(id), frames = [];
  const kpi = () => page === "learn" ? document.getElementById("kpi-tpot_ms").dataset.value : "";
  let last = performance.now(), on = true;
  const frame = (now) => { frames.push(now - last); last = now; if (on) requestAnimationFrame(frame); };
  requestAnimationFrame(frame);
  (async () => {
    const steps = [];
    for (let v = from; v <= to; ++v) {
      const before = kpi(), began = performance.now();
      c.value = v; c.dispatchEvent(new Event("input"));
      while (page === "learn" && kpi() === before && performance.now() - began < 5000) await new Promise((r) => setTimeout(r, 2));
      steps.push(performance.now() - began);
      await new Promise((r) => setTimeout(r, page === "learn" ? 300 : 60));
    }
    on = false;
    done([steps, frames]);
  })();"""


def cpu_ms(folder):
    ticks = 0
    for process in glob.glob("/proc/[0-9]*"):
        try:
            with open(process + "/cmdline", "rb") as line, open(process + "/stat", encoding="utf-8") as stat:
                if folder.encode() in line.read():
                    ticks += sum(int(n) for n in stat.read().rsplit(")", 1)[1].split()[11:13])
        except OSError:
            pass
    return 1000 * ticks / os.sysconf("SC_CLK_TCK")


def cold(url, opened):
    """A fresh browser: until the winner is there, and until the page's own engine has answered."""
    with tempfile.TemporaryDirectory() as folder:
        browser = opened(folder)
        try:
            before, shown, found = cpu_ms(folder), None, [0, False, "", ""]
            browser.cdp("Page.navigate", url=url)
            given_up = time.monotonic() + 120
            while not found[2].startswith("planned"):
                time.sleep(0.02)
                found = browser.run(STATE)
                if found[3] == "alarm" or time.monotonic() > given_up:
                    raise SystemExit(f"speed.py: no plan: {found[2]}")
                if found[1] and shown is None:
                    shown = found[0], cpu_ms(folder) - before
            print(f"  cold start: winner after {shown[0]:.0f} ms ({shown[1]:.0f} ms of CPU time), {found[2]}; {cpu_ms(folder) - before:.0f} ms of CPU time")
        finally:
            browser.close()


def warm(url, opened):
    with tempfile.TemporaryDirectory() as folder:
        browser = opened(folder)
        try:
            drag = lambda *words: browser.call("POST", browser.session + "/execute/async", {"script": DRAG, "args": list(words)})  # noqa: E731
            rest = lambda frames: f"{1000 * len(frames) / sum(frames):.0f} frames a second, the longest {max(frames):.0f} ms"  # noqa: E731
            browser.go(url + "#learn")
            browser.until("return document.body.dataset.ready && document.getElementById('kpi-tpot_ms')", tries=4000)
            time.sleep(2)
            steps, frames = drag("in-batch", 3, 16, "learn")
            print(f"  estimate: a step of the slider in {statistics.median(steps):.0f} ms (median of {len(steps)}), {max(steps):.0f} at most; {rest(frames)}")
            browser.go("about:blank")
            browser.go(url + "#plan")
            browser.until("return document.body.dataset.planned", tries=8000)
            for rate in (7, 8, 9):
                before = cpu_ms(folder)
                browser.run("const c = document.getElementById('plan-at-rate'); c.value = arguments[0]; c.dispatchEvent(new Event('change'))", rate)
                time.sleep(0.05)
                said = browser.until("const s = document.getElementById('plan-state').textContent; return s.startsWith('planned') && s", tries=4000)
                print(f"  plan, {rate} requests/s: {said}, {cpu_ms(folder) - before:.0f} ms of CPU time in the browser")
                time.sleep(5)
            _, frames = drag("plan-rate", 100, 130, "plan")
            print(f"  a drag on the plan: {rest(frames)}")
        finally:
            browser.close()


def main():
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        print("SKIPPED: no chromium with chromedriver (Debian: chromium chromium-driver)")
        return 77
    opened = lambda folder: Browser(chromium, driver, folder)  # noqa: E731
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    program = subprocess.Popen([ROOFCAST, "explore", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        pages = [("the program's page", program.stdout.readline().strip())]
        if len(sys.argv) > 2:
            quiet = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(quiet, directory=sys.argv[2]))
            threading.Thread(target=server.serve_forever, daemon=True).start()
            pages.append(("the engine in the tab", f"http://127.0.0.1:{server.server_port}/"))
        for name, url in pages:
            print(name)
            cold(url, opened)
            warm(url, opened)
    finally:
        program.terminate()
    return 0


if __name__ == "__main__":
    sys.exit(main())
