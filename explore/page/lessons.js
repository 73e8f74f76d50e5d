"use strict";
// More pictures of the lectures: what meets a limit, paged memory, shared prefixes, techniques one after another, integers by channel.
(function () {
  const { digits, text, percent, Surface } = Look;
  const { ALL, el, plot, box, write } = Canvases;
  const b = (value) => el("b", {}, value);
  /// An input field next to the picture.
  function field(state, key, label, attributes) {
    const input = el("input", { type: "number", id: "in-" + key, value: state.get(key), ...attributes });
    input.addEventListener("change", () => state.set(key, input.value));
    state.watch(key, (value) => { input.value = value; });
    return el("label", { for: "in-" + key }, label, input);
  }
  function again(state) {
    const button = el("button", { type: "button" }, "Draw again");
    button.addEventListener("click", () => state.set("seed", (Number(state.get("seed")) + 1) % 1000000));
    return button;
  }

  function limits(card, canvas, state) {
    card.append(el("div", { class: "tools" }, field(state, "max_tpot_ms", "limit, ms per token", { min: 1, max: 10000 })));
    const grid = Look.grid(card, canvas.title);
    return (d) => grid.show({
      columns: d.batches.map(String), rows: [...d.contexts].reverse().map((c) => (c >= 1024 ? c / 1024 + "k" : String(c))), x: "sequences at a time", y: "tokens each holds",
      cell: (row, column) => { const c = d.cells[(d.contexts.length - 1 - row) * d.batches.length + column]; return { mood: c.verdict, words: c.tpot_ms ? text.ms(c.tpot_ms) : "" }; },
    });
  }

  function paging(card, canvas, state) {
    let data = null;
    card.append(el("div", { class: "tools" }, again(state)));
    const holder = el("div", { class: "plot tall" });
    card.append(holder);
    const surface = new Surface(holder, canvas.title, (ctx, w, h) => {
      if (!data || !data.sequences.length) return;
      const half = w / 2 - 10, top = 44, row = Math.min(13, (h - top) / data.sequences.length), longest = data.reserved_tokens;
      [["reserved for the longest", data.reserving, "c1"], ["blocks of " + data.block_tokens + " tokens", data.paging, "c2"]].forEach(([name, of, hue], k) => {
        const left = k * (half + 20);
        write(ctx, name, left, 8, { bold: true });
        if (of) write(ctx, digits(of.sequences) + " fit, " + percent(of.used_share) + " used", left, 27, { hue: "soft", size: w < 520 ? 10 : 12 });
        data.sequences.forEach((s, i) => {
          const y = top + i * row, held = k ? Math.min(longest, s.blocks * data.block_tokens) : longest;
          box(ctx, left, y, half * (held / longest), row - 3, Look.color(k ? "c4" : "track"));
          box(ctx, left, y, half * (s.tokens / longest), row - 3, Look.color(hue), 0.9);
        });
      });
    });
    return (fresh) => { data = fresh; surface.paint(); };
  }

  function prefix(data) {
    return {
      legend: false, x: { title: "tokens of the prompt that are found in the cache", min: 0, max: data.prompt_tokens }, y: { title: "prefill, ms" },
      sets: [{ label: "prefill", color: "c0", showLine: true, pointRadius: 3, borderWidth: 2.5, data: data.points.map((p) => ({ x: p.cached_tokens, y: p.prefill_ms, ...p })) }],
      guides: [{ at: data.prefill_ms, label: "nothing cached", color: "soft", left: true }],
      tooltip: ({ raw }) => [digits(raw.cached_tokens) + " tokens cached (" + text.bytes(raw.cached_bytes) + ")", "prefill " + text.ms(raw.prefill_ms) + ", " + digits(raw.speedup) + " x quicker"],
    };
  }

  function stack(data) {
    const rungs = data.rungs.filter((r) => r.output_tokens_per_s !== undefined);
    return {
      horizontal: true, reverse: false, legend: false, labels: rungs.map((r) => r.name), x: { title: "output tokens/s (log)", log: true, max: 3 * Math.max(...rungs.map((r) => r.output_tokens_per_s)) }, y: { categories: true },
      sets: [{ label: "tokens/s", color: "c0", colors: rungs.map((r) => (r.fits ? "c0" : "c1")), data: rungs.map((r) => r.output_tokens_per_s), rungs, names: rungs.map((r) => digits(r.total_gain) + " x"), maxBarThickness: 24 }],
      tooltip: (item) => { const r = item.dataset.rungs[item.dataIndex]; return [digits(r.output_tokens_per_s) + " tokens/s, " + digits(r.throughput_gain) + " x the one before", "TTFT " + text.ms(r.mean_ttft_ms) + ", TPOT " + text.ms(r.mean_tpot_ms), digits(r.usd_per_million_total_tokens) + " USD/M tokens, " + r.gpus + " GPU" + (r.gpus > 1 ? "s" : ""), r.fits ? r.help : "does not fit"]; },
    };
  }

  function integers(card, canvas, state) {
    let data = null;
    card.append(el("div", { class: "tools" }, again(state)));
    const holder = el("div", { class: matchMedia("(max-width: 40rem)").matches ? "plot tall" : "plot low" });
    card.append(holder);
    const surface = new Surface(holder, canvas.title, (ctx, w, h) => {
      if (!data) return;
      const narrow = w < 560, third = narrow ? w : (w - 40) / 3, cells = data.rows[0].weights.length, cell = (third - 56) / cells, high = Math.min(34, (h - 30) / (narrow ? 15 : 4));
      const most = Math.max(...data.rows.flatMap((r) => r.weights.map(Math.abs)));
      [["weights", (r) => r.weights, () => ""], ["one scale for all", (r) => r.by_tensor.integers, (r) => r.by_tensor.error], ["one scale a channel", (r) => r.by_channel.integers, (r) => r.by_channel.error]].forEach(([name, of, error], k) => {
        const left = narrow ? 0 : k * (third + 20), top = narrow ? k * (5 * high) : 0;
        write(ctx, name, left, top + 9, { bold: true });
        if (k) write(ctx, "off by", left + third, top + 9, { align: "right", hue: "soft", size: 11 });
        data.rows.forEach((r, i) => {
          const y = top + 24 + i * high;
          of(r).forEach((v, j) => {
            const strength = k ? Math.abs(v) / 127 : Math.abs(v) / most;
            box(ctx, left + j * cell, y, cell - 3, high - 4, Look.color("track"));
            box(ctx, left + j * cell, y, cell - 3, high - 4, Look.color(v < 0 ? "c1" : "c0"), 0.12 + 0.5 * strength);
            if (cell > 26 && high > 13) write(ctx, k ? String(v) : v.toFixed(2), left + j * cell + (cell - 3) / 2, y + (high - 4) / 2 + 1, { align: "center", size: 11 });
          });
          if (k) write(ctx, percent(error(r)), left + third, y + (high - 4) / 2 + 1, { align: "right", size: 11, bold: true, hue: error(r) > 0.05 ? "alarm" : "good" });
        });
      });
    });
    return (fresh) => { data = fresh; surface.paint(); };
  }

  const at = (id) => ALL.findIndex((c) => c.id === id) + 1;
  ALL.splice(at("memory"), 0, {
    id: "paging", title: "Memory in blocks", endpoint: "paging", keys: ["seed"], make: paging, lead: "Outputs end when they end. A cache that is reserved for the longest one lies empty behind the others; blocks are taken as tokens come (PagedAttention).",
    say: (d) => d.reason ? [d.reason + "."] : ["Reserved for " + digits(d.reserved_tokens) + " tokens each, ", b(digits(d.reserving.sequences)), " sequences fit; in blocks ", b(digits(d.paging.sequences)), ...(d.gain ? [": ", b(digits(d.gain) + " x")] : []), ". The last block of a sequence is all that can lie empty."],
    rows: (d) => d.sequences, columns: [["tokens", "tokens", digits], ["blocks", "blocks", digits]],
  });
  ALL.splice(at("cache"), 0, {
    id: "prefix", title: "A prompt whose beginning is known", endpoint: "prefix", make: plot("scatter", prefix), lead: "Requests that begin alike (a system prompt, a document, a conversation) share the keys and values of what they have in common: only the rest is computed.",
    say: (d) => { const most = d.points[d.points.length - 1], half = d.points.reduce((x, p) => (Math.abs(p.cached_share - 0.5) < Math.abs(x.cached_share - 0.5) ? p : x)); return ["With half of the prompt in the cache prefill takes ", b(text.ms(half.prefill_ms)), " in place of ", b(text.ms(d.prefill_ms)), "; with all but its last block ", b(text.ms(most.prefill_ms)), "."]; },
    rows: (d) => d.points, columns: [["cached_tokens", "cached", digits], ["prefill_ms", "prefill", text.ms], ["speedup", "speed-up", digits], ["saved_share", "compute saved", percent], ["cached_bytes", "cache", text.bytes]],
  });
  ALL.splice(at("batching"), 0, {
    id: "limits", title: "What is within a limit", wide: true, endpoint: "limits", keys: ["max_tpot_ms"], make: limits, lead: "A decode step of so many sequences with so many tokens each: within the time per token, slower, or more than the memory holds.",
    say: (d) => { const ok = d.cells.filter((c) => c.verdict === "meets"), most = ok.sort((x, y) => y.output_tokens_per_s - x.output_tokens_per_s)[0]; return most ? ["Most tokens within " + d.max_tpot_ms + " ms: ", b(digits(most.output_tokens_per_s) + " tokens/s"), " with ", b(digits(most.batch)), " sequences of " + digits(most.context_tokens) + " tokens."] : ["Nothing is within " + d.max_tpot_ms + " ms a token."]; },
    rows: (d) => d.cells, columns: [["batch", "sequences", digits], ["context_tokens", "tokens each", digits], ["tpot_ms", "TPOT", text.ms], ["output_tokens_per_s", "tokens/s", digits], ["verdict", "verdict", String]],
  });
  ALL.splice(at("attention"), 0, {
    id: "integers", title: "Weights as 8-bit integers", wide: true, endpoint: "integers", keys: ["seed"], make: integers, lead: "A worked example, the same for every model: w is kept as round(w / scale), 127 the largest. One large channel makes one scale for all too coarse for the small ones.",
    say: (d) => { const worst = (k) => Math.max(...d.rows.map((r) => r[k].error)); return ["The smallest channel is off by ", b(percent(worst("by_tensor"))), " with one scale for all, by ", b(percent(worst("by_channel"))), " at most with one a channel."]; },
    rows: (d) => d.rows.map((r) => ({ channel: r.channel, weights: r.weights.map((v) => v.toFixed(3)).join(" "), tensor: r.by_tensor.integers.join(" "), off: r.by_tensor.error, own: r.by_channel.integers.join(" "), less: r.by_channel.error })), columns: [["channel", "channel", String], ["weights", "weights", String], ["tensor", "one scale", String], ["off", "off by", percent], ["own", "a scale a channel", String], ["less", "off by", percent]],
  });
  ALL.splice(at("rounds"), 0, { section: "All together" }, {
    id: "stack", title: "Techniques one after another", wide: true, endpoint: "stack", make: plot("bar", stack, "tall"), lead: "From naive fp32 with no cache, one request at a time, to this deployment with batches: each bar has one technique more than the one above it.",
    say: (d) => { const r = d.rungs.filter((x) => x.total_gain !== undefined), last = r[r.length - 1]; return ["All of them together: ", b(digits(last.total_gain) + " x"), " the throughput of the first, ", b(digits(last.output_tokens_per_s) + " tokens/s"), " with " + digits(d.concurrency) + " users.", ...d.rungs.filter((x) => x.note).slice(0, 2).map((x) => " " + x.name + ": " + x.note + ".")]; },
    rows: (d) => d.rungs, columns: [["name", "with", String], ["mean_ttft_ms", "TTFT", text.ms], ["mean_tpot_ms", "TPOT", text.ms], ["output_tokens_per_s", "tokens/s", digits], ["throughput_gain", "gain", digits], ["total_gain", "in all", digits], ["memory_bytes", "memory", text.bytes], ["note", "note", String]],
  });
})();
