"use strict";
// The engine in a worker: {id, endpoint, keys} in, {id, status, body, command} out; or {id, lost}, with `ended` if the worker is unusable.
importScripts("roofcast.js", "api.js");
const ready = loadRoofcast();
onmessage = async ({ data }) => {
  let engine = null;
  try {
    engine = await ready;
    postMessage({ id: data.id, ...engine.ask(data.endpoint, data.keys) });
  } catch (error) {
    const ended = !engine || !(error instanceof Error) || error.name === "RuntimeError";  // what is left of it says nothing more
    const words = String(error.message || error).replace(/ Build with -s ASSERTIONS.*$/, "").replace(/\.+$/, "");
    postMessage({ id: data.id, lost: (engine ? "The engine stopped: " : "The engine, roofcast.wasm, could not be loaded: ") + words + ".", ended });
    if (ended) close();
  }
};
