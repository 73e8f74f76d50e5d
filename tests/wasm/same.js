"use strict";
// usage: node same.js ROOFCAST SITE
// Asks the wasm engine and the native program the same and compares their JSON byte for byte. Ends with 77 where there is no site.
const { spawnSync } = require("child_process");
const fs = require("fs"), os = require("os"), path = require("path");
const [roofcast, site] = process.argv.slice(2).map((p) => path.resolve(p));
if (!fs.existsSync(path.join(site, "roofcast.wasm"))) { console.log("SKIPPED: no " + site + "/roofcast.wasm; ./dev wasm builds it"); process.exit(77); }

const ESTIMATES = [
  { model: "llama-3.1-8b", gpu: "h100-sxm", batch: 16, output_tokens: 64 },
  { model: "llama-3.1-70b", gpu: "h100-sxm", tp: 4, dp: 2, weights: "fp8", kv_cache_dtype: "fp8", batch: 32 },
  { model: "deepseek-v3", gpu: "h200-sxm", tp: 8, batch: 64, speculation: "mtp", num_speculative_tokens: 2, acceptance: 0.9 },
  { model: "mixtral-8x7b", gpu: "a100-sxm", tp: 2, batch: 8, fidelity: "ideal" },
  { model: "mamba-2.8b", gpu: "l40s", batch: 3 },
];
const source = path.join(__dirname, "../..");
const document = (kind, name) => fs.readFileSync(path.join(source, "configs", kind, name + ".yaml"), "utf8");
const program = (...words) => spawnSync(roofcast, [...words, "--format", "json"], { encoding: "utf8", cwd: source, maxBuffer: 1 << 28 }).stdout;

/// The largest relative difference of two numbers at the same place; infinite where the places differ.
function apart(a, b) {
  if (typeof a === "number" && typeof b === "number") return a === b ? 0 : Math.abs(a - b) / Math.max(Math.abs(a), Math.abs(b));
  if (a === null || b === null || typeof a !== "object" || typeof b !== "object") return a === b ? 0 : Infinity;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return Infinity;
  return Math.max(0, ...keys.map((k) => (k in b ? apart(a[k], b[k]) : Infinity)));
}

(async () => {
  const engine = await require(path.join(site, "api.js")).loadRoofcast();
  let same = 0, close = 0, worst = 0;
  const failed = [];
  function check(what, answer, expected) {
    if (answer.status !== 200) { failed.push(what + ": " + answer.body); return; }
    if (answer.body === expected) { ++same; return; }
    const distance = apart(JSON.parse(answer.body), JSON.parse(expected));
    // Another C library's exp and log may differ in the last digit, which adds up over a run; words must not differ.
    if (distance < 1e-9) { ++close; worst = Math.max(worst, distance); } else failed.push(what + ": differs by " + distance);
  }
  for (const keys of ESTIMATES) {
    const answer = engine.ask("estimate", keys);
    const words = answer.command.split(" ").slice(1).map((w) => w.replace(/^'|'$/g, ""));
    check("estimate " + JSON.stringify(keys), answer, answer.command.includes("'") ? run_shell(answer.command) : program(...words));
  }
  for (const name of ["chat-70b-4xh100", "claim-prefix-caching", "claim-4x-by-paging", "offline-70b-2xh100", "kv-offload"])
    check("simulate " + name, engine.ask("simulate", { document: document("scenarios", name) }), program("simulate", name));
  for (const name of ["chat-70b", "qwen3-32b-h200"]) check("plan " + name, engine.ask("plan", { document: document("plans", name) }), program("plan", name));
  // What the page shows before its engine has started is what this engine answers, and the program.
  const page = {};
  new Function("window", fs.readFileSync(path.join(site, "first.js"), "utf8"))(page);
  const { lists, plan } = page.FirstAnswers, file = path.join(os.tmpdir(), "roofcast-first-" + process.pid + ".yaml");
  for (const [name, body] of Object.entries(lists)) if (engine.ask(name, {}).body !== body) failed.push("first.js: " + name + " is another than the engine's");
  if (engine.ask("plan", { document: plan.document }).body !== plan.body) failed.push("first.js: its plan is another than the engine's");
  fs.writeFileSync(file, plan.document);
  check("the first plan", { status: 200, body: plan.body }, program("plan", file));
  fs.unlinkSync(file);
  const refused = engine.ask("estimate", { model: "llama-3.1-8", gpu: "h100-sxm" });
  if (refused.status !== 400 || !refused.body.includes("llama-3.1-8b")) failed.push("a wrong name: " + refused.body);
  console.log(same + " answers equal byte for byte, " + close + " but for the last digits (at most " + worst.toExponential(1) + " apart), " + failed.length + " wrong");
  for (const line of failed) console.log(line);
  process.exit(failed.length || same + close < 13 ? 1 : 0);

  function run_shell(command) { return spawnSync("sh", ["-c", "'" + roofcast + "' " + command.replace(/^roofcast /, "") + " --format json"], { encoding: "utf8", cwd: source, maxBuffer: 1 << 28 }).stdout; }
})();
