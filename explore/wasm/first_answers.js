"use strict";
// usage: node first_answers.js SITE [STATE]      writes SITE/first.js: the first answers of the page, computed by its engine. The page shows
//                                                these answers while its own engine starts, says so, and requests them again (explore/page/plan.js).
const fs = require("fs"), path = require("path");
const Question = require("../page/question.js");
const LISTS = ["models", "gpus", "engines", "choices"];

/// The script for a page that opens with `state`, the part of its address from "#" on. `site` contains the engine.
async function first_answers(site, state = "") {
  const roofcast = await require(path.resolve(site, "api.js")).loadRoofcast();
  const ask = (endpoint, keys) => { const { status, body } = roofcast.ask(endpoint, keys); if (status !== 200) throw new Error(endpoint + ": " + body); return body; };
  const out = { lists: Object.fromEntries(LISTS.map((name) => [name, ask(name, {})])), plan: {} };
  if (!state || state.startsWith("#plan")) {
    const document = Question.plan_file(Question.from_hash(state), new Map(JSON.parse(out.lists.models).map((m) => [m.name, m.encoder])));
    out.plan = { document, body: ask("plan", { document }) };
  }
  return "window.FirstAnswers = " + JSON.stringify(out) + ";\n";
}

module.exports = { first_answers };
if (require.main === module) {
  const [site, state] = process.argv.slice(2);
  first_answers(site, state).then((text) => fs.writeFileSync(path.join(site, "first.js"), text), (error) => { console.error(String(error.message || error)); process.exit(1); });
}
