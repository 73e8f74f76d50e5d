"use strict";
// State, controls, and requests to the server. The page's address stores the state with the keys of the API.
(function () {
  const { digits, parts, text } = Look;
  const { ALL, el } = Canvases;
  const $ = (id) => document.getElementById(id);
  const root = document.documentElement;

  /// 1 2 3 4 6 8 12 16 ...: the steps of a slider. The field next to it takes any number.
  const steps = (from, to) => { const out = []; for (let p = 1; p <= to; p *= 2) for (const v of [p, p * 1.5]) if (v >= from && v <= to && Number.isInteger(v)) out.push(v); return out; };
  const powers = (to) => { const out = []; for (let p = 1; p <= to; p *= 2) out.push(p); return out; };
  const DEFAULTS = {
    model: "llama-3.1-8b", gpu: "h100-sxm", engine: "vllm", fidelity: "calibrated", weights: "", activations: "", kv_cache_dtype: "", tp: "1", pp: "1", dp: "1", ep: "1", attention_dp: "1",
    batch: "16", prompt_tokens: "1024", output_tokens: "256", context: "", kv_cache: "true", attention: "", kv_heads: "8", window: "4096", cla_share_factor: "2", speculation: "", num_speculative_tokens: "4", acceptance: "", draft_model: "",
    layers: "", heads: "", head_dim: "", width: "", gpu_memory_gb: "", slots: "4", requests: "16", seed: "1", max_tpot_ms: "50", draft_cost: "",
  };
  const OF_ATTENTION = { kv_heads: "gqa", cla_share_factor: "cla", window: "window" };  // what a kind can choose
  const CANVAS_KEYS = ["slots", "requests", "seed", "max_tpot_ms", "draft_cost"];
  const values = { ...DEFAULTS };
  const watchers = {};
  const state = {
    get: (key) => values[key],
    watch: (key, callback) => (watchers[key] = watchers[key] || []).push(callback),
    set(key, value) {
      value = String(value);
      if (values[key] === value) return;
      values[key] = value;
      for (const callback of watchers[key] || []) callback(value);
      const now = Date.now(), written = () => location.pathname + "?" + address() + "#learn";
      clearTimeout(later);  // a new entry for a new thought; the same one, a little later, while a slider is dragged
      if (now - moved > 1000) history.pushState(null, "", written()); else later = setTimeout(() => { if (page_of() === "learn") history.replaceState(null, "", written()); }, 150);
      moved = now;
      refresh();
    },
  };
  let moved = 0, later = 0;

  /// Keys that differ from the defaults of the API; those of a disabled option are left out.
  function query(more = []) {
    const out = new URLSearchParams();
    for (const key of Object.keys(DEFAULTS)) {
      const value = values[key];
      if (value === "" || (CANVAS_KEYS.includes(key) && !more.includes(key))) continue;
      if (key in OF_ATTENTION && values.attention !== OF_ATTENTION[key]) continue;
      if (["num_speculative_tokens", "acceptance", "draft_model"].includes(key) && !values.speculation) continue;
      if (key === "draft_model" && values.speculation !== "draft_model") continue;
      if (["engine", "fidelity", "pp", "dp", "ep", "attention_dp", "kv_cache", "tp"].includes(key) && value === DEFAULTS[key]) continue;
      out.set(key, value);
    }
    return out;
  }
  const address = () => query(CANVAS_KEYS.filter((key) => values[key] !== DEFAULTS[key])).toString();
  function read_address() {
    clearTimeout(later);
    Object.assign(values, DEFAULTS);
    for (const [key, value] of new URLSearchParams(location.search)) if (key in DEFAULTS) values[key] = value.slice(0, 64);
    for (const key of Object.keys(watchers)) for (const callback of watchers[key]) callback(values[key]);
  }

  // Controls -------------------------------------------------------------------------------------------------------------
  function field(label, input, note) {
    return el("div", { class: "field" }, el("label", { for: input.id }, label), input, note ? el("span", { class: "note" }, note) : null);
  }
  function select(key, label, options) {
    const input = el("select", { id: "in-" + key });
    const fill = (list) => {
      input.replaceChildren(...list.map((o) => (o.options ? el("optgroup", { label: o.label }, ...o.options.map((p) => el("option", { value: p.value }, p.label))) : el("option", { value: o.value }, o.label))));
      input.value = values[key];
    };
    fill(options);
    input.addEventListener("change", () => state.set(key, input.value));
    state.watch(key, (value) => { input.value = value; });
    return field(label, input);
  }
  /// A slider over `list` and a field for any whole number. `empty`: text for no value.
  function slider(key, label, list, { empty, min = 1, max = 16777216 } = {}) {
    const range = el("input", { type: "range", id: "in-" + key, min: empty ? -1 : 0, max: list.length - 1, step: 1 });
    const number = el("input", { type: "number", id: "at-" + key, "aria-label": label, min, max, placeholder: empty });
    const show = (value) => {
      number.value = value;
      const v = Number(value);
      range.value = value === "" ? -1 : list.reduce((best, x, i) => (Math.abs(Math.log(x / v)) < Math.abs(Math.log(list[best] / v)) ? i : best), 0);
      range.setAttribute("aria-valuetext", value === "" ? empty : value);
    };
    range.addEventListener("input", () => state.set(key, range.value < 0 ? "" : list[range.value]));
    number.addEventListener("change", () => { if (number.value === "" && !empty) show(values[key]); else state.set(key, number.value); });
    state.watch(key, show);
    show(values[key]);
    return el("div", { class: "field" }, el("label", { for: range.id }, label), number, range);
  }
  function fraction(key, label) {
    const range = el("input", { type: "range", id: "in-" + key, min: 0, max: 1, step: 0.01 });
    const number = el("input", { type: "number", id: "at-" + key, "aria-label": label, min: 0, max: 1, step: 0.01, placeholder: "usual" });
    const show = (value) => { number.value = value; range.value = value === "" ? 0.75 : value; };
    range.addEventListener("input", () => state.set(key, range.value));
    number.addEventListener("change", () => state.set(key, number.value));
    state.watch(key, show);
    show(values[key]);
    return el("div", { class: "field" }, el("label", { for: range.id }, label), number, range);
  }
  function group(title, ...fields) { return el("fieldset", {}, el("legend", {}, title), ...fields); }
  /// Shown while `key` is one of `wanted`.
  function when(key, wanted, node) {
    const show = () => { node.hidden = !wanted.includes(values[key]); };
    state.watch(key, show);
    show();
    return node;
  }

  const plain = (names) => names.map((n) => ({ value: n, label: n }));
  function controls(models, gpus, engines, choices) {
    const families = [...new Set(models.map((m) => m.family))];
    const size = (m) => m.name + "  (" + parts.count(m.parameters).join(" ") + ")";
    const model = families.map((f) => ({ label: f, options: models.filter((m) => m.family === f).map((m) => ({ value: m.name, label: size(m) })) }));
    const own = [{ value: "", label: "the checkpoint's" }], formats = own.concat(plain(choices.formats));
    const recipes = choices.recipes.map((r) => ({ value: r.name, label: r.name }));
    const gpu = gpus.map((g) => ({ value: g.name, label: g.name + "  (" + text.bytes(g.memory_bytes) + ", " + digits(g.usd_per_hour) + " $/h)" }));
    $("controls").append(
      group("Model and machine", select("model", "Model", model), select("gpu", "GPU", gpu), select("engine", "Engine", plain(engines.map((e) => e.name))),
        select("fidelity", "Fidelity", [{ value: "calibrated", label: "calibrated" }, { value: "ideal", label: "ideal (datasheet roofline)" }])),
      group("Load", slider("batch", "Batch", steps(1, 1024)), slider("prompt_tokens", "Prompt tokens", steps(16, 131072)), slider("output_tokens", "Output tokens", steps(8, 16384)),
        slider("context", "Decode context", steps(16, 131072), { empty: "auto" }),
        select("kv_cache", "KV cache", [{ value: "true", label: "kept" }, { value: "false", label: "none: every token computes all again" }])),
      group("Precision", select("weights", "Weights", [own[0], { label: "formats", options: plain(choices.formats) }, { label: "recipes", options: recipes }]), select("activations", "Activations", formats), select("kv_cache_dtype", "KV cache format", formats)),
      group("Parallelism", slider("tp", "Tensor parallel", powers(64)), slider("pp", "Pipeline stages", powers(16)), slider("dp", "Replicas", powers(64)), slider("ep", "Expert parallel", powers(64)), slider("attention_dp", "Attention DP", powers(64))),
      group("Attention", select("attention", "Kind", [{ value: "", label: "the model's own" }].concat(choices.attention.map((a) => ({ value: a.name, label: a.name.length < 4 ? a.name.toUpperCase() : a.name })))),
        when("attention", ["gqa"], slider("kv_heads", "Key-value heads", powers(64))), when("attention", ["cla"], slider("cla_share_factor", "Layers that share a cache", [1, 2, 3, 4, 6, 8])), when("attention", ["window"], slider("window", "Window, tokens", steps(128, 32768)))),
      group("Sizes of your own", slider("layers", "Layers", steps(1, 128), { empty: "its own" }), slider("heads", "Heads", powers(128).filter((v) => v >= 8), { empty: "its own" }), slider("head_dim", "Head dimension", [32, 64, 80, 96, 128, 160, 192, 256], { empty: "its own" }), slider("width", "Width (hidden size)", steps(256, 16384), { empty: "its own", min: 64 }),
        slider("gpu_memory_gb", "Memory of a GPU, GB", [8, 12, 16, 24, 32, 40, 48, 64, 80, 96, 128, 141, 192, 288], { empty: "its own", max: 4096 })),
      group("Speculation", select("speculation", "Method", [{ value: "", label: "none" }].concat(plain(choices.speculation))),
        when("speculation", choices.speculation, slider("num_speculative_tokens", "Drafts per step, k", [1, 2, 3, 4, 5, 6, 7, 8], { max: 16 })), when("speculation", choices.speculation, fraction("acceptance", "Acceptance")),
        when("speculation", ["draft_model"], select("draft_model", "Draft model", [{ value: "", label: "choose" }].concat(model)))));
    // An audio model gets a short prompt and writes a transcript; Whisper has 448 positions for both.
    const fit = (name) => {
      const model = models.find((m) => m.name === name);
      if (model && model.encoder === "sound" && Number(values.prompt_tokens) + Number(values.output_tokens) > 448) { state.set("prompt_tokens", 4); state.set("output_tokens", 192); }
    };
    state.watch("model", fit);
    fit(values.model);
    $("controls").addEventListener("submit", (event) => event.preventDefault());
  }

  // Answers --------------------------------------------------------------------------------------------------------------
  class Refused extends Error {}
  async function ask(endpoint, search) {
    const answer = await Ask.get(endpoint, search);
    if (answer.status !== 200) throw new Refused(answer.data.error);
    return answer;
  }

  const between = (low, high) => {
    if (low === high) return "";
    const [from, unit] = parts.ms(low), [to, other] = parts.ms(high);
    return "90 %: " + from + (unit === other ? "" : "\u00a0" + unit) + " to " + to + "\u00a0" + other;
  };
  /// [name, value from the API, format, a line below, good or bad]
  function kpis(e) {
    const m = e.memory, at_once = e.batch - (e.waiting || 0);
    return [
      { id: "ttft_ms", name: at_once > 1 ? "TTFT, " + at_once + " at once" : "First token (TTFT)", value: e.ttft_ms, show: parts.ms(e.ttft_ms), sub: between(e.ttft_ms_low, e.ttft_ms_high) || "bound by " + e.prefill.bound },
      { id: "tpot_ms", name: "Per token (TPOT)", value: e.tpot_ms, show: parts.ms(e.tpot_ms), sub: between(e.tpot_ms_low, e.tpot_ms_high) || "bound by " + e.decode.bound },
      { id: "output_tokens_per_s", name: "Throughput", value: e.output_tokens_per_s, show: [digits(e.output_tokens_per_s), "tok/s"], sub: digits(e.request_output_tokens_per_s) + " over whole requests" },
      { id: "request_latency_ms", name: "Whole request", value: e.request_latency_ms, show: parts.ms(e.request_latency_ms), sub: e.prefill.bound + "-, then " + e.decode.bound + "-bound" },
      { id: "fits", name: "Memory of a GPU", value: m.fits, show: [m.fits ? "fits" : "does not fit", ""], mood: m.fits ? "good" : "bad", bar: m, sub: "room for " + digits(m.max_batch) + " such sequences" },
      { id: "usd_per_million_output_tokens", name: "Cost per M output", value: e.cost.usd_per_million_output_tokens, show: [digits(e.cost.usd_per_million_output_tokens), "USD"], sub: e.machine.gpus * (e.replicas || 1) + (e.machine.gpus > 1 ? " GPUs, " : " GPU, ") + digits(e.cost.usd_per_hour) + " USD/h, " + digits(e.cost.joules_per_output_token) + " J a token" },
    ];
  }
  function meter(m) {
    const bar = el("div", { class: "bar", title: "weights " + text.bytes(m.weight_bytes) + ", activations " + text.bytes(m.activation_bytes) + ", KV cache " + text.bytes(m.kv_cache_bytes) + " of " + text.bytes(m.capacity_bytes) });
    for (const bytes of [m.weight_bytes, m.activation_bytes, m.kv_cache_bytes]) { const part = el("i"); part.style.width = (100 * bytes) / m.capacity_bytes + "%"; bar.append(part); }
    return bar;
  }
  /// A deployment to compare with: its figures by name, and its settings.
  let pinned = null, shown = null;
  function against(k) {
    if (!pinned || typeof k.value !== "number") return "";
    const share = k.value / pinned.figures[k.id] - 1;
    return el("div", { class: "sub against" }, Number.isFinite(share) ? share === 0 ? "as A" : digits(100 * Math.abs(share)) + " % " + (share > 0 ? "above A" : "below A") : "A has none");
  }
  function show_pin() {
    $("learn-pin").textContent = pinned ? "Unpin A" : "Pin as A";
    $("learn-pin").setAttribute("aria-pressed", String(!!pinned));
    const changes = pinned ? Object.keys(DEFAULTS).filter((key) => pinned.values[key] !== values[key]).map((key) => key + ": " + (pinned.values[key] || "its own") + " → " + (values[key] || "its own")) : [];
    $("learn-compare").textContent = !pinned ? "" : changes.length ? "Changed: " + changes.join("; ") : "Nothing is changed yet.";
  }
  function pin() {
    if (!shown) return;
    pinned = pinned ? null : { values: { ...values }, figures: Object.fromEntries(kpis(shown.data).map((k) => [k.id, k.value])) };
    show_estimate(shown);
  }
  function show_estimate(answer) {
    const { data, command } = shown = answer;
    show_pin();
    $("kpis").replaceChildren(...kpis(data).map((k) => el("div", { class: "kpi " + (k.mood || ""), id: "kpi-" + k.id, "data-value": String(k.value) },
      el("div", { class: "name" }, k.name), el("div", { class: "value" }, k.show[0], k.show[1] ? el("small", {}, k.show[1]) : ""), k.bar ? meter(k.bar) : "", el("div", { class: "sub" }, k.sub), against(k))));
    $("command").textContent = command;
    $("address").textContent = 'requests.get("' + location.origin + "/api/v1/estimate?" + query() + '").json()';
    const p = data.provenance;
    $("standing").textContent = "Constants: " + String(p.parameters).replace("_", " ") + (p.source ? " (" + p.source + ")" : "") + ". roofcast " + version + ".";
    $("learn-now").replaceChildren(el("span", {}, "TTFT ", el("b", {}, text.ms(data.ttft_ms))), el("span", {}, "TPOT ", el("b", {}, text.ms(data.tpot_ms))), el("span", {}, el("b", {}, digits(data.output_tokens_per_s)), " tok/s"), el("b", { class: data.memory.fits ? "" : "alarm" }, data.memory.fits ? "fits" : "does not fit"));
    const warnings = data.warnings || [];
    say((data.memory.fits ? "" : "It does not fit: the numbers are what it would do if it did. ") + warnings.join("; "), !data.memory.fits || warnings.length > 0);
  }
  function say(words, alarm) { const s = $("state"); if (s.textContent !== words) s.textContent = words; s.className = alarm ? "alarm" : ""; }

  let version = "";
  const cards = [];
  function sections() {
    let grid = null;
    for (const canvas of ALL) {
      if (canvas.section) { grid = el("div", { class: "grid" }); $("sections").append(el("section", { "aria-label": canvas.section }, el("h2", {}, canvas.section), grid)); continue; }
      const card = el("article", { class: "card" + (canvas.wide ? " wide" : ""), id: "card-" + canvas.id, "aria-labelledby": "title-" + canvas.id });
      card.append(el("h3", { id: "title-" + canvas.id }, canvas.title), el("p", { class: "lead" }, canvas.lead));
      const body = el("div", { class: "body" });
      card.append(body);
      const entry = { canvas, card, draw: canvas.make(body, canvas, state), finding: el("p", { class: "finding" }), table: el("details", {}, el("summary", {}, "Numbers")), seen: false, asked: null };
      entry.table.addEventListener("toggle", () => fill_table(entry));
      card.append(entry.finding, entry.table);
      grid.append(card);
      cards.push(entry);
    }
  }
  function fill_table({ canvas, table, data }) {
    if (!table.open || !data) return;
    const head = el("tr", {}, ...canvas.columns.map(([, title]) => el("th", { scope: "col" }, title)));
    const rows = canvas.rows(data).map((row) => el("tr", {}, ...canvas.columns.map(([key, , write]) => el("td", {}, row[key] === undefined || row[key] === null ? "" : write(row[key])))));
    table.replaceChildren(table.firstChild, el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": canvas.title + ", numbers" }, el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows))));
  }

  let running = false, wanted = false, known = "", answered = false;
  /// One round of requests at a time; later changes are requested when it ends.
  async function refresh() {
    wanted = true;
    if (running) return;
    running = true;
    while (wanted) {
      wanted = false;
      const search = query().toString();
      try {
        if (search !== known) {
          show_estimate(await ask("estimate", search));
          answered = true;
          known = search;
        }
      } catch (error) {
        if (!(error instanceof Refused) && !(error instanceof Ask.Lost)) throw error;
        say(error.message, true);
        answered = false;  // nor would the pictures be
        known = error instanceof Refused ? search : "";
      }
      for (const id of ["kpis", "sections"]) $(id).classList.toggle("stale", !answered);
      $("sections").hidden = !answered && !cards.some((c) => c.data);  // nothing was ever drawn
      $("summary").textContent = "· " + values.model + " · " + values.gpu + " · batch " + values.batch;
      if (answered) await Promise.all(cards.map(update));
      await new Promise((r) => setTimeout(r, 30));  // a slider that is dragged asks often enough
    }
    running = false;
    document.body.dataset.ready = "true";
  }
  async function update(entry) {
    const search = query(entry.canvas.keys).toString();
    if (!entry.seen || entry.asked === search) return;
    entry.asked = search;
    try {
      const { data } = await ask(entry.canvas.endpoint, search);
      if (wanted && entry.asked !== search) return;
      entry.data = data;
      entry.draw(data);
      entry.finding.replaceChildren(...entry.canvas.say(data));
      entry.finding.classList.remove("alarm");
      entry.card.firstChild.nextSibling.nextSibling.classList.remove("stale");
      fill_table(entry);
    } catch (error) {
      if (!(error instanceof Refused) && !(error instanceof Ask.Lost)) throw error;
      if (!(error instanceof Refused)) entry.asked = null;
      entry.finding.textContent = error.message;
      entry.finding.classList.add("alarm");
      entry.card.firstChild.nextSibling.nextSibling.classList.add("stale");
    }
  }

  function theme(dark) {
    root.dataset.theme = dark ? "dark" : "light";
    $("theme").textContent = dark ? "Light" : "Dark";
    for (const entry of cards) if (entry.data) entry.draw(entry.data);
    Planner.redraw();
  }
  // Two pages, one after the other in the history ---------------------------------------------------------------------------
  const PAGES = ["plan", "learn"];
  /// A link with the keys of an estimate is one of the lectures' page.
  const page_of = () => (location.hash.startsWith("#plan") ? "plan" : location.hash.startsWith("#learn") || location.search.length > 1 ? "learn" : "plan");
  function turn(page) {
    for (const p of PAGES) {
      $("page-" + p).hidden = p !== page;
      $("tab-" + p).setAttribute("aria-selected", String(p === page));
      $("tab-" + p).tabIndex = p === page ? 0 : -1;
    }
    document.title = "roofcast: " + (page === "plan" ? "plan" : "learn");
    $("skip").href = page === "plan" ? "#plan-main" : "#answers";
    if (page === "plan" && !document.body.dataset.planned) Planner.run();
    if (page === "learn") refresh();
  }
  function tabs() {
    for (const p of PAGES) {
      $("tab-" + p).addEventListener("click", () => { if (page_of() === p) return; history.pushState(null, "", p === "plan" ? location.pathname + Planner.hash() : location.pathname + "?" + address() + "#learn"); turn(p); });
      $("tab-" + p).addEventListener("keydown", (e) => { if (e.key !== "ArrowRight" && e.key !== "ArrowLeft") return; const other = PAGES[1 - PAGES.indexOf(p)]; $("tab-" + other).focus(); $("tab-" + other).click(); });
    }
    $("skip").addEventListener("click", (e) => { e.preventDefault(); $(page_of() === "plan" ? "plan-main" : "answers").focus(); });
  }
  function remembered() { try { return localStorage.getItem("theme"); } catch { return null; } }

  async function start() {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    theme(remembered() ? remembered() === "dark" : dark.matches);
    dark.addEventListener("change", () => { if (!remembered()) theme(dark.matches); });
    $("theme").addEventListener("click", () => { const next = root.dataset.theme !== "dark"; try { localStorage.setItem("theme", next ? "dark" : "light"); } catch { /* a private window */ } theme(next); });
    if (matchMedia("(max-width: 56rem)").matches) $("panel").open = false;
    read_address();
    if (page_of() === "plan") Planner.begin();
    const [models, gpus, engines, choices] = await Promise.all(["models", "gpus", "engines", "choices"].map(async (name) => (await ask(name, "")).data));
    version = choices.version;
    controls(models, gpus, engines, choices);
    sections();
    Planner.start(models, gpus, engines, () => {});
    tabs();
    if (typeof Chart === "undefined") $("state").after(el("p", { class: "alarm" }, "Built without Chart.js (Debian's libjs-chart.js): charts are left out, their numbers are under each title."));
    $("reset").addEventListener("click", () => {
      if (page_of() === "plan") { history.pushState(null, "", location.pathname + "#plan"); Planner.reset(); Planner.run(); return; }
      history.pushState(null, "", location.pathname + "#learn");
      read_address();
      refresh();
    });
    $("learn-pin").addEventListener("click", pin);
    $("share").addEventListener("click", async () => {
      try { await navigator.clipboard.writeText(location.href); $("share").textContent = "Copied"; } catch { $("share").textContent = "It is in the address bar"; }
      setTimeout(() => { $("share").textContent = "Copy link"; }, 1500);
    });
    addEventListener("popstate", () => {
      const page = page_of();
      if (page === "plan") { Planner.read(location.hash); Planner.run(); } else read_address();
      turn(page);
    });
    const watch = new IntersectionObserver((entries) => {
      for (const e of entries) cards.find((c) => c.card === e.target).seen = e.isIntersecting;
      if (entries.some((e) => e.isIntersecting)) refresh();
    }, { rootMargin: "250px" });
    for (const entry of cards) watch.observe(entry.card);
    turn(page_of());
    if (page_of() === "plan") document.body.dataset.ready = "true";
  }
  start().catch((error) => { say(String(error.message || error), true); $("plan-state").textContent = String(error.message || error); $("plan-state").className = "alarm"; throw error; });
})();
