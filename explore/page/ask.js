"use strict";
// Sends requests to the server of the page, or to the engine as WebAssembly in a worker (docs/wasm.md). No other address is contacted.
window.Ask = (function () {
  const local = document.documentElement.dataset.engine === "wasm";
  class Lost extends Error {}
  const STOPPED = "Stopped.";

  /// One worker with one request at a time; requests wait in order. A worker that dies is restarted.
  class Helper {
    constructor() { this.waiting = new Map(); this.next = 0; }
    start() {
      this.worker = new Worker("worker.js");
      this.worker.onmessage = ({ data }) => {
        if (data.ended) { this.fail(data.lost); return; }
        const w = this.waiting.get(data.id);
        this.waiting.delete(data.id);
        if (!w) return;
        if (data.lost) w.no(new Lost(data.lost)); else w.yes(data);
      };
      this.worker.onerror = (event) => this.fail(event.message || "the engine's worker ended");
    }
    /// Cancels the current and all waiting requests.
    cancel() { if (this.worker && this.waiting.size) this.fail(STOPPED); }
    fail(why) {
      this.worker.terminate();
      this.worker = null;
      for (const { no } of this.waiting.values()) no(new Lost(why));
      this.waiting.clear();
    }
    ask(endpoint, keys) {
      if (typeof WebAssembly === "undefined") return Promise.reject(new Lost("This browser has no WebAssembly, in which the engine runs here; `roofcast explore` serves the same page from a program."));
      if (!this.worker) this.start();
      const id = ++this.next;
      return new Promise((yes, no) => { this.waiting.set(id, { yes, no }); this.worker.postMessage({ id, endpoint, keys: JSON.stringify(keys) }); });
    }
  }
  const quick = new Helper(), slow = new Helper();  // a plan does not hold up an estimate

  let stop = new AbortController();  // of plans and runs
  async function server(endpoint, search, body, { signal } = stop) {
    let response, data;
    try {
      response = body ? await fetch("/api/v1/" + endpoint, { method: "POST", headers: { "Content-Type": "application/json", "Roofcast-While-Connected": "1" }, body: JSON.stringify(body), signal }) : await fetch("/api/v1/" + endpoint + (search ? "?" + search : ""));
      if (response.status !== 429) data = await response.json();
    } catch { throw new Lost(body && signal.aborted ? STOPPED : "The explorer does not answer; is `roofcast explore` still running?"); }
    if (response.status === 429) { await new Promise((r) => setTimeout(r, 1000)); return server(endpoint, search, body, { signal }); }
    return { status: response.status, data, command: response.headers.get("Roofcast-Command") };
  }
  async function engine(endpoint, keys) {
    const answer = await (["plan", "simulate", "compare", "estimate_document"].includes(endpoint) ? slow : quick).ask(endpoint, keys);
    return { status: answer.status, data: JSON.parse(answer.body), command: answer.command, body: answer.body };
  }
  /// Answers that the build stored in first.js (explore/wasm/first_answers.js): lists, which stay as they are, and one plan.
  const first = { lists: {}, plan: {}, ...(local && window.FirstAnswers) };

  return {
    local, Lost,
    /// Cancels the current plan or run, which is answered with Lost.
    cancel() { if (local) slow.cancel(); else { stop.abort(); stop = new AbortController(); } },
    /// Answer to the keys of an address: {status, data, command}.
    get: (endpoint, search) => (endpoint in first.lists ? Promise.resolve({ status: 200, data: JSON.parse(first.lists[endpoint]) }) : local ? engine(endpoint, Object.fromEntries(new URLSearchParams(search))) : server(endpoint, search)),
    /// The plan of this document that was shipped with the page, as text; empty if there is none.
    came: (document) => (first.plan.document === document ? first.plan.body : ""),
    /// Answer to a document: {document, trace, config, bench}.
    post: (endpoint, body) => (local ? engine(endpoint, body) : server(endpoint, "", body)),
  };
})();
