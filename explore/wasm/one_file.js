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
const setup = () => `"use strict";
const unpack = async (id) => {
  const [length, digits] = document.getElementById(id).textContent.split(" "), value = new Uint8Array(128);
  [...${JSON.stringify(DIGITS)}].forEach((c, i) => { value[c.charCodeAt(0)] = i; });
  const bytes = new Uint8Array((digits.length / 5) * 4), view = new DataView(bytes.buffer);
  for (let i = 0, at = 0; i < digits.length; at += 4) { let v = 0; for (let k = 0; k < 5; ++k) v = v * 85 + value[digits.charCodeAt(i++)]; view.setUint32(at, v); }
  return new Response(new Blob([bytes.subarray(0, Number(length))]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
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
  unpack("page-scripts").then((bytes) => {
    const script = document.createElement("script");
    script.src = URL.createObjectURL(new Blob([bytes], { type: "text/javascript" }));
    document.body.append(script);
  });
})();
`;
// Four bytes as five digits to the base 85: a sixteenth less than base64.
const DIGITS = [...Array(94).keys()].map((i) => String.fromCharCode(33 + i)).filter((c) => !"<>&\"'`\\-/".includes(c)).join("");
function packed(bytes) {
  const zipped = zlib.gzipSync(bytes, { level: 9 }), padded = Buffer.concat([zipped, Buffer.alloc((4 - (zipped.length % 4)) % 4)]);
  let out = zipped.length + " ";
  for (let i = 0; i < padded.length; i += 4) for (let v = padded.readUInt32BE(i), k = 4; k >= 0; --k) out += DIGITS[Math.floor(v / 85 ** k) % 85];
  return out;
}
let html = String(read("index.html"));
html = html.replace(/<link rel="stylesheet" href="explore.css">/, () => "<style>\n" + read("explore.css") + "</style>");
const scripts = [];
html = html.replace(/<script src="([^"]+)" defer><\/script>\n/g, (_, name) => { if (fs.existsSync(path.join(site, name))) scripts.push(String(read(name))); return ""; });
const first = inside(setup());
const hash = (text) => "'sha256-" + crypto.createHash("sha256").update(text).digest("base64") + "'";
html = html.replace(/content="default-src[^"]*"/, () => `content="default-src 'none'; script-src 'wasm-unsafe-eval' blob: ${hash(first)}; style-src 'unsafe-inline'; worker-src blob:; img-src data: blob:"`);
html = html.replace("</body>", () => `<script type="application/octet-stream" id="engine-wasm">${packed(read("roofcast.wasm"))}</script>\n<script type="application/octet-stream" id="engine-worker">${packed(worker)}</script>\n<script type="application/octet-stream" id="page-scripts">${packed(scripts.join("\n"))}</script>\n<script>${first}</script>\n</body>`);
fs.writeFileSync(out, html);
console.log(out + ": " + (html.length / 1e6).toFixed(2) + " MB");
if (html.length > 1.5e6) { console.error("more than the 1.5 MB that a mail carries well"); process.exit(1); }
