"use strict";
// Every picture of the page: its endpoint, its drawing, and its text.
window.Canvases = (function () {
  const { color, digits, text, percent, tick, still, Plot, Surface } = Look;

  function el(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (value === true) node.setAttribute(name, "");
      else if (value !== false && value !== undefined) node.setAttribute(name, value);
    }
    node.append(...children.filter((c) => c !== null));
    return node;
  }
  const b = (value) => el("b", {}, value);
  const point = (x, y, more) => ({ x, y, ...more });
  const raised = "–";

  function plot(kind, describe, size = "") {
    return (card, canvas) => {
      const box = el("div", { class: "plot " + size });
      card.append(box);
      const chart = new Plot(box, canvas.title);
      return (data) => chart.show({ kind, ...describe(data) });
    };
  }

  /// Play, pause and a slider over `length` positions; `draw` gets the position.
  function player(card, { label, seconds, onmove }) {
    const play = el("button", { type: "button", class: "main" }, "Play");
    const slider = el("input", { type: "range", min: 0, max: 1000, value: 0, "aria-label": label });
    const out = el("output", {});
    card.append(el("div", { class: "tools" }, play, slider, out));
    let running = null, at = 0;
    const show = (value) => {
      at = Math.min(1, Math.max(0, value));
      slider.value = Math.round(1000 * at);
      const said = onmove(at);
      out.textContent = said;
      slider.setAttribute("aria-valuetext", said);
    };
    const stop = () => { cancelAnimationFrame(running); running = null; play.textContent = "Play"; };
    const start = () => {
      if (at >= 1) at = 0;
      play.textContent = "Pause";
      let last = performance.now();
      const frame = (now) => {
        show(at + (now - last) / 1000 / seconds());
        last = now;
        if (at >= 1) stop(); else running = requestAnimationFrame(frame);
      };
      running = requestAnimationFrame(frame);
    };
    play.addEventListener("click", () => (running ? stop() : start()));
    slider.addEventListener("input", () => { stop(); show(slider.value / 1000); });
    return { refresh: () => show(at), show };
  }

  function box(ctx, x, y, w, h, fill, alpha = 1) {
    ctx.globalAlpha = alpha;
    ctx.fillStyle = fill;
    ctx.beginPath();
    ctx.roundRect(x, y, w, h, Math.min(3, w / 4));
    ctx.fill();
    ctx.globalAlpha = 1;
  }
  function write(ctx, words, x, y, { align = "left", hue = "ink", size = 12, bold = false } = {}) {
    ctx.font = (bold ? "600 " : "") + size + "px system-ui, sans-serif";
    ctx.textAlign = align;
    ctx.fillStyle = color(hue);
    ctx.fillText(words, x, y);
  }

  // One request ------------------------------------------------------------------------------------------------------
  function timeline(card, canvas) {
    let data = null, now = 0;
    const control = player(card, {
      label: "time within the request", seconds: () => 6,
      onmove(at) {
        if (!data) return "";
        now = at * data.request_latency_ms;
        surface.paint();
        return text.ms(now);
      },
    });
    const holder = el("div", { class: "plot low" });
    card.append(holder);
    const surface = new Surface(holder, canvas.title, (ctx, w, h) => {
      if (!data) return;
      const X = (ms) => 1 + (w - 2) * (ms / data.request_latency_ms), mid = h * 0.5, tall = 40;
      // Prompt tokens, all of them at once.
      const squares = Math.min(data.prompt_tokens, Math.floor(w / 13)), done = now >= data.ttft_ms;
      const progress = Math.min(1, Math.max(0, (now - data.front_end_ms) / data.prefill_ms));
      write(ctx, "prompt: " + data.prompt_tokens.toLocaleString("en") + " tokens, side by side", 0, 10, { hue: "soft" });
      for (let i = 0; i < squares; ++i) {
        box(ctx, i * 13, 21, 10, 10, color("track"));
        if (progress > 0) box(ctx, i * 13, 21, 10, 10, color("c4"), 0.25 + 0.75 * progress);
      }
      // The time axis.
      const start = mid - tall / 2;
      box(ctx, 0, start, w, tall, color("track"));
      if (now > 0) box(ctx, X(0), start, Math.max(1, X(Math.min(now, data.front_end_ms)) - X(0)), tall, color("c7"));
      if (now > data.front_end_ms) box(ctx, X(data.front_end_ms), start, Math.max(2, X(Math.min(now, data.ttft_ms)) - X(data.front_end_ms)), tall, color("c4"));
      let before = data.ttft_ms, odd = false, out = 0;
      for (const token of data.tokens) {
        if (token.at_ms > now + 1e-9) break;
        if (token.at_ms > before) { ctx.globalAlpha = odd ? 0.72 : 1; ctx.fillStyle = color("c0"); ctx.fillRect(X(before), start, Math.max(0.5, X(token.at_ms) - X(before)), tall); ctx.globalAlpha = 1; }
        before = token.at_ms; odd = !odd; out = token.token;
      }
      ctx.fillStyle = color("ink");
      ctx.fillRect(Math.min(w - 2, X(now)), start - 5, 2, tall + 10);
      const ttft = X(data.ttft_ms);
      write(ctx, "TTFT " + text.ms(data.ttft_ms), Math.min(Math.max(ttft, 40), w - 46), start + tall + 13, { align: ttft < 60 ? "left" : ttft > w - 60 ? "right" : "center", hue: "c4", bold: true });
      if (w - ttft > 190) write(ctx, text.ms(data.request_latency_ms), w, start + tall + 13, { align: "right", hue: "soft" });
      // Output tokens, one after another.
      const many = Math.min(data.output_tokens, Math.floor(w / 13)), lit = done ? Math.max(1, Math.floor(many * out / data.output_tokens)) : 0;
      for (let i = 0; i < many; ++i) box(ctx, i * 13, h - 30, 10, 10, color(i < lit ? "c0" : "track"));
      write(ctx, "output: " + (done ? out : 0).toLocaleString("en") + " of " + data.output_tokens.toLocaleString("en") + " tokens, one after another", 0, h - 8, { hue: "soft" });
    });
    let first = true;
    return (fresh) => { data = fresh; if (first) { first = false; control.show(1); } else control.refresh(); };
  }

  function cacheStepper(card, canvas) {
    let data = null, at = 0;
    const back = el("button", { type: "button", "aria-label": "one token back" }, "◀"), next = el("button", { type: "button", "aria-label": "one token on" }, "▶");
    const control = player(card, {
      label: "decode step", seconds: () => (data ? data.points.length * 0.18 : 4),
      onmove(share) {
        if (!data) return "";
        at = Math.min(data.points.length - 1, Math.floor(share * data.points.length));
        surface.paint();
        return "step " + (at + 1) + " of " + data.points.length;
      },
    });
    const go = (by) => { if (data) control.show((Math.min(data.points.length - 1, Math.max(0, at + by)) + 0.5) / data.points.length); };
    back.addEventListener("click", () => go(-1));
    next.addEventListener("click", () => go(1));
    card.lastChild.prepend(back, next);
    const holder = el("div", { class: "plot low" });
    card.append(holder);
    const surface = new Surface(holder, canvas.title, (ctx, w, h) => {
      if (!data) return;
      const p = data.points[at], n = data.points.length, left = 24, prompt = Math.min(96, w * 0.22), cell = Math.min(20, (w - left - prompt - 8) / Math.max(n - 1, 1));
      for (const [row, name] of [[0, "K"], [1, "V"]]) {
        const y = 4 + row * 26;
        write(ctx, name, 4, y + 10, { bold: true });
        box(ctx, left, y, prompt, 20, color("c2"), 0.85);
        for (let i = 1; i < n; ++i) box(ctx, left + prompt + 4 + (i - 1) * cell, y, Math.max(1, cell - 2), 20, color(i < at ? "c2" : i === at ? "c4" : "track"));
      }
      ctx.save();
      ctx.globalAlpha = 1;
      write(ctx, "prompt " + data.prompt_tokens.toLocaleString("en"), left + prompt / 2, 58, { align: "center", hue: "soft", size: 11 });
      write(ctx, text.bytes(p.kv_cache_bytes) + " in the cache", w, 58, { align: "right", bold: true });
      ctx.restore();
      const y = 82, room = w - 8, most = data.points[n - 1].tokens_without;
      write(ctx, "tokens computed in this step", 0, y, { hue: "soft" });
      box(ctx, 0, y + 12, room, 18, color("track"));
      box(ctx, 0, y + 12, Math.max(2, room * (p.tokens_without / most)), 18, color("c1"), 0.8);
      write(ctx, p.tokens_without.toLocaleString("en") + " without the cache", 8, y + 21, { size: 11, hue: "card", bold: true });
      box(ctx, 0, y + 34, room, 18, color("track"));
      box(ctx, 0, y + 34, Math.max(2, room * (p.tokens_with / most)), 18, color("c2"));
      write(ctx, p.tokens_with.toLocaleString("en") + " with it", at ? Math.max(2, room * (p.tokens_with / most)) + 8 : 8, y + 43, { size: 11, bold: true, hue: at ? "ink" : "card" });
      const line = Math.min(h - 26, y + 76);
      write(ctx, percent(p.saved_share), 0, line + 8, { size: 26, bold: true, hue: "good" });
      ctx.font = "600 26px system-ui, sans-serif";
      const after = ctx.measureText(percent(p.saved_share)).width + 12;
      write(ctx, "of the compute saved so far", after, line);
      write(ctx, text.flops(p.saved_flops) + ", " + text.ms(p.saved_ms) + " of GPU time", after, line + 16, { hue: "soft" });
    });
    let first = true;
    return (fresh) => { data = fresh; if (first) { first = false; control.show(1); } else control.refresh(); };
  }

  // One step ---------------------------------------------------------------------------------------------------------
  const phaseColor = { prefill: "c4", decode: "c0" };
  function roofline(data) {
    /// The slope is the memory's bandwidth, the flat end the peak of the matrix units.
    const said = (c) => { const [x, y] = c.points[0]; return c.name + " ceiling: " + text.flops(c.points[c.points.length - 1][1]) + "/s, " + text.bytes(y / x) + "/s"; };
    const sets = data.ceilings.map((c) => ({ label: said(c), color: c.name === "datasheet" ? "c7" : "ink", data: c.points.map(([x, y]) => point(x, y / 1e12)), showLine: true, pointRadius: 0, borderWidth: 2, borderDash: c.name === "datasheet" ? [] : [6, 4], quiet: true, pointStyle: "line" }));
    for (const phase of ["prefill", "decode"]) {
      const ops = data.operators.filter((o) => o.phase === phase);
      sets.push({
        label: phase + " operators", color: phaseColor[phase], data: ops.map((o) => point(o.arithmetic_intensity, o.achieved_flop_per_s / 1e12, o)),
        pointRadius: ops.map((o) => 3 + 14 * Math.sqrt(o.share)), pointHitRadius: 4, pointStyle: "circle", names: ops.map((o) => (o.share > 0.12 ? o.name : "")),
      });
    }
    for (const s of data.steps) sets.push({ label: "whole " + s.phase, color: phaseColor[s.phase], solid: true, data: [point(s.arithmetic_intensity, s.achieved_flop_per_s / 1e12, { name: "whole " + s.phase + " step", ...s })], pointRadius: 8, pointStyle: "rectRot", borderWidth: 2 });
    return {
      sets, guides: [{ vertical: true, at: data.ridge_flop_per_byte, label: "ridge " + digits(data.ridge_flop_per_byte) + " FLOP/B", color: "soft", low: true }],
      x: { title: "arithmetic intensity, FLOP/B", log: true }, y: { title: "achieved, TFLOP/s of one GPU", log: true },
      tooltip: ({ raw }) => [raw.name, digits(raw.x) + " FLOP/B, " + digits(raw.y) + " TFLOP/s", "bound by " + raw.bound + (raw.share === undefined ? "" : ", " + percent(raw.share) + " of the step")],
    };
  }

  const PALETTE = ["c0", "c4", "c2", "c3", "c5", "c1", "c6", "c8", "c9"];
  function breakdown(data) {
    const names = [];
    for (const phase of data.phases) for (const part of phase.parts) if (!names.includes(part.name)) names.push(part.name);
    const share = (phase, name) => (phase.parts.find((p) => p.name === name) || { share: 0, time_ms: 0 });
    return {
      horizontal: true, labels: data.phases.map((p) => p.phase), x: { title: "share of the step's time", stacked: true, min: 0, max: 1, percent: true }, y: { categories: true, stacked: true },
      hide: names.filter((name) => data.phases.every((p) => share(p, name).share < 0.02)),
      sets: names.map((name, i) => ({ label: name, color: i < 9 ? PALETTE[i] : "c7", data: data.phases.map((p) => share(p, name).share), times: data.phases.map((p) => share(p, name).time_ms), barPercentage: 0.8, categoryPercentage: 0.9, maxBarThickness: 90 })),
      tooltipTitle: (items) => items.length ? items[0].label : "",
      tooltip: (item) => (item.raw ? item.dataset.label + ": " + text.ms(item.dataset.times[item.dataIndex]) + ", " + percent(item.raw) : null),
    };
  }

  /// N x N scores: on the left all of them are written to memory and read back, on the right one tile at a time is on the chip.
  function tiles(card, canvas) {
    let data = null, at = 1;
    const SIDE = 8, CELLS = 36;  // of a causal matrix of 8 x 8 tiles
    const control = player(card, { label: "tile", seconds: () => 5, onmove(share) { at = share; if (!data) return ""; surface.paint(); return "tile " + Math.min(CELLS, Math.floor(share * CELLS) + 1) + " of " + CELLS; } });
    const holder = el("div", { class: "plot" });
    card.append(holder);
    const surface = new Surface(holder, canvas.title, (ctx, w, h) => {
      if (!data || !data.kernels.length) return;
      const side = Math.min(h - 74, w / 2 - 18), cell = side / SIDE, done = Math.min(CELLS - 1, Math.floor(at * CELLS)), most = Math.max(...data.kernels.map((kernel) => kernel.attention_ms));
      data.kernels.forEach((kernel, k) => {
        const left = k * (w / 2 + 6), hue = k ? "c2" : "c1";
        write(ctx, k ? "in tiles (FlashAttention)" : "naive: all in memory", left, 8, { bold: true });
        let n = 0;
        for (let row = 0; row < SIDE; ++row) for (let col = 0; col < SIDE; ++col) {
          const x = left + col * cell, y = 22 + row * cell, seen = col <= row, index = seen ? n++ : -1;
          box(ctx, x, y, cell - 2, cell - 2, color("track"), seen ? 1 : 0.35);
          if (!seen || index > done) continue;
          if (!k) box(ctx, x, y, cell - 2, cell - 2, color("c1"), 0.85);
          else if (index === done) box(ctx, x, y, cell - 2, cell - 2, color("c4"));
          else { ctx.strokeStyle = color("c2"); ctx.lineWidth = 1.5; ctx.strokeRect(x + 2, y + 2, cell - 6, cell - 6); }
        }
        const y = 22 + side + 12, wide = w / 2 - 6;
        write(ctx, text.bytes(kernel.attention_bytes) + " moved", left, y, { size: 12 });
        box(ctx, left, y + 12, wide, 18, color("track"));
        box(ctx, left, y + 12, Math.max(2, wide * (kernel.attention_ms / most)), 18, color(hue), 0.9);
        ctx.font = "600 11px system-ui, sans-serif";
        const inside = wide * (kernel.attention_ms / most) > 70;
        write(ctx, text.ms(kernel.attention_ms), inside ? left + 8 : left + wide * (kernel.attention_ms / most) + 8, y + 21, { size: 11, bold: true, hue: inside ? "card" : "ink" });
      });
    });
    let first = true;
    return (fresh) => { const drawn = fresh.kernels.length > 0; for (const part of card.children) part.hidden = !drawn; data = fresh; if (first) { first = false; control.show(0.5); } else control.refresh(); };
  }

  // Many requests ----------------------------------------------------------------------------------------------------
  function throughput(data) {
    const line = (points) => points.map((p) => point(p.tpot_ms, p.output_tokens_per_s, p));
    const fits = data.points.filter((p) => p.fits), rest = data.points.filter((p) => !p.fits), seam = fits.slice(-1);
    const here = data.points.find((p) => p.batch === data.batch), knee = data.points.find((p) => p.batch === data.knee_batch);
    const sets = [];
    const asked = (p) => [1, 4, 16, 64, 256, 1024].reduce((best, goal) => best || Math.abs(Math.log(p.batch / goal)) < 0.14, false);
    let last = 0;
    const names = fits.map((p) => { const now = asked(p) && p.batch > last * 2.5 ? "batch " + p.batch : ""; if (now) last = p.batch; return now; });
    if (here) sets.push({ label: "this batch", color: "c4", solid: true, data: line([here]), pointRadius: 8, pointStyle: "rectRot" });
    if (knee) sets.push({ label: "knee", color: "c1", solid: true, data: line([knee]), pointRadius: 6, pointStyle: "circle" });
    // At a batch, tokens/s = tokens of a step / its time: the low end of one interval is the high end of the other.
    const edge = (key) => fits.map((p) => point(p.tpot_ms, p.output_tokens_per_s * (p.tpot_ms / p[key]), p));
    const range = { label: "90 % of deployments like it", color: "c0", alpha: "2e", showLine: true, pointRadius: 0, pointHitRadius: 0, borderWidth: 0, tension: 0.2, pointStyle: "rect", quiet: true };
    if (fits.some((p) => p.tpot_ms_low < p.tpot_ms_high)) sets.push({ ...range, data: edge("tpot_ms_low"), fill: "+1", pair: true }, { ...range, key: "slow", data: edge("tpot_ms_high"), fill: false, unlisted: true });
    sets.push({ label: "fits", color: "c0", data: line(fits), showLine: true, pointRadius: 3, borderWidth: 2.5, tension: 0.2, names, pointStyle: "circle" });
    if (rest.length) sets.push({ label: "does not fit in memory", color: "c7", data: line([...seam, ...rest]), showLine: true, borderDash: [4, 4], pointRadius: 2, borderWidth: 1.5, pointStyle: "line" });
    return {
      sets, x: { title: "time per output token of each user, ms" }, y: { title: "output tokens a second, all users" },
      guides: knee ? [{ vertical: true, at: knee.tpot_ms, label: "knee: batch " + knee.batch, color: "c1" }] : [],
      tooltip: ({ raw }) => ["batch " + raw.batch, "TPOT " + text.ms(raw.tpot_ms) + " (" + text.ms(raw.tpot_ms_low) + " to " + text.ms(raw.tpot_ms_high) + "), TTFT " + text.ms(raw.ttft_ms), digits(raw.output_tokens_per_s) + " tokens/s, " + digits(raw.tokens_per_s_per_user) + " a user", digits(raw.usd_per_million_output_tokens) + " USD/M tokens"],
    };
  }

  function batching(card, canvas, state) {
    let data = null, at = 1;
    const control = player(card, { label: "time", seconds: () => 5, onmove(share) { at = share; if (!data) return ""; surface.paint(); return text.ms(share * Math.max(0, ...data.runs.map((r) => r.duration_ms))); } });
    for (const [key, label, max] of [["slots", "slots", 16], ["requests", "requests", 64]]) {
      const input = el("input", { type: "number", min: 1, max, value: state.get(key), id: "in-" + key });
      input.addEventListener("change", () => state.set(key, input.value));
      state.watch(key, (value) => { input.value = value; });
      card.lastChild.append(el("label", { for: "in-" + key }, label, input));
    }
    const holder = el("div", { class: "plot tall" });
    card.append(holder);
    const surface = new Surface(holder, canvas.title, (ctx, w, h) => {
      if (!data) return;
      const most = Math.max(1e-9, ...data.runs.map((r) => r.duration_ms)), X = (ms) => w * (ms / most), now = at * most, half = h / 2;
      data.runs.forEach((run, i) => {
        const top = i * half + 22, room = half - 30, row = room / data.slots;
        write(ctx, i ? "continuous batching" : "static batching", 0, i * half + 9, { bold: true });
        write(ctx, text.ms(run.duration_ms) + ", " + digits(run.output_tokens_per_s) + " tokens/s, slots " + percent(run.slot_use) + " busy", w, i * half + 9, { align: "right", hue: "soft", size: w < 480 ? 10 : 12 });
        for (let s = 0; s < data.slots; ++s) box(ctx, 0, top + s * row, X(run.duration_ms), Math.max(1, row - 2), color("track"));
        for (const r of run.requests) {
          if (r.start_ms > now) continue;
          const y = top + r.slot * row, end = Math.min(now, r.end_ms), hue = color(["c0", "c2", "c3", "c5", "c8", "c9"][r.id % 6]);
          box(ctx, X(r.start_ms), y, Math.max(1, X(end) - X(r.start_ms) - 1), Math.max(1, row - 2), hue, 0.9);
          box(ctx, X(r.start_ms), y, Math.max(1, X(Math.min(end, r.first_token_ms)) - X(r.start_ms)), Math.max(1, row - 2), color("c4"));
          if (row > 13 && X(end) - X(r.start_ms) > 26) write(ctx, String(r.id + 1), X(end) - 6, y + row / 2, { align: "right", size: 10, hue: "card", bold: true });
        }
      });
    });
    let first = true;
    return (fresh) => { data = fresh; if (first) { first = false; control.show(1); } else control.refresh(); };
  }

  // Memory -----------------------------------------------------------------------------------------------------------
  function memory(data) {
    const area = (label, hue, of) => ({ label, color: hue, data: data.points.map((p) => point(p.context_tokens, of(p) / 1e9, p)), showLine: true, pointRadius: 0, fill: label === "weights" ? "origin" : "-1", borderWidth: 1.5, pointHitRadius: 8, pointStyle: "rect" });
    const guides = [{ at: data.capacity_bytes / 1e9, label: "capacity " + text.bytes(data.capacity_bytes), strong: true }];
    if (data.usable_bytes < data.capacity_bytes) guides.push({ at: data.usable_bytes / 1e9, label: "what the engine uses", color: "soft", left: true });
    guides.push({ at: data.context_tokens, vertical: true, label: "prompt + output", color: "c4" });
    return {
      guides, sets: [area("weights", "c0", () => data.weight_bytes), area("activations", "c3", () => data.activation_bytes), area("KV cache", "c4", (p) => p.kv_cache_bytes)],
      x: { title: "context of each of the " + data.batch + " sequences, tokens", min: 0 }, y: { title: "memory of one GPU, GB", stacked: true, suggestedMax: (data.capacity_bytes / 1e9) * 1.08 },
      tooltip: ({ raw, dataset }) => [tick(raw.x) + " tokens per sequence", dataset.label + ": " + text.bytes(dataset.label === "KV cache" ? raw.kv_cache_bytes : raw.y * 1e9)],
    };
  }

  const attentionName = { own: "the model's own", mha: "MHA", gqa: "GQA", mqa: "MQA", mla: "MLA", cla: "CLA", window: "window" };
  function attention(data) {
    const rows = data.rows.filter((r) => !r.error);
    return {
      horizontal: true, legend: false, labels: rows.map((r) => attentionName[r.attention]), x: { title: "KV cache of the batch on one GPU, GB" }, y: { categories: true },
      sets: [{ label: "KV cache", color: "c2", colors: rows.map((r) => (r.attention === data.attention ? "c4" : r.fits ? "c2" : "c1")), data: rows.map((r) => r.kv_cache_bytes / 1e9), rows, barPercentage: 0.8, maxBarThickness: 46 }],
      tooltip: (item) => { const r = item.dataset.rows[item.dataIndex]; return [text.bytes(r.kv_cache_bytes) + ", " + text.bytes(r.kv_cache_bytes_per_token) + " a token", "room for " + digits(r.max_batch) + " sequences", "TPOT " + text.ms(r.tpot_ms) + (r.fits ? "" : "; does not fit")]; },
    };
  }

  function formats(card, _, state) {
    const list = el("div", { class: "formats" });
    card.append(el("p", { class: "keys soft" }, el("i", { class: "bit sign" }), " sign ", el("i", { class: "bit exponent" }), " exponent ", el("i", { class: "bit" }), " mantissa or integer"), list);
    return (data) => {
      const focus = document.activeElement && document.activeElement.dataset.format;
      const most = Math.max(...data.rows.filter((r) => !r.error).map((r) => r.weight_bytes));
      list.replaceChildren(...data.rows.map((r) => {
        const bits = el("span", { class: "bits" });
        for (const [kind, n] of [["sign", r.sign_bits], ["exponent", r.exponent_bits], ["mantissa", r.mantissa_bits]]) for (let i = 0; i < n; ++i) bits.append(el("i", { class: "bit " + kind }));
        const meter = el("span", { class: "meter" }, el("i", { class: r.fits === false ? "over" : "" }));
        if (!r.error) meter.firstChild.style.width = (100 * r.weight_bytes) / most + "%";
        const said = r.error ? "not on this GPU" : text.bytes(r.weight_bytes) + (r.fits ? "" : ", does not fit");
        return el("button", { type: "button", class: "format" + (r.fits === false ? " over" : ""), "data-format": r.format, "aria-pressed": String(r.format === data.format), title: r.error || "weights in " + r.format, disabled: !!r.error, onclick: () => state.set("weights", r.format) },
          el("span", { class: "which" }, r.format, el("small", {}, digits(r.bits) + " bit")), bits, el("span", { class: "said" }, meter, said), el("span", { class: "pace" }, r.error ? raised : text.ms(r.tpot_ms), el("small", {}, "a token")));
      }));
      if (focus) { const again = list.querySelector(`[data-format="${focus}"]`); if (again) again.focus(); }
    };
  }

  // Speculation ------------------------------------------------------------------------------------------------------
  function speculation(data) {
    const sets = data.acceptances.map((a, i) => {
      const own = a === data.acceptance;
      return { label: "acceptance " + digits(a, 2), color: own ? "c4" : ["c7", "c5", "c2", "c0", "c3", "c8"][i % 6], data: data.points.map((p) => point(p.num_speculative_tokens, p.speedup_by_acceptance[i], p)), showLine: true, pointRadius: own ? 4 : 2.5, borderWidth: own ? 3.5 : 1.5, tension: 0.15, pointStyle: "circle" };
    });
    return {
      sets, guides: [{ at: 1, label: "without speculation", color: "alarm", left: true }, { vertical: true, at: data.num_speculative_tokens, label: "k = " + data.num_speculative_tokens, color: "c4" }],
      x: { title: "drafts per step, k", min: 0, max: data.points.length, step: 1 }, y: { title: "speed-up of decoding", suggestedMax: 1.2 },
      tooltip: ({ raw, dataset }) => [dataset.label + ", k = " + raw.num_speculative_tokens, digits(raw.y) + " x", "drafts " + text.ms(raw.draft_ms) + " + verify " + text.ms(raw.verify_ms)],
    };
  }

  /// The chart, and the cost of one draft as a fraction of a step.
  function speculating(card, canvas, state) {
    const input = el("input", { type: "number", id: "in-draft_cost", min: 0, max: 1, step: 0.01, placeholder: "its own" });
    input.addEventListener("change", () => state.set("draft_cost", input.value));
    state.watch("draft_cost", (value) => { input.value = value; });
    input.value = state.get("draft_cost");
    card.append(el("div", { class: "tools" }, el("label", { for: "in-draft_cost" }, "a draft costs, in decode steps", input)));
    return plot("scatter", speculation)(card, canvas);
  }

  function rounds(card, canvas, state) {
    let data = null, at = 0, share = 1;
    const again = el("button", { type: "button" }, "Draw again");
    const control = player(card, { label: "rounds", seconds: () => (data ? data.rounds.length * 0.7 : 4), onmove(s) { if (!data) return ""; share = s; at = Math.min(data.rounds.length - 1, Math.floor(s * data.rounds.length)); surface.paint(); return "round " + (at + 1) + " of " + data.rounds.length; } });
    again.addEventListener("click", () => state.set("seed", (Number(state.get("seed")) + 1) % 1000000));
    card.lastChild.append(again);
    const holder = el("div", { class: "plot" });
    card.append(holder);
    const surface = new Surface(holder, canvas.title, (ctx, w, h) => {
      if (!data) return;
      const n = data.rounds.length, foot = 64, row = Math.min(34, (h - foot) / n), k = data.num_speculative_tokens, cell = Math.min(30, (w - 150) / (k + 1)), inside = share * n - at;
      const hue = { accepted: "c2", rejected: "c1", discarded: "track" };
      data.rounds.forEach((r, i) => {
        const y = i * row, size = row - 5;
        write(ctx, "round " + (i + 1), 0, y + size / 2, { hue: "soft", size: 11 });
        const drafted = i < at ? k : i > at ? 0 : Math.min(k, Math.floor(inside * 2 * (k + 1))), judged = i < at || (i === at && inside > 0.6) || share >= 1;
        for (let d = 0; d < k; ++d) {
          const x = 58 + d * cell;
          box(ctx, x, y, cell - 4, size, color(judged ? hue[r.drafts[d]] : d < drafted ? "c4" : "track"), judged || d >= drafted ? 1 : 0.7);
          if (judged && size > 10) write(ctx, { accepted: "✓", rejected: "✕", discarded: "" }[r.drafts[d]], x + (cell - 4) / 2, y + size / 2 + 1, { align: "center", hue: "card", bold: true, size: 11 });
        }
        box(ctx, 58 + k * cell, y, cell - 4, size, color(judged ? "c0" : "track"));
        if (judged) write(ctx, "+" + r.tokens, 58 + (k + 1) * cell + 4, y + size / 2, { bold: true });
      });
      const last = data.rounds[at], most = Math.max(...data.rounds.map((r) => Math.max(r.end_ms, r.plain_ms))), y = h - foot + 8;
      for (const [i, ms, words, c] of [[0, last.end_ms, last.total_tokens + " tokens, speculating", "c4"], [1, last.plain_ms, "the same, plain", "c7"]]) {
        box(ctx, 0, y + i * 27, w, 21, color("track"));
        box(ctx, 0, y + i * 27, w * (ms / most), 21, color(c), 0.9);
        ctx.font = "600 11px system-ui, sans-serif";
        const label = words + ": " + text.ms(ms), wide = w * (ms / most) + ctx.measureText(label).width + 16 > w;
        write(ctx, label, wide ? 8 : w * (ms / most) + 8, y + i * 27 + 11, { hue: wide ? "card" : "ink", bold: true, size: 11 });
      }
    });
    let first = true;
    return (fresh) => { data = fresh; if (first) { first = false; control.show(1); } else control.refresh(); };
  }

  // Money ------------------------------------------------------------------------------------------------------------
  /// The cheapest GPU, and the chosen one.
  const shownCosts = (data) => { const fit = data.rows.filter((r) => r.fits && r.usd_per_million_total_tokens > 0), cheap = fit.slice(0, 24); return cheap.concat(fit.slice(24).filter((r) => r.gpu === data.gpu)); };
  function costs(data) {
    const rows = shownCosts(data);
    return {
      horizontal: true, legend: false, labels: rows.map((r) => r.gpu), x: { title: "USD per million tokens" }, y: { categories: true },
      sets: [{ label: "cost", color: "c0", colors: rows.map((r) => (r.gpu === data.gpu ? "c4" : r.constants === "measured" ? "c0" : "c7")), data: rows.map((r) => r.usd_per_million_total_tokens), rows, barPercentage: 0.85, maxBarThickness: 34 }],
      tooltip: (item) => { const r = item.dataset.rows[item.dataIndex]; return [digits(r.usd_per_million_total_tokens) + " USD/M tokens at " + digits(r.usd_per_hour) + " USD/h, batch " + digits(r.batch), "TTFT " + text.ms(r.ttft_ms) + ", TPOT " + text.ms(r.tpot_ms) + " (" + text.ms(r.tpot_ms_low) + " to " + text.ms(r.tpot_ms_high) + ")", digits(r.joules_per_output_token) + " J a token", "constants: " + r.constants.replace("_", " ")]; },
    };
  }

  /// Height by the number of GPUs.
  function costing(card, canvas) {
    const draw = plot("bar", costs, "tall")(card, canvas), holder = card.lastChild;
    return (data) => { holder.style.height = Math.max(12, 4 + 1.15 * shownCosts(data).length) + "rem"; draw(data); };
  }

  const listOf = (rows, name) => rows.map((r) => r[name]).join(", ");
  /// A canvas: its endpoint, its text, its table ([key, title, format]), its drawing function.
  const ALL = [
    { section: "One request" },
    {
      id: "timeline", title: "Prefill, then decode", wide: true, endpoint: "timeline", make: timeline, lead: "One request alone on the machine, whatever the batch: its whole prompt goes through at once; then every token waits for the one before it.",
      say: (d) => ["First token after ", b(text.ms(d.ttft_ms)), " (" + (d.prefill_steps === 1 ? "one prefill step" : d.prefill_steps + " prefill steps") + ", bound by " + d.prefill_bound + "), then one every ", b(text.ms(d.tpot_ms)), " (bound by " + d.decode_bound + "): ", b(text.ms(d.request_latency_ms)), " in all."],
      rows: (d) => d.tokens, columns: [["token", "token", tick], ["at_ms", "at", text.ms]],
    },
    {
      id: "cache", title: "What the KV cache saves", endpoint: "cache", make: cacheStepper, lead: "Each token's keys and values are kept, so that a step computes one token and not all of them again.",
      say: (d) => ["Over the whole output ", b(digits(d.processed_tokens_with)), " tokens go through the layers with the cache, ", b(text.count(d.processed_tokens_without)), " without; a token costs ", b(text.bytes(d.kv_cache_bytes_per_token)), " on each GPU."],
      rows: (d) => d.points, columns: [["step", "step", tick], ["cached_tokens", "cached", tick], ["kv_cache_bytes", "cache", text.bytes], ["step_ms_with", "step with", text.ms], ["step_ms_without", "without", text.ms], ["saved_share", "compute saved", percent]],
    },
    {
      id: "memory", title: "KV cache against the GPU's memory", endpoint: "memory", make: plot("scatter", memory), lead: "The cache grows with the context of every sequence until it meets the dashed line, what the engine uses of the capacity in red.",
      say: (d) => d.full_at_tokens === null ? [d.reason || "The cache does not grow with the context."] : [b(text.count(d.parameters)), " parameters. With " + d.batch + " sequences the cache is full at ", b(digits(d.full_at_tokens)), " tokens each; now they hold ", b(digits(d.context_tokens)), ", ", b(text.bytes(d.kv_cache_bytes)), " of cache."],
      rows: (d) => d.points, columns: [["context_tokens", "context", tick], ["kv_cache_bytes", "KV cache", text.bytes]],
    },
    { section: "One step" },
    {
      id: "roofline", title: "Roofline", endpoint: "roofline", make: plot("scatter", roofline, "tall"), lead: "Under the slope memory bounds an operator, under the flat part arithmetic does. A larger bubble takes more of its step.",
      say: (d) => d.steps.flatMap((s, i) => [i ? "; a " : "A ", s.phase + " step does ", b(digits(s.arithmetic_intensity) + " FLOP/B"), " and is bound by ", b(s.bound)]).concat("."),
      rows: (d) => d.operators, columns: [["name", "operator", String], ["phase", "phase", String], ["arithmetic_intensity", "FLOP/B", digits], ["achieved_flop_per_s", "achieved", (v) => text.flops(v) + "/s"], ["time_us", "time", (v) => text.ms(v / 1e3)], ["share", "share", percent], ["bound", "bound", String]],
    },
    {
      id: "breakdown", title: "Where the time of a step goes", endpoint: "breakdown", make: plot("bar", breakdown, "tall"), lead: "Operators of all layers together, on one GPU.",
      say: (d) => d.phases.flatMap((p, i) => [i ? "; decode" : "Prefill", " of ", b(text.ms(p.time_ms)), ", most of it ", b(p.parts[0].name), " (" + percent(p.parts[0].share) + ")"]).concat("."),
      rows: (d) => d.phases.flatMap((p) => p.parts.map((q) => ({ phase: p.phase, ...q }))), columns: [["name", "part", String], ["phase", "phase", String], ["time_ms", "time", text.ms], ["share", "share", percent]],
    },
    {
      id: "tiles", title: "Attention in tiles", wide: true, endpoint: "tiles", make: tiles, lead: "Softmax(QKᵀ)V of one prompt. Naive kernels write every score to memory and read it back; tiles keep one block at a time on the chip and never write the matrix.",
      say: (d) => d.reason ? [d.reason + "."] : ["Over ", b(d.prompt_tokens.toLocaleString("en")), " tokens the scores of one head are ", b(text.bytes(d.score_matrix_bytes)), "; an SM holds ", b(text.bytes(d.sram_bytes)), ", a tile of ", b(digits(d.tile_rows)), " rows. Without the matrix attention takes ", b(text.ms(d.kernels[1].attention_ms)), " in place of ", b(text.ms(d.kernels[0].attention_ms)), "."],
      rows: (d) => d.kernels, columns: [["kernel", "kernel", String], ["attention_ms", "attention", text.ms], ["attention_bytes", "moved", text.bytes], ["attention_flops", "work", text.flops], ["step_ms", "whole step", text.ms]],
    },
    { section: "Many requests" },
    {
      id: "throughput", title: "Throughput against latency", endpoint: "throughput", make: plot("scatter", throughput, "tall"), lead: "Every point is a batch. Before the knee a larger one gains more throughput than it costs latency; after it, less.",
      say: (d) => { const knee = d.points.find((p) => p.batch === d.knee_batch); return knee ? ["The knee is at batch ", b(String(knee.batch)), ": ", b(digits(knee.output_tokens_per_s) + " tokens/s"), " at ", b(text.ms(knee.tpot_ms)), " a token. Room for ", b(digits(d.max_batch)), " sequences."] : ["No batch fits."]; },
      rows: (d) => d.points, columns: [["batch", "batch", tick], ["ttft_ms", "TTFT", text.ms], ["tpot_ms", "TPOT", text.ms], ["tpot_ms_low", "from (90 %)", text.ms], ["tpot_ms_high", "to", text.ms], ["output_tokens_per_s", "tokens/s", digits], ["tokens_per_s_per_user", "a user", digits], ["usd_per_million_output_tokens", "USD/M", digits], ["fits", "fits", String]],
    },
    {
      id: "batching", title: "Static and continuous batching", endpoint: "batching", keys: ["slots", "requests"], make: batching, lead: "The same requests, simulated: outputs differ in length. Static batches wait for their slowest; a continuous one fills a slot as soon as it is free.",
      say: (d) => [d.gain === null ? d.reason || "No request could run." : "", ...(d.gain === null ? [] : ["Continuous batching gives ", b(digits(d.gain) + " x"), " the throughput and keeps slots busy ", b(percent(d.runs[1].slot_use)), " of the time, static ", b(percent(d.runs[0].slot_use)), "."])],
      rows: (d) => d.runs.flatMap((r) => r.requests.map((q) => ({ run: r.scheduler, ...q }))), columns: [["run", "scheduler", String], ["id", "request", (v) => String(v + 1)], ["slot", "slot", (v) => String(v + 1)], ["start_ms", "start", text.ms], ["first_token_ms", "first token", text.ms], ["end_ms", "end", text.ms], ["output_tokens", "tokens", tick]],
    },
    { section: "Fewer bytes" },
    {
      id: "formats", title: "Bits of one number", endpoint: "formats", make: formats, lead: "Decode reads every weight in every step: fewer bits a number, less to read. Choose one to use it. How good the answers still are is not forecast: below 4 bits (int2, ternary) a model has to be trained for its format.",
      say: (d) => { const ok = d.rows.filter((r) => r.fits), no = d.rows.filter((r) => r.error); return [ok.length + " of " + d.rows.length + " formats fit.", no.length ? " Not computed on this GPU: " + listOf(no, "format") + "." : ""]; },
      rows: (d) => d.rows.filter((r) => !r.error), columns: [["format", "weights", String], ["bits_with_scales", "bits, with scales", digits], ["activations", "activations", String], ["weight_bytes", "weights", text.bytes], ["ttft_ms", "TTFT", text.ms], ["tpot_ms", "TPOT", text.ms], ["usd_per_million_output_tokens", "USD/M", digits], ["fits", "fits", String]],
    },
    {
      id: "attention", title: "Kinds of attention", endpoint: "attention", make: plot("bar", attention, "tall"), lead: "The same model with other keys and values: as many as heads (MHA), shared by groups (GQA), one for all (MQA), a latent (MLA), one cache for several layers (CLA), a window.",
      say: (d) => { const no = d.rows.filter((r) => r.error), least = d.rows.filter((r) => !r.error).sort((x, y) => x.kv_cache_bytes - y.kv_cache_bytes)[0]; return [...(least ? ["The smallest cache is ", b(attentionName[least.attention]), ": ", b(text.bytes(least.kv_cache_bytes)), ", room for ", b(digits(least.max_batch)), " sequences.", d.rows.some((r) => r.fits === false) ? " Red ones do not fit." : ""] : []), no.length ? " Not for this model: " + no.map((r) => attentionName[r.attention]).join(", ") + "." : ""]; },
      rows: (d) => d.rows.filter((r) => !r.error), columns: [["attention", "attention", (v) => attentionName[v]], ["kv_cache_bytes_per_token", "a token", text.bytes], ["kv_cache_bytes", "of the batch", text.bytes], ["max_batch", "room for", digits], ["tpot_ms", "TPOT", text.ms], ["output_tokens_per_s", "tokens/s", digits], ["fits", "fits", String]],
    },
    { section: "Speculation" },
    {
      id: "speculation", title: "Speed-up over drafts and acceptance", endpoint: "speculation", keys: ["draft_cost"], make: speculating, lead: "k drafts are verified in one step of the model; drafts that are refused were computed for nothing.",
      say: (d) => [d.assumed ? "Were " + d.method + " switched on: " : d.method + ": ", ...(d.best_num_speculative_tokens ? ["best at k = ", b(String(d.best_num_speculative_tokens)), ", ", b(digits(d.best_speedup) + " x"), " for an acceptance of " + digits(d.acceptance, 2) + "; a draft costs " + digits(d.draft_cost, 2) + " of a step."] : [b("decoding without it is faster"), " at this batch."])],
      rows: (d) => d.points, columns: [["num_speculative_tokens", "k", String], ["draft_ms", "drafts", text.ms], ["verify_ms", "verify", text.ms], ["tokens_per_step", "tokens per step", digits], ["speedup", "speed-up", digits]],
    },
    {
      id: "rounds", title: "Rounds of speculation", endpoint: "rounds", keys: ["seed"], make: rounds, lead: "Green drafts were accepted; the first refused one is replaced by the model's own token (blue), those after it are thrown away.",
      say: (d) => [d.assumed ? "As if " + d.method + " drafted " : d.method + " drafts ", b(String(d.num_speculative_tokens)), " tokens a round, each accepted with ", b(digits(d.acceptance, 2)), ": ", b(digits(d.tokens_per_step)), " tokens a round on average."],
      rows: (d) => d.rounds, columns: [["drafts", "drafts", (v) => v.join(", ")], ["tokens", "tokens", String], ["end_ms", "after", text.ms], ["plain_ms", "without", text.ms]],
    },
    { section: "Money" },
    {
      id: "costs", title: "Cost on every GPU", wide: true, endpoint: "costs", keys: ["max_tpot_ms"], make: costing, lead: "The same deployment on each GPU at its hourly price, busy all the time, each at the largest batch (a power of two) that fits and keeps a token within the limit.",
      say: (d) => { const ok = d.rows.filter((r) => r.fits), no = d.rows.filter((r) => r.error === "does not fit"), slow = d.rows.filter((r) => (r.error || "").startsWith("slower")), bad = d.rows.filter((r) => r.error && !no.includes(r) && !slow.includes(r)); return [...(ok.length ? ["Cheapest: ", b(ok[0].gpu), ", ", b(digits(ok[0].usd_per_million_total_tokens) + " USD"), " per million tokens at batch " + digits(ok[0].batch) + "."] : ["None fits within " + d.max_tpot_ms + " ms a token."]), no.length ? " Does not fit: " + listOf(no, "gpu") + "." : "", slow.length ? " Slower than " + d.max_tpot_ms + " ms a token: " + listOf(slow, "gpu") + "." : "", bad.length ? " " + bad.length + " others cannot compute these formats." : "", shownCosts(d).some((r) => r.constants !== "measured") ? " Grey: nothing was measured on this GPU; its constants are carried over from another, or are shares of the datasheet's." : ""]; },
      rows: (d) => d.rows.filter((r) => !r.error), columns: [["gpu", "GPU", String], ["batch", "batch", digits], ["usd_per_hour", "USD/h", digits], ["usd_per_million_total_tokens", "USD/M tokens", digits], ["ttft_ms", "TTFT", text.ms], ["tpot_ms", "TPOT", text.ms], ["joules_per_output_token", "J/token", digits], ["constants", "constants", (v) => v.replace("_", " ")], ["fits", "fits", String]],
    },
  ];

  return { ALL, el, plot, box, write };
})();
