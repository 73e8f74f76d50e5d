"use strict";
// usage: node one_file.js SITE OUT.html [STATE]       the site as one HTML file that opens from a disk or a mail: page, scripts and the
//                                                     engine, compressed. STATE is what it opens with, such as "#plan?model=llama-3.1-8b&rate=4".
//        node one_file.js --engine SITE OUT.html      only the engine, for pages of `roofcast report`
const fs = require("fs"), path = require("path"), crypto = require("crypto"), { spawnSync } = require("child_process");
const { unpack, LEFT_OUT } = require("./unpack.js"), { first_answers } = require("./first_answers.js");
const unpacking = String(fs.readFileSync(path.join(__dirname, "unpack.js"))).replace(/\nif \(typeof module[^\n]*\n/, "\n");
const alone = process.argv[2] === "--engine";
const [site, out, state = ""] = process.argv.slice(alone ? 3 : 2);
const read = (name) => fs.readFileSync(path.join(site, name));
const inside = (text) => text.replace(/<\/script/g, "<\\/script");

const worker = unpacking + read("roofcast.js") + "\n" + read("api.js") + "\n" + String(read("worker.js"))
  .replace(/importScripts\([^)]*\);\n/, "")
  .replace("const ready = loadRoofcast();", "let start; const ready = new Promise((yes) => { start = yes; }).then((wasmBinary) => loadRoofcast({ wasmBinary }));")
  .replace("onmessage = async ({ data }) => {", "onmessage = async ({ data }) => {\n  if (data.packed) { start(unpack(data.packed)); return; }");
const setup = () => `${unpacking}
(() => {
  const Plain = Worker, packed = (id) => document.getElementById(id).textContent;
  let url = "";
  // The page loads worker.js; here it comes from the file itself, and unpacks the engine.
  window.Worker = class extends Plain {
    constructor() {
      url = url || URL.createObjectURL(new Blob([unpack(packed("engine-worker"))], { type: "text/javascript" }));
      super(url);
      this.postMessage({ packed: packed("engine-wasm") });
    }
  };
})();
`;
const page = () => `
{
  const state = ${JSON.stringify(state)};
  if (state && location.hash.length < 2) history.replaceState(null, "", state);
  const script = document.createElement("script");
  script.src = URL.createObjectURL(new Blob([unpack(document.getElementById("page-scripts").textContent)], { type: "text/javascript" }));
  document.body.append(script);
}
`;
/// The input from which unpack.js makes these bytes.
function characters(bytes) {
  const sevens = [], out = [];
  let held = 0, bits = 0;
  for (const byte of bytes) { held = (held << 8) | byte; bits += 8; while (bits >= 7) { bits -= 7; sevens.push(held >> bits); held &= (1 << bits) - 1; } }
  if (bits) sevens.push(held << (7 - bits));
  for (let i = 0; i < sevens.length; ++i) {
    const left_out = LEFT_OUT.indexOf(sevens[i]);
    out.push(left_out < 0 ? sevens[i] : ((left_out + 1) << 7) | (sevens[++i] ?? 0));
  }
  return out.map((c) => String.fromCharCode(c)).join("");
}
function packed(bytes) {
  const made = spawnSync("xz", ["--format=lzma", "--lzma1=preset=9e,lc=4,pb=0", "-c"], { input: bytes, maxBuffer: 1 << 28 });
  if (made.status !== 0) throw new Error("xz (Debian's xz-utils): " + (made.error ? made.error.message : made.stderr));
  const out = bytes.length + " " + made.stdout.length + " " + characters(made.stdout);
  if (!bytes.equals(Buffer.from(unpack(out)))) throw new Error("what was packed does not unpack to the same");
  return out;
}
/// The charts' library and plot.js, packed in a page with the engine: a third of their bytes.
const charts = () => fs.existsSync(path.join(site, "chart.min.js")) ? `<script type="application/octet-stream" id="engine-plots">${packed(Buffer.concat([read("chart.min.js"), Buffer.from("\n"), read("plot.js")]))}</script>\n` : "";
const unpack_charts = `
(() => {
  const library = document.getElementById("engine-plots"), script = document.createElement("script");
  if (!library) return;
  script.textContent = new TextDecoder().decode(unpack(library.textContent));
  document.body.append(script);
})();
`;
const engine = () => `<script type="application/octet-stream" id="engine-wasm">${packed(read("roofcast.wasm"))}</script>\n<script type="application/octet-stream" id="engine-worker">${packed(Buffer.from(worker))}</script>\n`;
function write(html) {
  fs.writeFileSync(out, html);
  const size = Buffer.byteLength(html);
  console.log(out + ": " + (size / 1e6).toFixed(2) + " MB");
  if (size > 1.5e6) { console.error("more than the 1.5 MB that a mail carries well"); process.exit(1); }
}
if (alone) {
  write(engine() + charts() + "<script>" + inside(setup() + unpack_charts + 'document.documentElement.dataset.engine = "wasm";\n' + read("ask.js")) + "</script>\n");
  process.exit(0);
}
(async () => {
  const first = state ? await first_answers(site, state) : String(read("first.js"));
  let html = String(read("index.html"));
  html = html.replace(/<link rel="stylesheet" href="explore.css">/, () => "<style>\n" + read("explore.css") + "</style>");
  const scripts = [];
  html = html.replace(/<script src="([^"]+)" defer><\/script>\n/g, (_, name) => { if (name === "first.js") scripts.push(first); else if (fs.existsSync(path.join(site, name))) scripts.push(String(read(name))); return ""; });
  const opening = inside(setup() + page());
  const hash = (text) => "'sha256-" + crypto.createHash("sha256").update(text).digest("base64") + "'";
  html = html.replace(/content="default-src[^"]*"/, () => `content="default-src 'none'; script-src 'wasm-unsafe-eval' blob: ${hash(opening)}; style-src 'unsafe-inline'; worker-src blob:; img-src data: blob:"`);
  html = html.replace("</body>", () => `${engine()}<script type="application/octet-stream" id="page-scripts">${packed(Buffer.from(scripts.join("\n")))}</script>\n<script>${opening}</script>\n</body>`);
  write(html);
})().catch((error) => { console.error(String(error.message || error)); process.exit(1); });
