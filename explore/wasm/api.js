"use strict";
// The whole API of the engine (docs/wasm.md):
//   const roofcast = await loadRoofcast();                       // next to roofcast.js and roofcast.wasm
//   const { status, body, command } = roofcast.ask("estimate", { model: "llama-3.1-8b", gpu: "h100-sxm", batch: 16 });
// Endpoints, keys, statuses and bodies are those of the explorer's HTTP API (docs/explorer.md); keys are an object or its JSON text.
(function (root) {
  async function loadRoofcast(options = {}) {
    const node = !root.createRoofcast;  // whose fetch opens no files
    const make = node ? require("./roofcast.js") : root.createRoofcast;
    const module = await make(node ? { wasmBinary: require("fs").readFileSync(__dirname + "/roofcast.wasm"), ...options } : options);
    return {
      ask(endpoint, keys = {}) {
        const body = module.ccall("roofcast_ask", "string", ["string", "string"], [endpoint, typeof keys === "string" ? keys : JSON.stringify(keys)]);
        return { status: module.ccall("roofcast_status", "number", [], []), body, command: module.ccall("roofcast_command", "string", [], []) };
      },
    };
  }
  root.loadRoofcast = loadRoofcast;
  if (typeof module !== "undefined" && module.exports) module.exports = { loadRoofcast };
})(typeof self !== "undefined" ? self : globalThis);
