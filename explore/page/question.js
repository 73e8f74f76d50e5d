"use strict";
// The request of the planner's page: the values of its fields, as in its address, and the resulting plan file. The build uses it too
// (explore/wasm/first_answers.js).
(function (root) {
  const DEFAULTS = {
    model: "llama-3.1-70b", engine: "vllm", load: "rate", rate: "6", users: "50", prompt: "1155", output: "211", lengths: "spread", ttft: "2000", tpot: "100", percentile: "p99", price: "on_demand", confidence: "0.9",
    max_gpus: "16", gpus: "a100-sxm,h100-sxm,h200-sxm,b200-sxm", precision: "both", seqs: "256", growth: "0", services: "",
  };
  const NUMBERS = ["rate", "users", "prompt", "output", "ttft", "tpot", "confidence", "max_gpus", "seqs", "growth"];
  const CHOICES = { load: ["rate", "users"], lengths: ["spread", "fixed"], percentile: ["p50", "p90", "p99"], precision: ["both", "bf16", "fp8"] };
  /// Whether a link may contain this value: a number, or one of a few words.
  const fits = (key, value) => key in DEFAULTS && (NUMBERS.includes(key) ? value.trim() !== "" && Number(value) >= 0 : !(key in CHOICES) || CHOICES[key].includes(value));
  /// The keys that differ between services; the others are common.
  const OF_SERVICE = ["model", "load", "rate", "users", "prompt", "output", "lengths", "ttft", "tpot", "percentile"];

  function to_hash(v) { const out = new URLSearchParams(); for (const key of Object.keys(DEFAULTS)) if (v[key] !== DEFAULTS[key]) out.set(key, v[key]); const s = out.toString(); return "#plan" + (s ? "?" + s : ""); }
  function from_hash(text) {
    const v = { ...DEFAULTS };
    for (const [key, value] of new URLSearchParams(text.split("?")[1] || "")) if (fits(key, value)) v[key] = value.slice(0, 2000);
    return v;
  }

  const number = (v) => String(Number(v));
  /// `encoders`: the input encoder of each model: "sound", "text" or none.
  function workload(v, encoders) {
    const law = (mean) => (v.lengths === "fixed" ? number(mean) : "{distribution: lognormal, mean: " + number(mean) + ", cv: 1}");
    const arrivals = v.load === "users" ? "{process: closed_loop, concurrency: " + number(v.users) + "}" : "{process: poisson, rate: " + number(v.rate) + " /s}";
    return "workload:\n  arrivals: " + arrivals + "\n  prompt_tokens: " + law(v.prompt) + "\n  output_tokens: " + law(v.output) + "\n" + (encoders.get(v.model) === "sound" ? "  audio: {length: 30 s}\n" : "") + "  requests: 2000\n";
  }
  const objectives = (v) => "objectives: {ttft_" + v.percentile + ": " + number(v.ttft) + " ms, tpot_" + v.percentile + ": " + number(v.tpot) + " ms}\n";
  /// The services other than the one in the fields: [{model, load, ...}]. A link may contain anything.
  function others(v) {
    try { const list = JSON.parse(v.services || "[]"); return Array.isArray(list) ? list.filter(Array.isArray).slice(0, 6).map((row) => Object.fromEntries(OF_SERVICE.map((key, i) => [key, String(row[i] ?? DEFAULTS[key])]))) : []; } catch { return []; }
  }
  const service_name = (v, i) => (v.model.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 30).replace(/-+$/, "") || "service") + "-" + (i + 1);
  const PRECISIONS = { both: "[bf16, {weights: fp8, activations: fp8, kv_cache: fp8}]", bf16: "[bf16]", fp8: "[{weights: fp8, activations: fp8, kv_cache: fp8}]" };
  function tps(v) { const out = []; for (let tp = 1; tp <= Math.min(8, Number(v.max_gpus)); tp *= 2) out.push(tp); return "[" + out.join(", ") + "]"; }
  /// The plan file; `model` and `load` override the lines of the fields.
  function plan_file(v, encoders, { model = "model: " + v.model + "\n", load = workload(v, encoders) } = {}) {
    const all = [...others(v), v];
    const asked = all.length === 1 ? model + load + objectives(v) :
      "services:\n" + all.map((s, i) => "  - name: " + service_name(s, i) + "\n" + ("model: " + s.model + "\n" + workload(s, encoders) + objectives(s)).replace(/^/gm, "    ").trimEnd() + "\n").join("");
    return "engine: " + v.engine + "\nprice: " + v.price + "\n" + asked +
      "search:\n  gpus: [" + v.gpus.split(",").filter(Boolean).join(", ") + "]\n  max_gpus: " + number(v.max_gpus) + "\n  tp: " + tps(v) + "\n  precision: " + PRECISIONS[v.precision] +
      "\n  max_num_seqs: [" + number(v.seqs) + "]\n  confidence: " + number(v.confidence) + "\n";
  }

  root.Question = { DEFAULTS, OF_SERVICE, to_hash, from_hash, workload, objectives, others, plan_file };
  if (typeof module !== "undefined" && module.exports) module.exports = root.Question;
})(typeof self !== "undefined" ? self : globalThis);
