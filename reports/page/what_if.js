"use strict";
// "What if" on a report page: the question that the result answers, asked again of the engine in this file with something changed.
(function () {
  const section = document.getElementById("what-if");
  if (!section || !window.Ask) return;
  section.hidden = false;
  const cases = JSON.parse(document.getElementById("questions").textContent);
  const ENDPOINTS = { estimate: "estimate_document", simulation: "simulate", plan: "plan" };
  function el(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  }
  const digits = (v) => (!Number.isFinite(v) ? "–" : Math.abs(v) >= 1000 ? Math.round(v).toLocaleString("en") : String(+v.toPrecision(3)));
  const ms = (v) => (!Number.isFinite(v) ? "–" : v >= 1000 ? digits(v / 1000) + " s" : digits(v) + " ms");
  const at = (tree, path) => path.split(".").reduce((node, key) => (node === null || node === undefined ? undefined : node[key]), tree);
  function put(tree, path, value) {
    const keys = path.split("."), last = keys.pop();
    let node = tree;
    for (const key of keys) {
      if (typeof node[key] === "string") node[key] = { name: node[key] };  // a name, and now something of it
      node = node[key] = typeof node[key] === "object" && node[key] !== null ? node[key] : {};
    }
    node[last] = value;
  }

  // What can be moved: where it stands in the question, its name, how it is written. `always`: also where the question leaves it to a default.
  const number = (path, name, unit = "", always = false) => ({ path, name, unit, always, kind: "number" });
  const text = (path, name, always = false) => ({ path, name, always, kind: "text" });
  const LOAD = [number("workload.arrivals.rate", "Rate", "/s"), number("workload.arrivals.concurrency", "Users at a time"), number("workload.prompt_tokens", "Prompt, tokens"), number("workload.prompt_tokens.mean", "Prompt, mean tokens"), number("workload.output_tokens", "Output, tokens"), number("workload.output_tokens.mean", "Output, mean tokens")];
  const limits = (document) => Object.keys(at(document, "objectives") || {}).filter((key) => /^(ttft|tpot|itl|e2el)_/.test(key)).map((key) => number("objectives." + key, key.replace("_", " "), "ms"));
  const DEPLOYED = [text("gpu", "GPU"), number("parallelism.tp", "Tensor parallel", "", true), number("parallelism.replicas", "Replicas", "", true), text("precision.weights", "Weights", true), text("precision.kv_cache", "KV cache", true)];
  const MOVED = {
    estimate: () => [...DEPLOYED, number("=batch", "Batch"), number("=prompt_tokens", "Prompt, tokens"), number("=output_tokens", "Output, tokens")],
    simulation: (d) => [...LOAD, ...DEPLOYED, number("engine.max_num_seqs", "max_num_seqs", "", true), ...limits(d)],
    plan: (d) => [...LOAD, ...limits(d), text("search.gpus", "GPUs to consider"), number("search.max_gpus", "GPUs at most"), number("search.confidence", "How sure, 0 to 1", "", true), text("price", "Price", true)],
  };
  // Of the answer: its name, where it stands, how it is written, whether less is better.
  const SHOWN = {
    estimate: [["TTFT", "ttft_ms", ms, true], ["TPOT", "tpot_ms", ms, true], ["whole request", "request_latency_ms", ms, true], ["output tokens/s", "output_tokens_per_s", digits, false], ["sequences that fit", "memory.max_batch", digits, false], ["USD per million output tokens", "cost.usd_per_million_output_tokens", digits, true], ["J an output token", "cost.joules_per_output_token", digits, true]],
    simulation: [["TTFT, median", "median_ttft_ms", ms, true], ["TTFT, p99", "p99_ttft_ms", ms, true], ["TPOT, median", "median_tpot_ms", ms, true], ["TPOT, p99", "p99_tpot_ms", ms, true], ["output tokens/s", "output_throughput", digits, false], ["GPUs", "gpus", digits, true], ["KV cache at its peak", "kv_cache_peak_usage", (v) => digits(100 * v) + " %", true], ["USD/h", "cost.usd_per_hour", digits, true], ["USD per million output tokens", "cost.usd_per_million_output_tokens", digits, true]],
    plan: [["GPUs", "winner.gpus", digits, true], ["USD/h", "winner.usd_per_hour", digits, true], ["probability, %", "winner.probability", (v) => digits(100 * v), false], ["TTFT, p99", "winner.p99_ttft_ms", ms, true], ["TPOT, p99", "winner.p99_tpot_ms", ms, true], ["USD per million output tokens", "winner.usd_per_million_output_tokens", digits, true], ["output tokens/s per GPU", "winner.output_tokens_per_s_per_gpu", digits, false], ["mean power, W", "winner.mean_power_watts", digits, true]],
  };
  const value_in = (question, path) => (path[0] === "=" ? question[path.slice(1)] : at(question.document, path));
  const is_amount = (v, unit) => typeof v === "number" || (typeof v === "string" && unit !== "" && /^[\d.e+-]+ ?\S*$/.test(v));

  const form = section.querySelector("form"), answer = section.querySelector(".answer"), state = section.querySelector("[role=status]");
  let chosen = 0, question = null, first = null, asked = 0, busy = false;
  const say = (words, alarm) => { state.textContent = words; state.className = alarm ? "alarm" : "soft"; };

  function field(part) {
    const was = value_in(question, part.path), id = "what-" + part.path.replace(/[^a-z_]/g, "-");
    if (part.kind === "number" ? !(is_amount(was, part.unit) || (part.always && was === undefined)) : !(typeof was === "string" || Array.isArray(was) || (part.always && was === undefined))) return [];
    const shown = Array.isArray(was) ? was.map((v) => (typeof v === "string" ? v : JSON.stringify(v))).join(", ") : was === undefined ? "" : part.kind === "number" ? String(parseFloat(was)) : was;
    const unit = typeof was === "string" && part.kind === "number" ? was.replace(/^[\d.e+-]+\s*/, "") : "";
    const input = el("input", { id, type: part.kind === "number" ? "number" : "text", ...(part.kind === "number" ? { min: 0, step: "any" } : { spellcheck: "false", autocomplete: "off" }), placeholder: was === undefined ? "default" : "" });
    input.value = shown;
    const set = (words) => {
      if (words === "" && was !== undefined) { input.value = shown; words = shown; }
      const value = words === "" ? undefined : part.kind === "number" ? (unit ? words + " " + unit : Number(words)) : Array.isArray(was) ? words.split(",").map((w) => w.trim()).filter(Boolean) : words;
      if (part.path[0] === "=") question[part.path.slice(1)] = value;
      else if (value === undefined) { if (at(question.document, part.path) !== undefined) put(question.document, part.path, null); } else put(question.document, part.path, value);
      input.classList.toggle("moved", words !== shown);
      ask();
    };
    input.addEventListener("change", () => set(input.value));
    const cells = [el("label", { for: id }, part.name + (unit ? ", " + unit : "")), input];
    const start = parseFloat(shown);
    if (part.kind === "number" && start > 0 && !part.path.endsWith("confidence")) {  // an eighth of it to eight times as much
      const range = el("input", { type: "range", min: -60, max: 60, step: 1, value: 0, "aria-label": part.name + ", dragged" });
      range.addEventListener("input", () => { let v = start * 2 ** (range.value / 20); v = Number.isInteger(was) ? Math.max(1, Math.round(v)) : +v.toPrecision(3); input.value = v; set(String(v)); });
      input.addEventListener("change", () => { range.value = Math.round(20 * Math.log2(Number(input.value) / start)) || 0; });
      cells.push(range);
    }
    return [el("div", { class: "what" }, ...cells)];
  }
  function fields() {
    question = structuredClone(cases[chosen].question);
    first = null;
    form.replaceChildren(...(cases.length > 1 ? [chooser()] : /, (the cheapest point|its scenario)/.test(cases[0].label) ? [el("p", { class: "soft" }, "Of " + cases[0].label)] : []), ...MOVED[cases[chosen].kind](question.document).flatMap(field));
    answer.replaceChildren();
    say("Change a number: the engine in this file answers here. Nothing leaves the page.");
  }
  function chooser() {
    const input = el("select", { id: "what-result" }, ...cases.map((c, i) => el("option", { value: i }, c.label)));
    input.value = chosen;
    input.addEventListener("change", () => { chosen = Number(input.value); fields(); });
    return el("div", { class: "what" }, el("label", { for: "what-result" }, "Result"), input);
  }

  async function answer_to(q) {
    const body = { document: JSON.stringify(q.document), fidelity: q.fidelity };
    for (const key of ["batch", "prompt_tokens", "output_tokens", "context"]) if (q[key] !== undefined) body[key] = String(q[key]);
    return Ask.post(ENDPOINTS[cases[chosen].kind], body);
  }
  async function ask() {
    ++asked;
    if (busy) return;
    busy = true;
    for (let now = 0; now !== asked; ) {
      now = asked;
      say(first ? "asking ..." : "starting the engine ...");
      try {
        const of = chosen;
        first = first || (await answer_to(cases[chosen].question));
        if (of !== chosen) { first = null; continue; }
        if (first.status !== 200) { say("The engine in this file cannot answer what the report answers: " + first.data.error, true); continue; }
        const began = performance.now(), fresh = await answer_to(question);
        if (now !== asked || of !== chosen) continue;
        if (fresh.status !== 200) { say(fresh.data.error, true); continue; }
        show(fresh.data, performance.now() - began);
      } catch (error) { first = null; say(error.message, true); }
    }
    busy = false;
  }
  const is_alarm = (line) => /MISSED|DOES NOT FIT|SATURATED|no deployment|exceeds the limit/.test(line);
  function show(data, took) {
    const kind = cases[chosen].kind, was = cases[chosen].reported;
    const rows = SHOWN[kind].map(([name, path, write, less]) => {
      const a = at(first.data, path), b = at(data, path), change = 100 * (b / a - 1);
      const words = typeof a !== "number" || typeof b !== "number" || a === b ? "" : Number.isFinite(change) ? (change > 0 ? "+" : "−") + digits(Math.abs(change)) + " %" : "";
      return el("tr", {}, el("td", {}, name), el("td", {}, typeof a === "number" ? write(a) : "–"), el("td", {}, typeof b === "number" ? write(b) : "–"), el("td", words ? { class: change < 0 === less ? "better" : "worse" } : {}, words));
    });
    const lines = (data.verdict || []).flatMap((part) => (part.command || part.table ? part.lines && !part.command ? part.lines : [] : part.lines || []));
    const w = kind === "plan" ? data.winner : null;
    const headline = w ? w.gpus + " × " + w.gpu + ", " + digits(w.usd_per_hour) + " USD/h" : lines.length ? lines[0] : "";
    const apart = SHOWN[kind].filter(([, path]) => typeof at(was, path) === "number" && Math.abs(at(was, path) / at(first.data, path) - 1) > 1e-6).map(([name]) => name);
    answer.replaceChildren(
      el("p", { class: is_alarm(headline) ? "headline alarm" : "headline" }, headline),
      ...(w ? lines : lines.slice(1)).filter(is_alarm).map((line) => el("p", { class: "alarm line" }, line)),
      el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "what changes" }, el("table", {}, el("thead", {}, el("tr", {}, ...["", "as reported", "now", "change"].map((c) => el("th", { scope: "col" }, c)))), el("tbody", {}, ...rows))),
      el("details", {}, el("summary", {}, "All that it says"), ...lines.map((line) => el("p", { class: is_alarm(line) ? "line alarm" : "line" }, line))));
    say("answered in " + ms(took) + (apart.length ? "; asked the report's own question, this engine says something else of " + apart.join(", ") + ": another version made the report" : ""), apart.length > 0);
  }
  document.getElementById("what-reset").addEventListener("click", fields);
  form.addEventListener("submit", (event) => event.preventDefault());
  fields();
})();
