"use strict";
// The engine in a worker: {id, endpoint, keys} in, {id, status, body, command} out.
importScripts("roofcast.js", "api.js");
const ready = loadRoofcast();
onmessage = async ({ data }) => {
  try {
    postMessage({ id: data.id, ...(await ready).ask(data.endpoint, data.keys) });
  } catch (error) {
    postMessage({ id: data.id, lost: "The engine stopped: " + (error.message || error) });
    if (!(error instanceof Error) || error.name === "RuntimeError") close();  // what is left of it says nothing more
  }
};
