"use strict";
// The planner: a load and its objectives in, the cheapest fleet out. The page writes a plan file, requests its answer and draws it; it forecasts nothing itself.
window.Planner = (function () {
  const { digits, parts, text, Plot } = Look;
  const { el } = Canvases;
  const $ = (id) => document.getElementById(id);
  const { DEFAULTS, OF_SERVICE } = Question;
  const values = { ...DEFAULTS }, watchers = {};
  const dropped = {};  // {plan, trace, config, bench: {name, text}}
  let encoders = new Map();  // what reads the input of a model: "sound", "text" or nothing apart
  let pinned = null, answer = null, shown = null, changed = () => {};  // an answer: {plan, values and dropped: what it answers, load: rows of its chart}

  const hash = () => Question.to_hash(values);
  function read_hash(text) {
    clearTimeout(later);
    Object.assign(values, Question.from_hash(text));
    for (const key of Object.keys(watchers)) for (const tell of watchers[key]) tell(values[key]);
  }
  /// A new history entry per change; one entry while a slider is dragged, after a delay, because browsers limit their rate.
  let last = 0, later = 0;
  const written = () => location.pathname + location.search + hash();
  function set(key, value) {
    value = String(value);
    if (values[key] === value) return;
    values[key] = value;
    for (const tell of watchers[key] || []) tell(value);
    const now = Date.now();
    clearTimeout(later);
    if (now - last > 1000) history.pushState(null, "", written()); else later = setTimeout(() => { if (location.hash.startsWith("#plan")) history.replaceState(null, "", written()); }, 150);
    last = now;
    run();
  }

  // The plan file ----------------------------------------------------------------------------------------------------------
  const workload = () => Question.workload(values, encoders), others = () => Question.others(values);
  const load_words = (v) => v.model + ", " + (v.load === "users" ? v.users + " users" : v.rate + " requests/s") + ", " + v.prompt + " + " + v.output + " tokens";
  /// The request to the engine; the texts of a dropped model and trace are sent with it (`body`).
  function question_file() { return dropped.plan ? dropped.plan.text : Question.plan_file(values, encoders); }
  /// The same for `roofcast plan`: a dropped model is written out, a dropped trace is named.
  function plan_file() {
    if (dropped.plan) return dropped.plan.text;
    const model = dropped.config ? JSON.parse(dropped.config.text) : null;
    return Question.plan_file(values, encoders, {
      ...(model ? { model: "model: " + JSON.stringify({ ...model, _name_or_path: "your-model" }) + "\n" } : {}),
      ...(dropped.trace ? { load: "workload:\n  # the trace that was dropped; it must lie beside this file\n  arrivals: {process: trace, file: " + JSON.stringify(dropped.trace.name) + "}\n" } : {}),
    });
  }
  /// The winner as a scenario, at `share` of its load.
  function scenario_file(w, share = 1) {
    if (dropped.plan) return dropped_scenario(w);
    const p = w.parallelism, scaled = values.load === "users" ? workload().replace(/concurrency: [\d.]+/, "concurrency: " + Math.max(1, Math.round(values.users * share))) : workload().replace(/rate: [\d.e-]+/, "rate: " + +(values.rate * share).toPrecision(6));
    return "model: " + values.model + "\ngpu: " + w.gpu + "\nengine: {name: " + w.engine + ", max_num_seqs: " + w.max_num_seqs + ", max_num_batched_tokens: " + w.max_num_batched_tokens + "}\nprice: " + values.price +
      "\nprecision: {weights: " + w.precision.weights + ", activations: " + w.precision.activations + ", kv_cache: " + w.precision.kv_cache + "}\nparallelism: {tp: " + p.tp + ", pp: " + p.pp + ", attention_dp: " + p.attention_dp + ", ep: " + p.ep + ", replicas: " + w.replicas + "}\n" + scaled + Question.objectives(values);
  }
  /// The same for a dropped plan: its scenario, with the winner instead of the search.
  function dropped_scenario(w) {
    const { search, services, price, growth, ...asked } = answer.plan.question.document, p = w.parallelism, engine = typeof asked.engine === "string" ? { name: asked.engine } : asked.engine;
    return JSON.stringify({ ...asked, gpu: w.gpu, engine: { ...engine, name: w.engine, max_num_seqs: w.max_num_seqs, max_num_batched_tokens: w.max_num_batched_tokens }, precision: w.precision, parallelism: { tp: p.tp, pp: p.pp, attention_dp: p.attention_dp, ep: p.ep, replicas: w.replicas } });
  }
  const body = (document, more = {}) => ({ document, ...(dropped.trace && !dropped.plan ? { trace: dropped.trace.text } : {}), ...(dropped.config && !dropped.plan ? { config: dropped.config.text } : {}), ...more });

  // Controls ---------------------------------------------------------------------------------------------------------------
  const watch = (key, tell) => { (watchers[key] = watchers[key] || []).push(tell); tell(values[key]); };
  function select(key, label, options) {
    const input = el("select", { id: "plan-" + key }, ...options.map((o) => (o.options ? el("optgroup", { label: o.label }, ...o.options.map((p) => el("option", { value: p.value }, p.label))) : el("option", { value: o.value }, o.label))));
    input.addEventListener("change", () => set(key, input.value));
    watch(key, (v) => { input.value = v; });
    return el("div", { class: "field" }, el("label", { for: input.id }, label), input);
  }
  /// A slider over a log scale and a field for any number.
  function slider(key, label, from, to, unit) {
    const range = el("input", { type: "range", id: "plan-" + key, min: 0, max: 240, step: 1 }), number = el("input", { type: "number", id: "plan-at-" + key, "aria-label": label + ", " + unit, min: 0, step: "any" });
    const value_at = (at) => { const v = from * (to / from) ** (at / 240); return +v.toPrecision(v >= 100 ? 3 : 2); };
    range.addEventListener("input", () => set(key, value_at(Number(range.value))));
    number.addEventListener("change", () => { if (Number(number.value) > 0) set(key, number.value); else number.value = values[key]; });
    watch(key, (v) => { number.value = v; range.value = Math.round((240 * Math.log(v / from)) / Math.log(to / from)); range.setAttribute("aria-valuetext", v + " " + unit); });
    return el("div", { class: "field" }, el("label", { for: range.id }, label, el("small", { class: "soft" }, " " + unit)), number, range);
  }
  const group = (title, ...fields) => el("fieldset", {}, el("legend", {}, title), ...fields);
  function when(key, wanted, node) { watch(key, (v) => { node.hidden = v !== wanted; }); return node; }
  const plain = (list) => list.map((v) => ({ value: v, label: v }));

  function gpu_boxes(gpus) {
    const box = el("div", { class: "checks", id: "plan-gpus" });
    for (const g of [...gpus].sort((x, y) => (y.usd_per_hour > 0) - (x.usd_per_hour > 0))) {  // those with a price first
      const input = el("input", { type: "checkbox", id: "plan-gpu-" + g.name, value: g.name });
      input.addEventListener("change", () => { const on = [...box.querySelectorAll("input:checked")].map((i) => i.value); if (!on.length) input.checked = true; else set("gpus", on.join(",")); });
      box.append(el("label", { for: input.id }, input, " " + g.name, el("small", { class: "soft" }, g.usd_per_hour > 0 ? " " + digits(g.usd_per_hour) + " $/h" : "")));
    }
    watch("gpus", (v) => { const on = v.split(","); for (const input of box.querySelectorAll("input")) input.checked = on.includes(input.value); });
    return box;
  }
  function drop_zone() {
    const input = el("input", { type: "file", id: "plan-file", multiple: "" }), list = el("p", { class: "soft", id: "plan-dropped", role: "status" });
    const zone = el("div", { class: "drop", id: "plan-drop" }, el("label", { for: input.id }, "Drop or choose a plan (YAML), a config.json, a trace (CSV), or the JSON of vllm bench serve. It stays in this ", Ask.local ? "tab" : "machine", "."), input, list);
    const take = async (files) => {
      const refused = [];
      for (const file of files) { const why = await take_file(file); if (why) refused.push(why); }
      input.value = "";  // so that the same file, mended, can be chosen again
      tell(refused);
      if (refused.length < files.length) run();
    };
    const tell = (refused = []) => {
      for (const set of $("plan-controls").querySelectorAll("fieldset")) set.disabled = !!dropped.plan && !set.contains(zone);
      list.replaceChildren(...refused.map((why) => el("span", { class: "alarm" }, why + " ")), ...Object.entries(dropped).flatMap(([kind, f]) => { const off = el("button", { type: "button" }, "remove " + f.name); off.addEventListener("click", () => { delete dropped[kind]; tell(); run(); }); return [kind + ": ", off, " "]; }), dropped.plan ? "The plan comes from this file; the fields are ignored." : "");
    };
    forget = () => { for (const kind of Object.keys(dropped)) delete dropped[kind]; tell(); };
    input.addEventListener("change", () => take([...input.files]));
    for (const name of ["dragenter", "dragover"]) zone.addEventListener(name, (e) => { e.preventDefault(); zone.classList.add("over"); });
    for (const name of ["dragleave", "drop"]) zone.addEventListener(name, () => zone.classList.remove("over"));
    zone.addEventListener("drop", (e) => { e.preventDefault(); take([...e.dataTransfer.files]); });
    return zone;
  }
  /// Accepts the file; or says why not, and changes nothing.
  async function take_file(file) {
    if (file.size > 2e6) return file.name + " is longer than 2 MB; give a part of it.";
    const content = await file.text(), name = file.name;
    if (!content.trim()) return name + " is empty.";
    if (/[\0\uFFFD]/.test(content.slice(0, 4000))) return name + " is not a text file.";
    let json = null;
    if (/^\s*[[{]/.test(content)) {
      try { json = JSON.parse(content); } catch (error) {
        let lines = false;  // one object a line: a trace
        try { lines = typeof JSON.parse(content.trimStart().split("\n", 1)[0]) === "object"; } catch { /* no */ }
        if (!lines) return name + " is incomplete JSON (" + error.message + ").";
      }
    }
    if (json === null) {
      const plan = /^(model|services|objectives|search|workload)\s*:/m.test(content);
      if (!plan && !content.trimStart().startsWith("{") && !/[,;\t]/.test(content.trimStart().split("\n", 1)[0])) return name + " is neither a plan (YAML) nor a trace (CSV) nor JSON.";
      dropped[plan ? "plan" : "trace"] = { name, text: content };
      return "";
    }
    const result = ["plan", "services_plan"].includes(json.kind) && json.question && json.question.document;
    if (result && shown && json.schema > shown.schema) return name + " is of a newer roofcast: its schema is " + Number(json.schema) + ", this page reads " + shown.schema + ".";
    if (result) { dropped.plan = { name, text: JSON.stringify(json.question.document, null, 1) }; return ""; }
    if (json.kind && json.schema) return name + " is a result of roofcast (" + json.kind + "): `roofcast report` makes its page.";
    if (json.architectures || json.model_type || json.hidden_size) dropped.config = { name, text: content };
    else if (Object.keys(json).some((key) => /ttft|throughput|latency|duration|completed|input_len|records|profile/i.test(key))) dropped.bench = { name, text: content };
    else return name + " is JSON, but neither a model's config.json nor a measured run.";
    return "";
  }
  let forget = () => {};

  /// Loads that are planned together with the one in the fields.
  function services_box() {
    const list = el("div", { id: "plan-services" }), add = el("button", { type: "button", id: "plan-add-service" }, "Keep this load, add another");
    add.addEventListener("click", () => set("services", JSON.stringify([...others().map((v) => OF_SERVICE.map((k) => v[k])), OF_SERVICE.map((k) => values[k])])));
    watch("services", () => {
      const kept = others();
      add.hidden = kept.length >= 6;
      list.replaceChildren(...kept.map((v, i) => {
        const off = el("button", { type: "button", "aria-label": "remove " + load_words(v) }, "remove");
        off.addEventListener("click", () => { const left = others().filter((_, k) => k !== i); set("services", left.length ? JSON.stringify(left.map((o) => OF_SERVICE.map((k) => o[k]))) : ""); });
        return el("p", { class: "kept" }, load_words(v) + " ", off);
      }), kept.length ? el("p", { class: "soft" }, "Planned together with the load and objectives of the fields.") : "");
    });
    return [el("p", { class: "soft" }, "Several models that share the GPUs and the budget."), list, add];
  }

  // Answers ----------------------------------------------------------------------------------------------------------------
  const passed = el("span", { "aria-hidden": "true" });  // seconds, which no screen reader need repeat
  let spoken = "";
  function say(words, alarm, seconds) {
    const s = $("plan-state");
    if (spoken !== words || passed.parentNode !== s) s.replaceChildren((spoken = words), passed);
    passed.textContent = seconds ? seconds + " s" : "";
    s.className = alarm ? "alarm" : "";
  }
  let running = false, wanted = false;
  let early = null;  // what was asked before the page knew its lists
  function begin() {
    read_hash(location.hash);
    const question = body(question_file());
    early = { key: JSON.stringify(question), answer: Ask.post("plan", question), began: performance.now() };
    early.answer.catch(() => {});  // said where it is awaited
  }
  /// A plan that takes longer than this is cancelled on a change; a shorter one ends before an engine would restart.
  const LONG = 1500;
  let began = 0;  // of the plan that is being made; 0: none is
  const long = () => began > 0 && performance.now() - began > LONG;
  const SILENT = 5000;  // ms without an answer, after which what runs beside a plan is given up for a new one
  let silent = 0;  // its timer, from the first change that waits
  const faded = (on) => { for (const id of ["plan-answer", "plan-now"]) $(id).classList.toggle("stale", on); };
  async function run() {
    wanted = true;
    changed();
    if (long()) Ask.cancel();
    if (running) {
      faded(true);
      say("planning ... ");
      silent = silent || setTimeout(() => { silent = 0; if (wanted) Ask.cancel(); }, SILENT);
      return;
    }
    running = true;
    while (wanted) {
      wanted = false;
      clearTimeout(silent);
      silent = 0;
      const subject = { values: { ...values }, dropped: { ...dropped }, load: [] }, question = body(question_file()), came = answer || question.trace || question.config ? "" : Ask.came(question.document);
      if (came) show((answer = { plan: JSON.parse(came), ...subject }).plan);
      faded(!came);
      const working = came ? "This answer came with the page; the engine starts in this tab and makes it again ... " : /["'{,\s]profile["']?\s*:/.test(question.document) ? "planning by the hours of the profile ... " : answer ? "planning ... " : "the first plan takes a moment ... ";
      say(working);
      const asked = early && early.key === JSON.stringify(question) ? early : { answer: Ask.post("plan", question), began: performance.now() };
      early = null;
      began = asked.began;
      const clock = setInterval(() => { if (!long()) return; if (wanted) { Ask.cancel(); return; } say(working, false, Math.round((performance.now() - began) / 1000)); $("plan-stop").hidden = false; }, 500);
      try {
        const { status, data, body: answered } = await asked.answer.finally(() => { began = 0; clearInterval(clock); $("plan-stop").hidden = true; });
        if (wanted) continue;
        if (status !== 200) { faded(true); say(data.error + (shown ? "\nBelow is the last plan that could be made." : ""), true); answer = null; $("plan-answer").hidden = !shown; continue; }
        if (came !== answered) show((answer = { plan: data, ...subject }).plan);
        faded(false);
        say("planned in " + text.ms(performance.now() - asked.began) + (Ask.local ? " in this tab" : "") + (!came ? "" : came === answered ? ", the same as came with the page" : ". The page came with another answer; this one replaces it."));
        await more(answer.plan);
      } catch (error) {
        if (!(error instanceof Ask.Lost)) { running = false; throw error; }
        if (wanted) continue;
        say(error.message + (came ? " Below is the answer that came with the page." : shown ? " Below is the last plan; change anything to ask again." : ""), true);
      }
    }
    running = false;
    document.body.dataset.planned = "true";
  }

  const money = (v) => (Number.isFinite(v) ? digits(v) : "no price");
  const signed = (write, v) => (v > 0 ? "+" : v < 0 ? "−" : "±") + write(Math.abs(v));
  const written_or_none = (write, v) => (Number.isFinite(v) ? write(v) : "–");
  /// `of`: a figure of a winner, NaN if absent; `write`: its difference from the pinned A.
  function fact(name, value, sub, { id, w, of, write = digits } = {}) {
    const more = pinned && of && pinned.plan.winner !== w ? of(w) - of(pinned.plan.winner) : NaN;
    return el("div", { class: "kpi", ...(id ? { id } : {}) }, el("div", { class: "name" }, name), el("div", { class: "value" }, ...[].concat(value)), el("div", { class: "sub" }, sub || ""), Number.isFinite(more) ? el("div", { class: "sub against" }, "B − A: " + signed(write, more)) : "");
  }
  const small = (unit) => el("small", {}, unit);
  const objective_name = (name) => name.replace(/^[a-z0-9]+/, (metric) => metric.toUpperCase()).replace(/_/g, " ");
  function limits(w) {
    return el("div", { class: "limits" }, ...w.objectives.map((o) => {
      const most = Math.max(o.limit_ms, o.interval_high_ms || o.value_ms) * 1.05, at = (ms) => (100 * ms) / most;
      const bar = (cls, from, to) => { const i = el("i", { class: cls }); i.style.left = at(from) + "%"; i.style.width = Math.max(0.6, at(to) - at(from)) + "%"; return i; };
      return el("div", { class: "limit" }, el("span", {}, objective_name(o.objective)), el("div", { class: "range", role: "img", "aria-label": o.objective + " " + text.ms(o.value_ms) + " of " + text.ms(o.limit_ms) }, bar("value", 0, o.value_ms), o.interval_high_ms ? bar("interval", o.interval_low_ms, o.interval_high_ms) : "", bar("at", o.limit_ms, o.limit_ms)), el("b", {}, text.ms(o.value_ms) + " of " + text.ms(o.limit_ms)), el("span", { class: "soft" }, o.interval_high_ms ? "90 %: " + text.ms(o.interval_low_ms) + " to " + text.ms(o.interval_high_ms) + (o.remark ? ", " + o.remark : "") : ""));
    }), el("p", { class: "soft key" }, el("i", { class: "value" }), " forecast ", el("i", { class: "interval" }), " 90 % of deployments like it ", el("i", { class: "at" }), " limit"));
  }
  const format = (p) => (p.weights === p.kv_cache ? p.weights : p.weights + ", cache " + p.kv_cache);
  const layout = (d) => { const p = d.parallelism; return d.replicas + " × tp " + p.tp + (p.pp > 1 ? " pp " + p.pp : "") + (p.attention_dp > 1 ? " adp " + p.attention_dp : "") + (p.ep > 1 ? " ep " + p.ep : ""); };

  /// For several services: the lines and tables of the verdict.
  function show_services(plan) {
    const parts = plan.verdict || [], [head, ...lines] = (parts[0] && parts[0].lines) || ["nothing was found"], alarm = /^(no |nothing)/.test(head);
    const table_of = ({ columns, rows }) => el("table", {}, el("thead", {}, el("tr", {}, ...columns.map((c) => el("th", { scope: "col" }, c)))), el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((cell) => el("td", {}, cell))))));
    $("plan-winner").replaceChildren(el("h2", { id: "plan-title", class: alarm ? "alarm" : "" }, head), ...lines.map((line) => el("p", {}, line.trim())));
    $("plan-table").replaceChildren(...parts.filter((p) => p.table).flatMap((p) => [p.title ? el("h3", {}, p.title) : "", table_of(p.table)]));
    $("plan-command").textContent = parts.filter((p) => p.command).map((p) => p.lines.join("\n")).join("\n\n") || "no launch command";
    $("plan-now").replaceChildren(el("b", {}, head));
    $("plan-notes").replaceChildren();
    for (const one of Object.values(plots)) one.card.hidden = true;
  }
  const is_services = (plan) => plan.kind === "services_plan";

  function show(plan) {
    shown = plan;
    plots.load.rows = answer.load;
    $("plan-answer").hidden = false;
    $("plan-yaml").textContent = plan_file();
    $("plan-words").replaceChildren(...(plan.verdict || []).filter((p) => !p.command).flatMap((p) => [p.title ? el("h4", {}, p.title) : "", ...(p.lines || []).map((line) => el("p", { class: "line" }, line))]));
    for (const id of ["plan-pin", "plan-columns", "plan-save-csv", "plan-pictures"]) $(id).hidden = is_services(plan);
    if (is_services(plan)) { show_services(plan); return; }
    for (const id of ["pareto", "cost"]) plots[id].card.hidden = false;
    const w = plan.winner, box = $("plan-winner");
    if (!w) {
      const words = (plan.verdict || []).flatMap((p) => p.lines || []);
      box.replaceChildren(el("h2", { class: "alarm" }, "Nothing meets these objectives"), ...words.slice(0, 8).map((line) => el("p", {}, line)));
    } else {
      const held = plan.load_held_per_replica || plan.load_held, unit = plan.load_unit;
      box.replaceChildren(
        el("h2", { id: "plan-title" }, w.gpus + " × " + w.gpu, el("small", {}, w.model + " on " + layout(w) + ", " + format(w.precision) + ", " + w.engine + " " + w.engine_version)),
        el("div", { class: "kpis" },
          fact("Cost of the fleet", [money(w.usd_per_hour), small("USD/h")], money((w.usd_per_hour ?? NaN) * 730) + " USD a month, " + w.price.tier.replace("_", " ") + (w.price.provider ? " at " + w.price.provider : "") + (w.price.checked === false ? ", unchecked list" : ""), { id: "plan-usd", w, of: (d) => d.usd_per_hour ?? NaN }),
          fact("All objectives met", w.probability === null ? "–" : [digits(100 * w.probability), small("%")], w.probability === null ? "not judged" : "probability, over " + plan.draws + " draws", { w, of: (d) => 100 * (d.probability ?? NaN), write: (v) => digits(v) + " %" }),
          fact("1 M output tokens", [money(w.usd_per_million_output_tokens), small("USD")], money(w.usd_per_million_input_tokens) + " USD per million input tokens", { w, of: (d) => d.usd_per_million_output_tokens ?? NaN }),
          fact("Load", [digits(w.load), small(unit)], held ? "holds " + digits(held) + (plan.load_held_per_replica ? " a replica" : "") : "", { w, of: (d) => (pinned.plan.load_unit === unit ? d.load : NaN) }),
          fact("Bound by", plan.bound || "–", "10 % more of it helps the most"),
          fact("Power", [digits((w.mean_power_watts ?? NaN) / 1000), small("kW")], digits(w.joules_per_output_token) + " J an output token", { w, of: (d) => (d.mean_power_watts ?? NaN) / 1000 })),
        limits(w), el("div", { id: "plan-memory" }), compare_box(plan));
    }
    $("plan-now").replaceChildren(...(w ? [el("b", {}, w.gpus + " × " + w.gpu), el("span", {}, money(w.usd_per_hour) + " USD/h"), el("span", {}, w.probability === null ? "" : digits(100 * w.probability) + " % sure")] : [el("b", {}, "nothing meets these objectives")]));
    $("plan-command").textContent = plan.launch_command || "no launch command for this engine";
    table(plan);
    charts(plan);
    draw_load();
  }

  /// Columns that are equal in all rows move below the table; others are ordered so that the main ones fit on the screen.
  const FIRST = /^(GPU|GPUs|engine|fleet|formats|P|USD\/h|USD\/M out|.+_(p\d+|mean|median))$/;
  let all_columns = false;
  function table(plan) {
    const part = (plan.verdict || []).find((p) => p.table && p.table.columns.includes("USD/h"));
    $("plan-notes").replaceChildren();
    if (!part) { $("plan-table").replaceChildren(el("p", { class: "soft" }, "nothing to rank")); return; }
    const { columns, rows } = part.table, alike = columns.map((_, c) => rows.length > 2 && columns.length > 8 && rows.every((row) => row[c] === rows[0][c]));
    const kept = (list) => list.filter((_, c) => !alike[c] && (all_columns || FIRST.test(columns[c]))), said = columns.filter((_, c) => alike[c]).map((name) => name + " " + rows[0][columns.indexOf(name)]);
    $("plan-table").replaceChildren(
      el("table", {}, el("thead", {}, el("tr", {}, ...kept(columns).map((c) => el("th", { scope: "col" }, c)))), el("tbody", {}, ...rows.map((row, i) => el("tr", i ? {} : { class: "now" }, ...kept(row).map((cell) => el("td", {}, cell)))))),
      said.length ? el("p", { class: "soft" }, "The same in all rows: " + said.join(", ") + ".") : "");
    $("plan-notes").replaceChildren(...(shown.notes || []).map((note) => el("p", {}, note)));
  }

  // B against A ------------------------------------------------------------------------------------------------------------
  const COMPARED = [["GPUs", (w) => w.gpus, digits], ["USD/h", (w) => w.usd_per_hour ?? NaN, digits], ["USD per million output tokens", (w) => w.usd_per_million_output_tokens ?? NaN, digits], ["probability", (w) => 100 * (w.probability ?? NaN), (v) => digits(v) + " %"], ["output tokens/s per GPU", (w) => w.output_tokens_per_s_per_gpu, digits], ["output tokens/s a user", (w) => w.output_tokens_per_s_per_user, digits], ["power, kW", (w) => (w.mean_power_watts ?? NaN) / 1000, digits]];
  function compare_box(plan) {
    if (!pinned) return el("p", { class: "soft", id: "plan-compare" }, "Pin this plan as A, change one thing, and see B − A here.");
    const a = pinned.plan.winner, b = plan.winner;
    const value_of = (w, name) => (w.objectives.find((o) => o.objective === name) || {}).value_ms ?? NaN;
    const judged = b.objectives.map(({ objective }) => [objective_name(objective), (w) => value_of(w, objective), text.ms]);
    const name = (w) => w.gpus + " × " + w.gpu + ", " + layout(w) + ", " + format(w.precision);
    const read = (kind) => [pinned, answer].map((one) => (one.dropped[kind] || {}).text), other_file = ["plan", "trace", "config"].some((kind) => { const [x, y] = read(kind); return x !== y; });
    const changes = pinned.dropped.plan || answer.dropped.plan ? [] : Object.keys(DEFAULTS).filter((k) => pinned.values[k] !== answer.values[k]).map((k) => k + ": " + pinned.values[k] + " → " + answer.values[k]);
    const said = [other_file ? "Another file." : "", changes.length ? "Changed: " + changes.join("; ") : "", !other_file && !changes.length ? "Nothing is changed yet." : ""].filter(Boolean).join(" ");
    return el("div", { class: "scroll", id: "plan-compare", tabindex: "0", role: "group", "aria-label": "B beside A" }, el("p", { class: "soft" }, said),
      el("table", {}, el("thead", {}, el("tr", {}, ...["", "A: " + name(a), "B: " + name(b), "B − A"].map((c) => el("th", { scope: "col" }, c)))), el("tbody", {}, ...[...COMPARED.slice(0, 3), ...judged, ...COMPARED.slice(3)].map(([title, of, write]) => el("tr", {}, el("td", {}, title), ...[of(a), of(b)].map((v) => el("td", {}, written_or_none(write, v))), el("td", {}, written_or_none((v) => signed(write, v), of(b) - of(a))))))));
  }

  // Charts -----------------------------------------------------------------------------------------------------------------
  const plots = {};
  /// `flat`: a map, which is no chart.
  function plot(id, title, lead, flat = false) {
    const box = el("div", { class: "plot tall" }), png = el("button", { type: "button" }, "PNG"), svg = el("button", { type: "button", hidden: flat }, "SVG"), csv = el("button", { type: "button" }, "CSV");
    const card = el("article", { class: flat ? "card wide" : "card", id: "plan-card-" + id }, el("div", { class: "head" }, el("h3", {}, title), png, svg, csv), el("p", { class: "lead" }, lead), ...(flat ? [] : [box]));
    const entry = (plots[id] = { plot: flat ? Look.grid(card, title) : new Plot(box, title), card, rows: [] });
    png.addEventListener("click", () => Plots.save_png("roofcast-" + id + ".png", entry.plot.canvas));
    svg.addEventListener("click", () => Plots.save_svg("roofcast-" + id + ".svg", entry.plot.chart, title));
    csv.addEventListener("click", () => save("roofcast-" + id + ".csv", new Blob([csv_of(entry.rows)], { type: "text/csv" })));
    return card;
  }
  const csv_of = (rows) => { if (!rows.length) return ""; const keys = Object.keys(rows[0]), cell = (v) => (/[",\n]/.test(String(v)) ? '"' + String(v).replace(/"/g, '""') + '"' : String(v)); return [keys.join(","), ...rows.map((r) => keys.map((k) => cell(r[k])).join(","))].join("\n") + "\n"; };
  const { save } = Plots;

  let colors = [];
  const color_of = (gpu) => { if (!colors.includes(gpu)) colors.push(gpu); return "c" + (colors.indexOf(gpu) % 10); };
  /// `list`: the frontier of all GPUs; `own`: that of each.
  function frontier(id, list, own, key, title, w) {
    const by = new Map(), best = list;
    list = own && own.length ? own : list;
    for (const p of list) by.set(p.gpu, [...(by.get(p.gpu) || []), p]);
    const sets = [...by].map(([gpu, points]) => ({ label: gpu, color: color_of(gpu), data: points.map((p) => ({ x: p.output_tokens_per_s_per_user, y: p[key] })), points, pointRadius: points.map((p) => (p.objectives_met ? 5 : 3)), pointStyle: points.map((p) => (p.objectives_met ? "circle" : "crossRot")), names: points.map((p) => p.layout), showLine: true, borderWidth: 1.5 }));
    if (by.size > 1) sets.push({ label: "the best of all", color: "ink", alpha: "00", borderDash: [6, 4], borderWidth: 2, pointRadius: 0, pointHitRadius: 0, pointStyle: "line", quiet: true, showLine: true, order: 5, data: best.map((p) => ({ x: p.output_tokens_per_s_per_user, y: p[key] })) });
    const star = (d) => ({ data: [{ x: d.output_tokens_per_s_per_user, y: d[key] }], points: [{ ...d, layout: layout(d), precision: format(d.precision), objectives_met: true }] });
    if (pinned && pinned.plan.winner !== w) sets.push({ label: "A", color: "soft", alpha: "00", pointRadius: 9, pointStyle: "rectRot", borderWidth: 2, ...star(pinned.plan.winner) });
    if (w) sets.push({ label: "winner", color: "ink", pointRadius: 9, pointStyle: "star", borderWidth: 2, ...star(w) });
    plots[id].rows = list.map((p) => ({ gpu: p.gpu, layout: p.layout, precision: p.precision, tokens_per_s_per_user: p.output_tokens_per_s_per_user, [key]: p[key], objectives_met: p.objectives_met }));
    const all = sets.flatMap((s) => s.data.map((p) => p.y)).filter((y) => y > 0), log = Math.max(...all) > 20 * Math.min(...all), limit = ((w && w.objectives) || []).find((o) => o.objective.startsWith("tpot"));
    plots[id].card.hidden = !list.length;
    plots[id].plot.show({ kind: "scatter", x: { title: "output tokens/s of one user" }, y: { title: title + (log ? " (log)" : ""), log }, sets, guides: limit ? [{ at: 1000 / limit.limit_ms, vertical: true, label: "limit of TPOT, " + digits(limit.limit_ms) + " ms" }] : [], tooltip: (item) => { const p = item.dataset.points[item.dataIndex]; return [item.dataset.label + ", " + p.layout + ", " + p.precision, digits(p.output_tokens_per_s_per_user) + " tokens/s a user, " + digits(p.output_tokens_per_s_per_gpu) + " a GPU", digits(p.usd_per_million_output_tokens) + " USD/M output tokens", p.objectives_met ? "meets the objectives" : "misses an objective"]; } });
  }
  function charts(plan) {
    colors = dropped.plan ? [] : values.gpus.split(",");
    frontier("pareto", plan.pareto || [], plan.pareto_by_gpu, "output_tokens_per_s_per_gpu", "output tokens/s per GPU", plan.winner);
    frontier("cost", plan.pareto_cost || [], plan.pareto_cost_by_gpu, "usd_per_million_output_tokens", "USD per million output tokens", plan.winner);
    growth(plan, plan.winner);
    day(plan.fleet);
    const changes = plan.sensitivities || [];
    plots.tornado.card.hidden = !changes.length;
    plots.tornado.rows = changes;
    if (changes.length) plots.tornado.plot.show({ kind: "bar", horizontal: true, legend: false, labels: changes.map((c) => c.ten_percent_more), x: { title: "change of the load that is held, %" }, y: { categories: true }, sets: [{ label: "how sure", color: "c4", grouped: false, order: 0, data: changes.map((c) => [100 * (c.throughput_change - c.throughput_change_error), 100 * (c.throughput_change + c.throughput_change_error)]), changes, maxBarThickness: 6 }, { label: "load held", color: "c0", grouped: false, order: 1, data: changes.map((c) => 100 * c.throughput_change), changes, maxBarThickness: 26 }], tooltip: (item) => { const c = item.dataset.changes[item.dataIndex]; return [digits(100 * c.throughput_change) + " % (± " + digits(100 * c.throughput_change_error, 2) + ")", "cost of a token " + digits(100 * c.cost_change) + " %"]; } });
  }

  /// A load that changes over the day: replicas by hour, the load, and the cost of three ways to run the fleet.
  function day(fleet) {
    plots.day.card.hidden = plots.daycost.card.hidden = !fleet;
    if (!fleet) return;
    const hours = fleet.hours || [], line = (key, label, color, more) => ({ label, color, showLine: true, borderWidth: 2, pointRadius: 0, pointHitRadius: 6, hours, data: hours.flatMap((h) => [{ x: h.start_s / 3600, y: h[key] }, { x: h.end_s / 3600, y: h[key] }]), ...more });
    plots.day.rows = hours;
    plots.day.plot.show({ kind: "scatter", x: { title: "hour", min: 0, max: Math.max(...hours.map((h) => h.end_s)) / 3600, step: 3 }, y: { title: "replicas of " + fleet.gpus_per_replica + " GPU" + (fleet.gpus_per_replica > 1 ? "s" : ""), min: 0 }, right: { title: "requests/s", min: 0 }, sets: [line("replicas_needed", "needed", "c0"), line("replicas", "autoscaled, mean", "c1"), line("replicas_most", "autoscaled, at most", "c1", { borderDash: [5, 4] }), line("request_rate", "requests/s (right)", "c7", { yAxisID: "right", borderDash: [2, 3] })],
      tooltip: (item) => { const h = item.dataset.hours[item.dataIndex >> 1]; return ["from hour " + digits(h.start_s / 3600) + ": " + digits(h.request_rate) + " requests/s", "needed " + h.replicas_needed + ", autoscaled " + digits(h.replicas) + " in the mean, " + h.replicas_most + " at most", "TTFT p99 " + text.ms(h.p99_ttft_ms)]; } });
    const ways = [["static", fleet.static], ["by clock", fleet.scheduled], ["autoscaled", fleet.autoscaled]].filter(([, w]) => w);
    plots.daycost.rows = ways.map(([name, w]) => ({ fleet: name, ...w }));
    plots.daycost.plot.show({ kind: "bar", horizontal: true, legend: false, labels: ways.map(([name]) => name), x: { title: "USD a day", min: 0 }, y: { categories: true }, sets: [{ label: "USD", color: "c0", data: ways.map(([, w]) => w.usd), names: ways.map(([, w]) => digits(w.usd)), ways, maxBarThickness: 30 }], tooltip: (item) => { const [name, w] = item.dataset.ways[item.dataIndex]; return [name + ": " + digits(w.usd) + " USD, " + digits(w.replica_hours) + " replica hours"]; } });
  }

  const tokens = (mean) => String(Math.max(1, Math.round(mean)));
  /// Details that take longer than the plan: the memory of the winner, percentiles against the load, a measured run.
  async function more(plan) {
    const w = plan.winner;
    $("plan-bench").hidden = true;
    if (is_services(plan)) return;
    plots.load.card.hidden = plots.map.card.hidden = !w || !!dropped.trace || !!dropped.plan || w.mode !== "aggregated";
    if (!w || w.mode !== "aggregated") return;
    const { status, data } = await Ask.post("estimate_document", body(scenario_file(w), { batch: "1", ...(dropped.plan || dropped.trace ? {} : { prompt_tokens: tokens(values.prompt), output_tokens: tokens(values.output) }) }));
    if (wanted) return;
    if (status === 200) memory(data.memory, w);
    if (dropped.bench) {
      const { status, data } = await Ask.post("compare", body(scenario_file(w), { bench: dropped.bench.text }));
      if (wanted) return;
      bench(status, data);
    }
    if (!plots.load.card.hidden) { await against_load(plan, w); if (!wanted) await map_of(plan, w); }
  }
  function memory(m, w) {
    const cache = w.kv_cache_peak_usage * (m.capacity_bytes - m.weight_bytes - m.activation_bytes), bar = el("div", { class: "bar" });
    for (const bytes of [m.weight_bytes, m.activation_bytes, cache]) { const i = el("i"); i.style.width = (100 * bytes) / m.capacity_bytes + "%"; bar.append(i); }
    $("plan-memory")?.replaceChildren(el("p", { class: "soft" }, "Memory of each GPU, " + text.bytes(m.capacity_bytes) + ": weights " + text.bytes(m.weight_bytes) + ", activations " + text.bytes(m.activation_bytes) + ", KV cache at its peak about " + text.bytes(cache)), bar);
  }
  function bench(status, data) {
    const box = $("plan-bench");
    box.hidden = false;
    if (status !== 200) { box.replaceChildren(el("h3", {}, "The measured run"), el("p", { class: "alarm" }, data.error)); return; }
    box.replaceChildren(el("h3", {}, "The measured run beside the winner's forecast"), ...(data.findings || []).map((line) => el("p", {}, line)), el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "measured and predicted" }, el("table", {}, el("thead", {}, el("tr", {}, ...["metric", "measured", "predicted", "ratio"].map((c) => el("th", { scope: "col" }, c)))), el("tbody", {}, ...data.metrics.map((m) => el("tr", {}, el("td", {}, m.metric), el("td", {}, digits(m.measured, 4)), el("td", {}, digits(m.predicted, 4)), el("td", {}, m.ratio ? digits(m.ratio) : "")))))));
  }
  /// The load that the winner holds, relative to the requested load.
  const held_share = (plan) => (plan.load_held || (plan.load_held_per_replica || plan.winner.load) * plan.winner.replicas) / plan.winner.load;
  async function against_load(plan, w) {
    const held = held_share(plan), most = Math.max(1.2, 1.15 * held);
    const rows = (plots.load.rows = answer.load = []);
    for (let i = 1; i <= 7; ++i) {
      const share = (most * i) / 7;
      const { status, data } = await Ask.post("simulate", body(scenario_file(w, share)));
      if (wanted || status !== 200) return;
      rows.push({ load: share * w.load, median_ttft_ms: data.median_ttft_ms, p90_ttft_ms: data.p90_ttft_ms, p99_ttft_ms: data.p99_ttft_ms, median_tpot_ms: data.median_tpot_ms, p90_tpot_ms: data.p90_tpot_ms, p99_tpot_ms: data.p99_tpot_ms, saturated: data.saturated });
      if (i > 2) load_chart(rows, w, held, plan.load_unit);
    }
  }
  /// Details of the current plan; empty for a new one.
  function draw_load() { if (shown.winner && !plots.load.card.hidden) load_chart(plots.load.rows, shown.winner, held_share(shown), shown.load_unit); }
  function load_chart(rows, w, held, unit) {
    const line = (key, label, color, dash) => ({ label, color, borderDash: dash ? [5, 4] : [], showLine: true, borderWidth: 2, pointRadius: 3, data: rows.map((r) => ({ x: r.load, y: r[key] })) });
    const sure = w.objectives.filter((o) => o.interval_high_ms && /^(ttft|tpot)_p99/.test(o.objective)).map((o) => ({ label: o.objective.slice(0, 4).toUpperCase() + " p99, 90 % of deployments like it", color: o.objective.startsWith("ttft") ? "c1" : "c0", alpha: "55", unlisted: true, quiet: true, showLine: true, borderWidth: 9, pointRadius: 0, pointHitRadius: 0, order: 9, faint: true, data: [{ x: w.load, y: o.interval_low_ms }, { x: w.load, y: o.interval_high_ms }] }));
    const of_a = pinned && pinned.plan.winner !== w && pinned.plan.load_unit === unit ? pinned.load : [];
    for (const [key, label, color] of [["p99_ttft_ms", "A: TTFT p99", "c1"], ["p99_tpot_ms", "A: TPOT p99", "c0"]]) if (of_a.length) sure.push({ label, color, faint: true, quiet: true, showLine: true, borderWidth: 2, pointRadius: 0, pointHitRadius: 0, data: of_a.map((r) => ({ x: r.load, y: r[key] })) });
    plots.load.plot.show({ kind: "scatter", x: { title: "load, " + unit }, y: { title: "ms (log)", log: true }, sets: [line("p99_ttft_ms", "TTFT p99", "c1"), line("median_ttft_ms", "TTFT median", "c1", true), line("p99_tpot_ms", "TPOT p99", "c0"), line("median_tpot_ms", "TPOT median", "c0", true), ...sure],
      guides: [{ at: Number(values.ttft), label: "TTFT limit", left: true }, { at: Number(values.tpot), label: "TPOT limit", left: true }, { at: w.load, vertical: true, label: "asked", color: "soft" }, { at: held * w.load, vertical: true, label: "holds", color: "good" }], tooltip: (item) => item.dataset.label + ": " + text.ms(item.parsed.y) + " at " + digits(item.parsed.x) + " " + unit + (rows[item.dataIndex].saturated ? " (saturated)" : "") });
  }

  /// Load against GPUs of the winner's layout, each cell simulated; cells of a row are requested from the middle outwards, and cells beyond a miss count as misses.
  async function map_of(plan, w) {
    const each = w.gpus / w.replicas, middle = w.replicas, counts = [...new Set([Math.max(1, Math.round(middle / 2)), Math.max(1, middle - 1), middle, middle + 1, middle + 2, 2 * middle])].filter((r) => r * each <= Number(values.max_gpus)).sort((a, b) => b - a);
    const loads = [0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3].map((s) => +(s * w.load).toPrecision(3)), cells = new Map();
    const draw = () => plots.map.plot.show({ columns: loads.map((v) => digits(v)), rows: counts.map((r) => digits(r * each)), x: "load, " + plan.load_unit, y: "GPUs", cell: (r, c) => { const one = cells.get(r + "," + c); return one ? { ...one, here: counts[r] === middle && c === 3 } : null; } });
    plots.map.rows = [];
    draw();
    for (let r = 0; r < counts.length; ++r) for (let c = 0; c < loads.length; ++c) {
      const before = cells.get(r + "," + (c - 1));
      if (before && before.mood === "misses" && before.far) { cells.set(r + "," + c, { mood: "misses", words: "", far: true }); continue; }
      const { status, data } = await Ask.post("simulate", body(scenario_file({ ...w, replicas: counts[r] }, loads[c] / w.load).replace("requests: 2000", "requests: 1000")));
      if (wanted) return;
      if (status !== 200) return;
      const met = !data.saturated && (data.objectives || []).every((o) => o.met);
      cells.set(r + "," + c, { mood: met ? "meets" : "misses", words: text.ms(data["p99_ttft_ms"]), far: data.saturated });
      plots.map.rows.push({ gpus: counts[r] * each, load: loads[c], verdict: met ? "meets" : "misses", p99_ttft_ms: data.p99_ttft_ms, p99_tpot_ms: data.p99_tpot_ms, saturated: data.saturated });
      draw();
    }
  }

  /// GPUs by month for a load that grows: whole replicas, by the load that one holds in the plan.
  function growth(plan, w) {
    const rate = dropped.plan ? 0 : Number(values.growth) / 100, held = plan.load_held_per_replica, card = plots.growth.card;
    card.hidden = !(rate > 0) || !w || !held;
    if (card.hidden) return;
    const each = w.gpus / w.replicas, spare = w.replicas - Math.ceil(w.load / held - 1e-9), rows = [], now = new Date();
    for (let m = 0; m <= 24; ++m) {
      const load = w.load * (1 + rate) ** m, replicas = Math.ceil(load / held - 1e-9) + Math.max(0, spare);
      rows.push({ month: new Date(now.getFullYear(), now.getMonth() + m, 1).toLocaleDateString("en", { month: "short", year: "2-digit" }), load, gpus: replicas * each, usd_per_hour: ((w.usd_per_hour ?? NaN) / w.replicas) * replicas });
    }
    plots.growth.rows = rows;
    plots.growth.plot.show({ kind: "bar", legend: false, labels: rows.map((r) => r.month), x: { categories: true }, y: { title: "GPUs", min: 0 }, sets: [{ label: "GPUs", color: "c0", colors: rows.map((r) => (r.gpus > Number(values.max_gpus) ? "c1" : "c0")), rows, data: rows.map((r) => r.gpus), maxBarThickness: 26 }], guides: [{ at: Number(values.max_gpus), label: "GPUs at most", left: true }],
      tooltip: (item) => { const r = item.dataset.rows[item.dataIndex]; return [digits(r.gpus) + " GPUs for " + digits(r.load) + " " + plan.load_unit, money(r.usd_per_hour) + " USD/h, " + money(r.usd_per_hour * 730) + " a month"]; } });
  }

  async function copy(button, words) {
    const old = button.textContent;
    try { await navigator.clipboard.writeText(words); button.textContent = "Copied"; } catch { button.textContent = "Select and copy"; }
    setTimeout(() => { button.textContent = old; }, 1500);
  }

  function start(models, gpus, engines, tell) {
    changed = tell;
    if (matchMedia("(max-width: 56rem)").matches) $("plan-panel").open = false;
    encoders = new Map(models.map((m) => [m.name, m.encoder]));
    read_hash(location.hash.startsWith("#plan") ? location.hash : "#plan");
    watch("model", (name) => { if (encoders.get(name) === "sound" && Number(values.prompt) + Number(values.output) > 448) { set("prompt", 4); set("output", 192); set("lengths", "fixed"); } });
    const families = [...new Set(models.map((m) => m.family))];
    const model = families.map((f) => ({ label: f, options: models.filter((m) => m.family === f).map((m) => ({ value: m.name, label: m.name + "  (" + parts.count(m.parameters).join(" ") + ")" })) }));
    const form = $("plan-controls");
    form.append(
      group("Load", select("model", "Model", model), select("load", "Load as", [{ value: "rate", label: "requests a second" }, { value: "users", label: "users, one request each at a time" }]), when("load", "rate", slider("rate", "Rate", 0.1, 300, "requests/s")), when("load", "users", slider("users", "Users", 1, 5000, "at a time")),
        slider("prompt", "Prompt", 16, 32000, "tokens, mean"), slider("output", "Output", 4, 8000, "tokens, mean"), select("lengths", "Lengths", [{ value: "spread", label: "spread as in chats" }, { value: "fixed", label: "all alike" }]), select("growth", "Growth", [{ value: "0", label: "none" }, ...[2, 5, 10, 20, 40].map((v) => ({ value: String(v), label: v + " % a month" }))])),
      group("Your files", drop_zone()),
      group("Objectives", slider("ttft", "First token within", 50, 20000, "ms"), slider("tpot", "Further tokens within", 4, 500, "ms"), select("percentile", "For", [{ value: "p99", label: "99 % of requests" }, { value: "p90", label: "90 % of requests" }, { value: "p50", label: "half of the requests" }]), select("confidence", "How sure", [{ value: "0", label: "the forecast taken for true" }, { value: "0.5", label: "50 %" }, { value: "0.8", label: "80 %" }, { value: "0.9", label: "90 %" }, { value: "0.95", label: "95 %" }])),
      group("What may be bought", select("price", "Price", [{ value: "on_demand", label: "on demand" }, { value: "reserved_1y", label: "reserved, 1 year" }, { value: "reserved_3y", label: "reserved, 3 years" }, { value: "spot", label: "spot" }]), slider("max_gpus", "GPUs at most", 1, 128, "in all"), el("div", { class: "field" }, el("span", { id: "plan-gpus-label" }, "GPUs to consider")), gpu_boxes(gpus)),
      group("Engine", select("engine", "Engine", plain(engines.map((e) => e.name))), select("precision", "Formats", [{ value: "both", label: "bf16 and fp8" }, { value: "bf16", label: "bf16" }, { value: "fp8", label: "fp8" }]), slider("seqs", "Sequences at a time", 8, 1024, "max_num_seqs")),
      group("Several services", ...services_box()));
    $("plan-gpus").setAttribute("role", "group");
    $("plan-gpus").setAttribute("aria-labelledby", "plan-gpus-label");
    form.addEventListener("submit", (event) => event.preventDefault());
    $("plan-charts").append(plot("pareto", "Throughput against speed", "Every point is a load that was simulated and that no other load on that GPU beats in both; a cross misses an objective."), plot("cost", "Cost against speed", "The same for the cost of a token."), plot("load", "Percentiles against load", "The winner simulated at seven loads, 2,000 requests each; at the load that is asked the p99 of 90 % of deployments like it."), plot("tornado", "10 % more of one resource", "How much more load the winner would hold; the thin bar is how sure that is."), plot("map", "Load against GPUs", "The winner's layout with more and fewer replicas, each cell simulated with 1,000 requests: its p99 TTFT.", true), plot("day", "The fleet over the day", "Replicas by the hour, as many as needed, and as an autoscaler runs them, with the load."), plot("daycost", "Cost of the day", "A fixed fleet, one switched by the clock, one autoscaled."), plot("growth", "GPUs by month", "The same replicas for a load that grows: what each holds, whole replicas, the first of the month."));
    $("plan-how").textContent = Plots.HOW;
    $("plan-stop").addEventListener("click", () => Ask.cancel());
    $("plan-pin").addEventListener("click", () => { if (!answer || !answer.plan.winner) return; pinned = pinned ? null : answer; $("plan-pin").textContent = pinned ? "Unpin A" : "Pin as A"; $("plan-pin").setAttribute("aria-pressed", String(!!pinned)); show(answer.plan); });
    $("plan-columns").addEventListener("click", () => { all_columns = !all_columns; $("plan-columns").setAttribute("aria-pressed", String(all_columns)); if (shown) table(shown); });
    $("plan-copy-command").addEventListener("click", (e) => copy(e.target, $("plan-command").textContent));
    $("plan-copy-yaml").addEventListener("click", (e) => copy(e.target, $("plan-yaml").textContent));
    $("plan-save-yaml").addEventListener("click", () => save("plan.yaml", new Blob([plan_file()], { type: "text/yaml" })));
    $("plan-save-json").addEventListener("click", () => { if (answer) save("plan.json", new Blob([JSON.stringify(answer.plan, null, 2)], { type: "application/json" })); });
    $("plan-save-csv").addEventListener("click", () => { const t = shown && (shown.verdict || []).find((p) => p.table && p.table.columns.includes("USD/h")); if (t) save("ranking.csv", new Blob([csv_of(t.table.rows.map((r) => Object.fromEntries(t.table.columns.map((c, i) => [c, r[i]]))))], { type: "text/csv" })); });
  }
  return { begin, start, run, hash, read: (text) => { read_hash(text); }, redraw: () => { if (shown && !is_services(shown)) { charts(shown); draw_load(); } }, reset: () => { read_hash("#plan"); forget(); } };
})();
