"use strict";
// usage: node one_file.js SITE OUT.html [STATE]
// The site as one HTML file that opens from a disk or a mail: page, scripts and the engine, compressed. STATE is what it opens with,
// such as "#plan?model=llama-3.1-8b&rate=4".
const fs = require("fs"), path = require("path"), zlib = require("zlib"), crypto = require("crypto");
const [site, out, state = ""] = process.argv.slice(2);
const read = (name) => fs.readFileSync(path.join(site, name));
const inside = (text) => text.replace(/<\/script/g, "<\\/script");

const worker = read("roofcast.js") + "\n" + read("api.js") + "\n" + String(read("worker.js"))
  .replace(/importScripts\([^)]*\);\n/, "")
  .replace("const ready = loadRoofcast();", "let start; const ready = new Promise((yes) => { start = yes; }).then((wasmBinary) => loadRoofcast({ wasmBinary }));")
  .replace("onmessage = async ({ data }) => {", "onmessage = async ({ data }) => {\n  if (data.wasm) { start(data.wasm); return; }");
const setup = `"use strict";
const unpack = async (id) => {
  const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (c) => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
};
(() => {
  const Plain = Worker, code = unpack("engine-worker"), wasm = unpack("engine-wasm");
  // The scripts of the page ask for worker.js; here it comes from the file itself.
  window.Worker = class {
    constructor() {
      this.early = [];
      Promise.all([code, wasm]).then(([text, binary]) => {
        const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
        this.real = new Plain(url);
        this.real.onmessage = (e) => this.onmessage(e);
        this.real.onerror = (e) => this.onerror(e);
        this.real.postMessage({ wasm: binary });
        for (const message of this.early) this.real.postMessage(message);
      }, (error) => this.onerror({ message: "the engine in this file cannot be unpacked: " + error.message }));
    }
    postMessage(message) { if (this.real) this.real.postMessage(message); else this.early.push(message); }
    terminate() { if (this.real) this.real.terminate(); }
  };
  const state = ${JSON.stringify(state)};
  if (state && location.hash.length < 2) history.replaceState(null, "", state);
})();
`;
const packed = (bytes) => zlib.gzipSync(bytes, { level: 9 }).toString("base64");
let html = String(read("index.html"));
html = html.replace(/<link rel="stylesheet" href="explore.css">/, () => "<style>\n" + read("explore.css") + "</style>");
const scripts = [];
html = html.replace(/<script src="([^"]+)" defer><\/script>\n/g, (_, name) => { if (fs.existsSync(path.join(site, name))) scripts.push(String(read(name))); return ""; });
const all = [setup, ...scripts].map(inside);
const hash = (text) => "'sha256-" + crypto.createHash("sha256").update(text).digest("base64") + "'";
html = html.replace(/content="default-src[^"]*"/, () => `content="default-src 'none'; script-src 'wasm-unsafe-eval' blob: ${all.map(hash).join(" ")}; style-src 'unsafe-inline'; worker-src blob:; img-src data: blob:"`);
html = html.replace("</body>", () => `<script type="application/octet-stream" id="engine-wasm">${packed(read("roofcast.wasm"))}</script>\n<script type="application/octet-stream" id="engine-worker">${packed(worker)}</script>\n` + all.map((text) => "<script>" + text + "</script>\n").join("") + "</body>");
fs.writeFileSync(out, html);
console.log(out + ": " + (html.length / 1e6).toFixed(2) + " MB");
