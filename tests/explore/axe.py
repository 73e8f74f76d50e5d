#!/usr/bin/env python3
"""Runs axe-core over every page: the explorer's two tabs and a report, light and dark, wide and on a phone.

usage: tests/explore/axe.py ROOFCAST AXE.JS       AXE.JS: axe.min.js of the npm package axe-core
Exits with 1 if axe finds a violation or leaves a low contrast undecided; with 77 without a browser.
"""

import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser_test import CONTRAST, PLANNED, ROOFCAST, Browser  # noqa: E402

RUN = """
  const done = arguments[arguments.length - 1];
  axe.run(document, { resultTypes: ["violations", "incomplete"] }).then((r) => done({
    violations: r.violations.flatMap((v) => v.nodes.map((n) => v.id + " (" + v.impact + "): " + n.target.join(" ") + ": " + v.help)),
    undecided: r.incomplete.flatMap((v) => v.nodes.map(() => v.id)) }), (error) => done({ violations: [String(error)], undecided: [] }));"""


def check(browser, source, what):
    """Violations of the page that is shown. Contrast that axe cannot decide is measured by browser_test."""
    browser.run("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    browser.run(source)
    found = browser.call("POST", browser.session + "/execute/async", {"script": RUN, "args": []})
    poor = browser.run(CONTRAST)
    counts = {rule: found["undecided"].count(rule) for rule in sorted(set(found["undecided"]))}
    print(f"{what}: {len(found['violations'])} violations, {len(poor)} texts under 4.5 to 1, left undecided: {counts or 'nothing'}")
    for line in found["violations"] + poor:
        print("  " + line)
    return len(found["violations"]) + len(poor)


def main():
    source = open(sys.argv[2], encoding="utf-8").read()
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        print("SKIPPED: no chromium with chromedriver (Debian: chromium chromium-driver)")
        return 77
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, words in (("plan", ["plan", "chat-70b"]), ("simulation", ["simulate", "chat-70b-4xh100", "--intervals"])):
            subprocess.run([ROOFCAST, *words, "--format", "json", "--out", f"{name}.json"], check=True, cwd=folder, stderr=subprocess.DEVNULL)
            subprocess.run([ROOFCAST, "report", f"{name}.json", "--out", f"{name}.html"], check=True, cwd=folder)
        server = subprocess.Popen([ROOFCAST, "explore", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        browser = Browser(chromium, driver, folder)
        try:
            url = server.stdout.readline().strip()
            browser.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"}])
            for width, height in ((1440, 900), (390, 844)):
                browser.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)
                for page, ready in ((url + "#plan", PLANNED), (url + "#learn", "return document.body.dataset.ready"),
                                    (f"file://{folder}/plan.html", "return document.readyState === 'complete'"),
                                    (f"file://{folder}/simulation.html", "return document.readyState === 'complete'")):
                    browser.go("about:blank")
                    browser.go(page)
                    browser.until(ready, what=page, tries=6000)
                    for theme in ("light", "dark"):
                        browser.run("const now = document.documentElement.dataset.theme || 'light'; if (now !== arguments[0]) document.getElementById('theme').click()", theme)
                        bad += check(browser, source, f"{page.split('/')[-1]}, {width} px, {theme}")
        finally:
            browser.close()
            server.terminate()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
