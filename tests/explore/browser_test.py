"""Drives the explorer and a report page in a headless Chromium, as a user would.

usage: browser_test.py ROOFCAST [SITE]         SITE: the page without a server and the live report alone, which then must be built
Exits with 77 without chromium, chromedriver or Chart.js. Only the standard library: WebDriver is JSON over HTTP.
"""

import functools
import http.server
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

ROOFCAST = os.path.abspath(sys.argv[1])
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KPIS = ["ttft_ms", "tpot_ms", "output_tokens_per_s", "request_latency_ms"]
TAB, RIGHT, ENTER = "\ue004", "\ue014", "\ue007"


class Browser:
    def __init__(self, chromium, driver, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        environment = {**os.environ, "HOME": folder, "XDG_CONFIG_HOME": folder, "XDG_CACHE_HOME": folder}
        self.driver = subprocess.Popen([driver, f"--port={self.port}"], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, env=environment)
        self.session = ""
        for _ in range(200):
            try:
                self.call("GET", "/status")
                break
            except OSError:
                time.sleep(0.02)
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                     "--disable-background-networking", "--disable-extensions", "--window-size=1280,900",
                     f"--user-data-dir={folder}/profile"]
        options = {"browserName": "chrome", "goog:chromeOptions": {"args": arguments, "binary": chromium},
                   "goog:loggingPrefs": {"browser": "ALL"}}
        opened = self.call("POST", "/session", {"capabilities": {"alwaysMatch": options}})
        self.session = "/session/" + opened["sessionId"]

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, method=method,
                                         headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.load(reply)["value"]

    def go(self, url):
        self.call("POST", self.session + "/url", {"url": url})

    def run(self, script, *arguments):
        return self.call("POST", self.session + "/execute/sync", {"script": script, "args": list(arguments)})

    def keys(self, text):
        actions = [{"type": kind, "value": key} for key in text for kind in ("keyDown", "keyUp")]
        self.call("POST", self.session + "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def choose(self, field, path):
        """Selects a file like the button of a field."""
        element = self.call("POST", self.session + "/element", {"using": "css selector", "value": field})
        self.call("POST", f"{self.session}/element/{next(iter(element.values()))}/value", {"text": path})

    def console(self):
        return [entry for entry in self.call("POST", self.session + "/se/log", {"type": "browser"})
                if entry["level"] in ("SEVERE", "WARNING")]

    def cdp(self, command, **parameters):
        return self.call("POST", self.session + "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def until(self, script, *arguments, what="", tries=400):
        for _ in range(tries):
            found = self.run(script, *arguments)
            if found:
                return found
            time.sleep(0.015)
        raise AssertionError(f"never came true: {what or script}")

    def close(self):
        try:
            if self.session:
                self.call("DELETE", self.session)
        finally:
            self.driver.terminate()
            self.driver.wait()


def shown(browser):
    """The exact numbers on the page, and its command line, which prints them."""
    return browser.run("""
      const of = (id) => document.getElementById("kpi-" + id).dataset.value;
      return [arguments[0].map((id) => Number(of(id))), of("fits"), Number(of("usd_per_million_output_tokens")),
              document.getElementById("command").textContent];""", KPIS)


def check_against_program(browser):
    numbers, fits, usd, command = shown(browser)
    compare(command, numbers, fits, usd)


def compare(command, numbers, fits, usd):
    words = subprocess.run(["xargs", "-n1", "printf", "%s\\n"], input=command, text=True, capture_output=True, check=True)
    arguments = words.stdout.splitlines()
    assert arguments[:2] == ["roofcast", "estimate"], command
    printed = subprocess.run([ROOFCAST, *arguments[1:], "--format", "json"], capture_output=True, text=True)
    assert printed.stdout, (command, printed.stderr)
    estimate = json.loads(printed.stdout)
    assert numbers == [estimate[key] for key in KPIS], (command, numbers)
    assert fits == str(estimate["memory"]["fits"]).lower(), command
    assert usd == estimate["cost"]["usd_per_million_output_tokens"], command


MOVE = """
  const [wishes, models, done] = arguments, command = () => document.getElementById("command").textContent;
  const numbers = () => [...document.querySelectorAll(".kpi")].map((k) => k.id + "=" + k.dataset.value);
  const change = (id, value, kind) => { const c = document.getElementById(id); c.value = value; c.dispatchEvent(new Event(kind)); };
  const until = async (test, what) => { for (let i = 0; i < 2000; ++i) { if (test()) return; await new Promise((r) => setTimeout(r, 3)); } throw new Error(what); };
  (async () => {
    const moved = [];
    document.getElementById("sections").hidden = true;  // the numbers alone: pictures were looked at before
    const controls = [...document.querySelectorAll("#controls input[type=range], #controls select")].filter((c) => c.offsetParent);
    for (const { id, tagName } of controls) {
      document.getElementById("reset").click();
      await until(() => command().includes("--batch 16 ") && command().includes("llama-3.1-8b") && command().split(" ").length === 12, "reset before " + id);
      for (const [key, value] of models[id] || []) {
        const before = command();
        change(key, value, document.getElementById(key).tagName === "SELECT" ? "change" : "input");
        await until(() => command() !== before, key + " before " + id);
      }
      const before = command(), old = numbers(), c = document.getElementById(id);
      if (tagName === "SELECT") change(id, wishes[id] || [...c.options].map((o) => o.value).find((v) => v && v !== c.value), "change");
      else change(id, Number(c.value) + 1, "input");
      await until(() => command() !== before && document.getElementById("kpis").className === "kpis", id);
      moved.push([id, command(), old, numbers()]);
    }
    return moved;
  })().then((moved) => done({ moved }), (error) => done({ error: String(error) }));"""


def move_every_control(browser):
    """Each slider one step on, each choice to another option: the command changes, and so do the numbers, to those that
    the command prints."""
    wishes = {"in-gpu": "h200-sxm", "in-engine": "sglang", "in-weights": "fp8", "in-activations": "bf16",
              "in-kv_cache_dtype": "fp8", "in-speculation": "eagle", "in-attention": "mqa"}
    experts = [["in-model", "mixtral-8x7b"]]
    setups = {"in-ep": [*experts, ["in-tp", 1]], "in-attention_dp": [*experts, ["in-tp", 1], ["in-ep", 1]],
              "in-activations": [["in-weights", "fp8"]]}
    answer = browser.call("POST", browser.session + "/execute/async", {"script": MOVE, "args": [wishes, setups]})
    assert "error" not in answer, answer
    assert len(answer["moved"]) >= 18, answer
    for control, command, before, after in answer["moved"]:
        assert before != after, control
        values = dict(pair[4:].split("=") for pair in after)
        compare(command, [float(values[key]) for key in KPIS], values["fits"], float(values["usd_per_million_output_tokens"]))


def one_slider_by_keyboard(browser):
    before = browser.run("document.getElementById('in-batch').focus(); return document.getElementById('at-batch').value")
    browser.keys(RIGHT)
    browser.until("return document.getElementById('at-batch').value !== arguments[0] && "
                  "document.getElementById('command').textContent.includes('--batch ' + document.getElementById('at-batch').value + ' ')", before)


def pins_a_deployment(browser):
    """Pinned as A, the figures beside it say what a change makes of them, and nothing once it is unpinned."""
    pin = "document.getElementById('learn-pin').click();"
    compare = "return document.getElementById('learn-compare').textContent"
    browser.run("document.getElementById('reset').click()")
    browser.until("return document.getElementById('command').textContent.includes('--batch 16 ')")
    before = shown(browser)[0]
    browser.run(pin)
    assert browser.run(compare) == "Nothing is changed yet."
    one_slider_by_keyboard(browser)
    browser.until(compare + ".startsWith('Changed: batch: 16')")
    browser.until("return document.querySelectorAll('.against').length === 5")
    for key, was, now in zip(KPIS, before, shown(browser)[0]):
        share = 100 * (now / was - 1)
        words = browser.run("return document.querySelector('#kpi-' + arguments[0] + ' .against').textContent", key)
        number, rest = words.split(" ", 1)
        assert rest == ("% above A" if share > 0 else "% below A"), words
        assert abs(float(number) - abs(share)) <= 0.01 * abs(share), (words, share)
    browser.run(pin)
    assert browser.run("return document.querySelectorAll('.against').length") == 0


def every_canvas_draws(browser):
    ids = browser.run("return [...document.querySelectorAll('#page-learn article')].map((a) => a.id)")
    assert len(ids) >= 12, ids
    for card in ids:
        browser.run("document.getElementById(arguments[0]).scrollIntoView({block: 'center'})", card)
        browser.until("return document.getElementById(arguments[0]).querySelector('.finding').textContent.length > 10", card,
                      what=card)
        assert not browser.run("return document.getElementById(arguments[0]).querySelector('.finding.alarm')", card), card
        # The canvas is not empty: not all of its pixels are equal.
        browser.until("""
          const canvas = document.getElementById(arguments[0]).querySelector("canvas");
          if (!canvas) return document.getElementById(arguments[0]).querySelectorAll(".format .bit").length > 50;
          if (!canvas.width) return false;
          const copy = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height });
          const pen = copy.getContext("2d", { willReadFrequently: true });
          pen.drawImage(canvas, 0, 0);
          const at = pen.getImageData(0, 0, copy.width, copy.height).data;
          const seen = new Set();
          for (let i = 0; i < at.length; i += 4 * 37) seen.add(at[i] + "," + at[i + 1] + "," + at[i + 2]);
          return seen.size > 4;""", card, what=card + " draws")
        browser.run("document.getElementById(arguments[0]).querySelector('summary').click()", card)
        browser.until("return document.getElementById(arguments[0]).querySelectorAll('tbody tr').length > 1", card)


def plays(browser):
    browser.run("document.getElementById('card-timeline').scrollIntoView({block: 'center'}); document.querySelector('#card-timeline button').focus()")
    browser.keys(ENTER)
    browser.until("const s = document.querySelector('#card-timeline input'); return s.value > 20 && s.value < 900", what="playing")
    browser.keys(ENTER)
    assert browser.run("return document.querySelector('#card-timeline button').textContent") == "Play"
    browser.run("document.querySelector('#card-cache button').focus()")
    browser.keys(ENTER)
    assert browser.run("return document.querySelector('#card-cache output').textContent") == "step 31 of 32"


def keyboard_reaches_everything(browser):
    browser.run("scrollTo(0, 0); document.querySelector('.skip').focus()")
    wanted = set(browser.run("""return [...document.querySelectorAll("header button, #controls input, #controls select")]
                                .filter((c) => c.offsetParent && c.tabIndex >= 0).map((c) => c.id)"""))
    for _ in range(len(wanted) + 8):
        browser.keys(TAB)
        wanted.discard(browser.run("return document.activeElement.id"))
    assert not wanted, wanted
    unnamed = browser.run("""return [...document.querySelectorAll("input, select, button, canvas")].filter((c) =>
      !(c.labels && c.labels.length) && !c.getAttribute("aria-label") && !c.textContent.trim()).map((c) => c.outerHTML)""")
    assert not unnamed, unnamed


CONTRAST = """
  const parse = (c) => c.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (n) => { for (; n; n = n.parentElement) { const c = parse(getComputedStyle(n).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
  const poor = [];
  for (const n of document.querySelectorAll("body *")) {
    if (!n.offsetParent || n.disabled || ![...n.childNodes].some((t) => t.nodeType === 3 && t.textContent.trim())) continue;
    const a = light(parse(getComputedStyle(n).color)), b = light(behind(n)), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.push(ratio.toFixed(2) + " " + n.tagName + "." + n.className + " " + n.textContent.slice(0, 30));
  }
  return poor;"""


def reads_well(browser, url):
    for page in ("learn", "plan"):
        browser.go(url + "#" + page)
        browser.until("return document.body.dataset.ready")
        contrast(browser)
    browser.cdp("Emulation.setDeviceMetricsOverride", width=360, height=740, deviceScaleFactor=1, mobile=True)
    for page in ("learn", "plan"):
        browser.go("about:blank")
        browser.go(url + "#" + page)
        browser.until("return document.body.dataset.ready")
        assert browser.run("return document.documentElement.scrollWidth") <= 360, page
    browser.cdp("Emulation.clearDeviceMetricsOverride")


def contrast(browser):
    for theme in ("light", "dark"):
        browser.run("if (document.documentElement.dataset.theme !== arguments[0]) document.getElementById('theme').click()", theme)
        poor = browser.until("const p = (() => {" + CONTRAST + "})(); return p.length ? null : 'fine'", what="contrast, " + theme)
        assert poor == "fine"


def link_reproduces(browser, url):
    state = "model=llama-2-13b&gpu=a100-sxm&weights=int8&tp=2&batch=48&attention=gqa&kv_heads=4&speculation=eagle&acceptance=0.6"
    browser.go(url + "?" + state)
    browser.until("return document.getElementById('command').textContent.includes('--set')")
    check_against_program(browser)
    first = shown(browser)
    address = browser.run("return location.href")
    browser.run("const b = document.getElementById('in-batch'); b.value = 3; b.dispatchEvent(new Event('input'))")
    browser.until("return document.getElementById('command').textContent !== arguments[0]", first[3], what="batch")
    changed = browser.run("return location.href")
    assert changed != address and "batch=4" in changed, changed
    second = shown(browser)
    browser.go("about:blank")
    browser.go(changed)
    browser.until("return document.getElementById('command') && document.getElementById('command').textContent !== ''")
    assert shown(browser) == second
    browser.go(url + "?model=%3Cimg%20src=x%20onerror=alert(1)%3E&gpu=h100-sxm")
    browser.until("return document.getElementById('state').textContent.includes('unknown model')")
    assert not browser.run("return document.querySelector('img')")


PLANNED = "return document.body.dataset.planned && !document.getElementById('plan-answer').classList.contains('stale') && document.getElementById('plan-title') && document.getElementById('plan-title').firstChild.textContent"


def planned(browser, what):
    return browser.until(PLANNED, what=what, tries=4000)


def planner(browser, url):
    """A load in, the winner that the program finds for the page's own plan file out."""
    small = "#plan?model=llama-3.1-8b&gpus=h100-sxm%2Cl40s&max_gpus=4&confidence=0&rate=4"
    browser.go(url + small)
    first = planned(browser, "a plan")
    a = check_plan(browser, first)
    charts_zoom_and_pin(browser)
    heights = browser.run("return [...document.querySelectorAll('#plan-gpus label')].map((l) => l.getBoundingClientRect().height)")
    assert len(heights) > 40 and min(heights) > 12, heights  # each can be read and clicked
    browser.run("document.getElementById('plan-pin').click()")
    browser.run("const r = document.getElementById('plan-at-rate'); r.value = 40; r.dispatchEvent(new Event('change'))")
    browser.until("return location.hash.includes('rate=40')")
    browser.until(PLANNED + " !== arguments[0]", first, what="another winner", tries=4000)
    b = check_plan(browser, planned(browser, "the other plan"))
    assert browser.run("return [...document.querySelectorAll('#plan-winner .against')].every((n) => n.textContent.startsWith('B − A: ')) && document.querySelectorAll('#plan-winner .against').length") >= 3
    said, more = browser.run("return document.querySelector('#plan-usd .against').textContent"), b["usd_per_hour"] - a["usd_per_hour"]
    assert said.startswith("B − A: +") and abs(float(said[8:].replace(",", "")) - more) <= 0.005 * more, (said, more)  # three digits of it
    assert "rate: 4 → 40" in browser.run("return document.getElementById('plan-compare').textContent")
    browser.run("history.back()")
    browser.until("return document.getElementById('plan-at-rate').value === '4'", what="back")
    browser.until(PLANNED + " === arguments[0]", first, what="the first winner again", tries=4000)
    browser.run("const t = document.getElementById('plan-at-ttft'); t.value = 1; t.dispatchEvent(new Event('change'))")
    browser.until("return document.getElementById('plan-winner').textContent.includes('Nothing meets these objectives')", what="no answer", tries=4000)
    assert not [e for e in browser.console() if "400 (Bad Request)" not in e["message"]]


MIDDLE = "const q = document.querySelector('#plan-card-pareto canvas').getBoundingClientRect(); return [q.x + q.width * arguments[0], q.y + q.height * arguments[1]]"


def mouse(browser, kind, x, y, **more):
    browser.cdp("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1, **more)


skipped = []  # for want of a package
unbuilt = []  # for want of ./dev wasm


def charts_zoom_and_pin(browser):
    """By mouse: a stretch is chosen, all is shown again, a point is pinned. By keyboard the same."""
    chart = "document.querySelector('#plan-card-pareto canvas')"
    ends = f"const s = Chart.getChart({chart}).scales; return [s.x.min, s.x.max, s.y.min, s.y.max]"
    if browser.run("return typeof Chart === 'undefined'"):
        skipped.append("zoom and pin (built without Chart.js; Debian: libjs-chart.js)")
        return
    browser.run(chart + ".scrollIntoView({block: 'center'})")
    time.sleep(0.4)
    whole = browser.run(ends)
    names = f"return Chart.getChart({chart}).written.names.length"
    named = browser.run(names)
    assert named > 0
    (x, y), (u, v) = browser.run(MIDDLE, 0.4, 0.2), browser.run(MIDDLE, 0.7, 0.5)
    mouse(browser, "mousePressed", x, y)
    mouse(browser, "mouseMoved", u, v, buttons=1)
    mouse(browser, "mouseReleased", u, v)
    near = browser.until(ends.replace("return", "const now =") + "; return now[0] > arguments[0][0] && now[1] < arguments[0][1] && now[3] < arguments[0][3] && now", whole, what="zoomed")
    assert whole[0] < near[0] < near[1] < whole[1], (whole, near)
    browser.run("document.querySelector('#plan-card-pareto .whole').click()")
    browser.until(ends.replace("return", "const now =") + "; return now.every((v, i) => v === arguments[0][i])", whole, what="all shown")
    browser.until(names + " === arguments[0]", named, what="the names beside the points again")
    pin = "document.querySelector('#plan-card-pareto .pin')"
    time.sleep(0.5)  # until the points stand still
    x, y = browser.run(f"const c = {chart}, p = Chart.getChart(c).getDatasetMeta(0).data[0], q = c.getBoundingClientRect(); return [q.x + p.x, q.y + p.y]")
    mouse(browser, "mousePressed", x, y)
    mouse(browser, "mouseReleased", x, y)
    browser.until(f"return !{pin}.hidden && {pin}.textContent.includes('tokens/s a user')", what="a pinned point")
    browser.run(chart + ".focus()")
    browser.keys("\ue00c")  # Escape
    browser.until(f"return {pin}.hidden", what="let go")
    browser.keys(RIGHT + "+")
    browser.until(f"return !{pin}.hidden && !document.querySelector('#plan-card-pareto .whole').hidden", what="pinned and zoomed by keyboard")
    browser.keys("0\ue00c")
    browser.until(f"return {pin}.hidden && document.querySelector('#plan-card-pareto .whole').hidden", what="as it was")


DROP = """
  const files = new DataTransfer();
  files.items.add(new File([arguments[1]], arguments[0]));
  document.getElementById("plan-drop").dispatchEvent(new DragEvent("drop", { dataTransfer: files, bubbles: true, cancelable: true }));"""


def files_dropped(browser, url, folder):
    """Incomplete or foreign files are refused with a message, and the answer stays; a plan of services is answered."""
    browser.go("about:blank")
    browser.go(url + "#plan?model=llama-3.1-8b&gpus=h100-sxm&max_gpus=4&confidence=0&rate=not+a+number")
    first = planned(browser, "a plan with the usual rate")
    said = "return document.getElementById('plan-dropped').textContent"
    for name, text, words in (("half.json", '{"model_type": "llama", "hidden', "is incomplete JSON"),
                              ("other.json", '{"hello": 1}', "neither a model's config.json nor a measured run"),
                              ("estimate.json", '{"kind": "estimate", "schema": 1}', "is a result of roofcast (estimate)"),
                              ("letter.txt", "dear all", "nor a trace (CSV)"), ("empty.csv", "", "is empty")):
        browser.run(DROP, name, text)
        browser.until(said + ".includes(arguments[0])", words, what=name)
        assert browser.run(PLANNED) == first, name
    browser.run(DROP, "<img src=x>.yaml", "model: <img src=x>\nsearch: {gpus: [h100-sxm], max_gpus: 1}\n")
    browser.until("return document.getElementById('plan-state').className === 'alarm'", what="a plan of an unknown model")
    assert not browser.run("return document.querySelector('#page-plan img')")
    assert browser.run("return document.getElementById('plan-title').firstChild.textContent") == first
    browser.run("document.querySelector('#plan-dropped button').click()")
    planned(browser, "the fields again")
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192,
              "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000}
    path = os.path.join(folder, "config.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    browser.choose("#plan-file", path)
    browser.until(PLANNED + " && document.getElementById('plan-winner').textContent.includes('your-model') && document.getElementById('plan-memory').textContent", what="a plan of the dropped model", tries=4000)
    check_plan(browser, browser.run(PLANNED))
    assert '"hidden_size":2048' in browser.run("return document.getElementById('plan-yaml').textContent")
    browser.run("document.querySelector('#plan-dropped button').click()")
    browser.until(PLANNED + " && !document.getElementById('plan-winner').textContent.includes('your-model')", what="the fields once more", tries=4000)
    service = "{model: llama-3.1-8b, workload: {arrivals: {process: poisson, rate: 2 /s}, prompt_tokens: 500, output_tokens: 20, requests: 300}, objectives: {ttft_p99: 1 s}"
    browser.run(DROP, "two.yaml", f"services:\n  - {service}, name: one}}\n  - {service}, name: two}}\nsearch: {{gpus: [h100-sxm], max_gpus: 4, tp: [1], confidence: 0}}\n")
    browser.until(PLANNED + ".startsWith('2 services on ')", what="two services", tries=4000)
    assert not [e for e in browser.console() if "400 (Bad Request)" not in e["message"]]


def without_a_server(browser, site, folder):
    """The engine in the tab: the plan that came with the files is shown first, and the engine answers the same."""
    if not os.path.exists(site + "/first.js"):
        unbuilt.append(f"the page without a server (no {site}; ./dev wasm builds it)")
        return
    quiet = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    state, title = "document.getElementById('plan-state').textContent", "document.getElementById('plan-title').firstChild.textContent"
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(quiet, directory=site)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser.go("about:blank")
        browser.go(f"http://127.0.0.1:{server.server_port}/")
        first = browser.until(f"return {state}.startsWith('This answer came with the page') && {title}", what="the answer that came with the page")
        browser.until(f"return {state}.endsWith(', the same as came with the page')", what="the same from the engine", tries=4000)
        assert browser.run(f"return {title}") == first
        check_plan(browser, first)
        browser.go("about:blank")
        browser.go(f"http://127.0.0.1:{server.server_port}/")
        browser.until(f"return {state}.startsWith('This answer came with the page')", what="the answer that came with the page, again")
        browser.until("return document.getElementById('plan-at-rate')")
        changed = browser.run("const r = document.getElementById('plan-at-rate'); r.value = 9; r.dispatchEvent(new Event('change')); return [document.getElementById('plan-answer').className, document.getElementById('plan-now').className, " + state + "]")
        assert "stale" in changed[0] and "stale" in changed[1] and changed[2].startswith("planning"), changed
        check_plan(browser, planned(browser, "the plan for the other rate"))
        assert not browser.console()
        browser.go("about:blank")
        server.shutdown()
    page = folder + "/learn.html"  # carries no plan, and its planner must work all the same
    subprocess.run(["node", SOURCE + "/explore/wasm/one_file.js", site, page, "#learn"], check=True, stdout=subprocess.DEVNULL)
    browser.go("file://" + page)
    browser.until("return document.body.dataset.ready && document.getElementById('tab-learn').getAttribute('aria-selected') === 'true'", what="the lessons", tries=4000)
    browser.run("document.getElementById('tab-plan').click()")
    check_plan(browser, planned(browser, "a plan in a file that opens with the lessons"))
    assert not browser.console()


def check_plan(browser, title):
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(browser.run("return document.getElementById('plan-yaml').textContent"))
        file.flush()
        printed = subprocess.run([ROOFCAST, "plan", file.name, "--format", "json"], capture_output=True, text=True)
    winner = json.loads(printed.stdout)["winner"]
    assert title == f"{winner['gpus']} × {winner['gpu']}", (title, winner)
    return winner


def explorer(browser, folder):
    server = subprocess.Popen([ROOFCAST, "explore", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        url = server.stdout.readline().strip()
        planner(browser, url)
        files_dropped(browser, url, folder)
        learn = url + "#learn"
        browser.go("about:blank")
        browser.go(learn)
        browser.until("return document.body.dataset.ready && document.getElementById('command').textContent")
        check_against_program(browser)
        every_canvas_draws(browser)
        plays(browser)
        keyboard_reaches_everything(browser)
        one_slider_by_keyboard(browser)
        pins_a_deployment(browser)
        browser.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"}])
        browser.go("about:blank")
        browser.go(learn)  # closes the tables
        browser.until("return document.body.dataset.ready && document.getElementById('command').textContent")
        move_every_control(browser)
        check_against_program(browser)
        refused = [e for e in browser.console() if "400 (Bad Request)" not in e["message"]]
        assert not refused, refused
        reads_well(browser, url)
        link_reproduces(browser, url)
        errors = [e for e in browser.console() if "400 (Bad Request)" not in e["message"]]
        assert not errors, errors
    finally:
        server.terminate()
        assert server.wait(timeout=10) == 0


def report(browser, folder):
    result, page = folder + "/estimate.json", folder + "/report.html"
    subprocess.run([ROOFCAST, "estimate", "--model", "llama-3.1-8b", "--gpu", "h100-sxm", "--batch", "8", "--format", "json",
                    "--out", result], check=True)
    subprocess.run([ROOFCAST, "report", result, "--still", "--out", page], check=True)
    browser.cdp("Network.enable")
    browser.cdp("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)
    browser.go("file://" + page)
    assert browser.run("return document.querySelectorAll('figure').length") >= 3
    live = browser.run("return typeof Chart !== 'undefined' ? document.querySelectorAll('figure.live canvas').length : -1")
    assert live == -1 or live == browser.run("return document.querySelectorAll('figure').length"), live
    browser.run("document.getElementById('theme').click()")
    if live > 0:
        browser.run("document.querySelector('.tools button').click()")
    errors = browser.console()
    assert not errors, errors
    assert os.path.getsize(page) < 1_000_000
    live_report(browser, result, page)


def live_report(browser, result, page):
    """A page with the engine in it answers, without a network, what the program prints."""
    subprocess.run([ROOFCAST, "report", result, "--out", page], check=True)
    assert os.path.getsize(page) <= 1_500_000
    browser.go("file://" + page)
    if browser.run("return document.getElementById('what-if') === null"):
        unbuilt.append("the live report (no build/wasm/engine.html; ./dev wasm builds it)")
        return
    browser.run("const i = document.getElementById('what--batch'); i.value = 32; i.dispatchEvent(new Event('change'))")
    browser.until("return document.querySelector('#what-if [role=status]').textContent.startsWith('answered')", what="what if", tries=4000)
    rows = browser.run("return [...document.querySelectorAll('#what-if tbody tr')].map((r) => [...r.cells].map((c) => c.textContent))")
    printed = subprocess.run([ROOFCAST, "estimate", "--model", "llama-3.1-8b", "--gpu", "h100-sxm", "--batch", "32", "--format", "json"],
                             check=True, capture_output=True, text=True)
    tokens = json.loads(printed.stdout)["output_tokens_per_s"]
    assert ["output tokens/s", f"{tokens:,.0f}"] == [rows[3][0], rows[3][2]], rows
    browser.run("document.getElementById('what-reset').click()")
    assert browser.run("return document.getElementById('what--batch').value") == "8"
    errors = browser.console()
    assert not errors, errors


def main():
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if not chromium or not driver:
        print("SKIPPED: no chromium with chromedriver (Debian: chromium chromium-driver)")
        return 77
    site = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else ""
    with tempfile.TemporaryDirectory() as folder:
        browser = Browser(chromium, driver, folder)
        try:
            if not site:
                explorer(browser, folder)
            without_a_server(browser, site or SOURCE + "/build/wasm/site", folder)
            report(browser, folder)
        finally:
            browser.close()
    for what in skipped + unbuilt:
        print("SKIPPED:", what)
    return 1 if site and unbuilt else 77 if skipped else 0


if __name__ == "__main__":
    sys.exit(main())
