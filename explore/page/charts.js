"use strict";
// Number formats, and canvases drawn by the page. All data comes from the server; nothing is forecast here.
window.Look = (function () {
  const { color, tick, still, Plot } = Plots;

  const digits = (v, n = 3) => {
    if (!Number.isFinite(v)) return "–";
    if (v !== 0 && Math.abs(v) < 1e-3) return v.toExponential(n - 1);
    const text = Math.abs(v) >= 10 ** n ? Math.round(v).toLocaleString("en") : String(+v.toPrecision(n));
    return text;
  };
  const scaled = (v, units, n) => {
    for (const [from, by, unit] of units) if (Math.abs(v) >= from) return [digits(v / by, n), unit];
    const [, by, unit] = units[units.length - 1];
    return [digits(v / by, n), unit];
  };
  const parts = {
    ms: (v, n) => scaled(v, [[60000, 60000, "min"], [1000, 1000, "s"], [1, 1, "ms"], [0, 1e-3, "µs"]], n),
    bytes: (v, n) => scaled(v, [[1e12, 1e12, "TB"], [1e9, 1e9, "GB"], [1e6, 1e6, "MB"], [1e3, 1e3, "kB"], [0, 1, "B"]], n),
    count: (v, n) => scaled(v, [[1e12, 1e12, "T"], [1e9, 1e9, "B"], [1e6, 1e6, "M"], [1e5, 1e3, "k"], [0, 1, ""]], n),
    flops: (v, n) => scaled(v, [[1e15, 1e15, "PFLOP"], [1e12, 1e12, "TFLOP"], [1e9, 1e9, "GFLOP"], [0, 1e6, "MFLOP"]], n),
  };
  const text = Object.fromEntries(Object.entries(parts).map(([k, f]) => [k, (v, n) => f(v, n).join(k === "count" ? " " : " ").trim()]));
  const percent = (v) => digits(100 * v) + " %";

  /// A canvas drawn at the screen's resolution and redrawn whenever its size changes.
  class Surface {
    constructor(box, label, draw) {
      this.canvas = document.createElement("canvas");
      this.canvas.setAttribute("role", "img");
      this.canvas.setAttribute("aria-label", label);
      this.draw = draw;
      box.append(this.canvas);
      new ResizeObserver(() => this.paint()).observe(box);
    }
    paint() {
      const w = this.canvas.clientWidth, h = this.canvas.clientHeight, ratio = devicePixelRatio || 1;
      if (!w || !h) return;
      const W = Math.round(w * ratio), H = Math.round(h * ratio);
      if (this.canvas.width !== W || this.canvas.height !== H) { this.canvas.width = W; this.canvas.height = H; }
      const ctx = this.canvas.getContext("2d");
      ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
      ctx.clearRect(0, 0, w, h);
      ctx.font = "12px system-ui, sans-serif";
      ctx.textBaseline = "middle";
      this.draw(ctx, w, h);
    }
  }

  /// A map of verdicts: {rows (from the top), columns, x, y, cell(row, column) -> {mood, words} or null}. Each verdict has a sign and a colour.
  const MOODS = { meets: ["c2", "✓"], misses: ["c4", "–"], "does not fit": ["c1", "✕"] };
  function grid(card, label) {
    const holder = document.createElement("div");
    holder.className = "plot";
    card.append(holder);
    let spec = null;
    const surface = new Surface(holder, label, (ctx, w, h) => {
      if (!spec) return;
      const left = 58, foot = 58, across = (w - left) / spec.columns.length, high = (h - foot) / spec.rows.length;
      const put = (words, x, y, hue, align, size, bold) => { ctx.font = (bold ? "600 " : "") + size + "px system-ui, sans-serif"; ctx.textAlign = align; ctx.fillStyle = color(hue); ctx.fillText(words, x, y); };
      spec.rows.forEach((name, r) => {
        put(name, left - 8, (r + 0.5) * high, "soft", "right", 11);
        spec.columns.forEach((_, c) => {
          const cell = spec.cell(r, c), x = left + c * across, y = r * high;
          ctx.fillStyle = color("track"); ctx.globalAlpha = cell ? 1 : 0.5; ctx.beginPath(); ctx.roundRect(x, y, across - 2, high - 2, 3); ctx.fill();
          if (cell) { ctx.globalAlpha = cell.mood === "does not fit" ? 0.18 : 0.3; ctx.fillStyle = color(MOODS[cell.mood][0]); ctx.fill(); }
          ctx.globalAlpha = 1;
          if (!cell) return;
          const words = across > 46 && high > 15 && cell.words ? cell.words : MOODS[cell.mood][1];
          put(words, x + across / 2 - 1, y + high / 2, cell.here ? "link" : "ink", "center", cell.here ? 13 : 11, cell.here);
          if (cell.here) { ctx.strokeStyle = color("link"); ctx.lineWidth = 2; ctx.stroke(); }
        });
      });
      const skip = Math.ceil(30 / across);
      spec.columns.forEach((name, c) => { if (c % skip === 0) put(name, left + (c + 0.5) * across, h - foot + 11, "soft", "center", 11); });
      put(spec.x, left + (w - left) / 2, h - foot + 28, "soft", "center", 12);
      ctx.save(); ctx.translate(9, (h - foot) / 2); ctx.rotate(-Math.PI / 2); put(spec.y, 0, 0, "soft", "center", 12); ctx.restore();
      let x = left;
      for (const [name, [hue, sign]] of Object.entries(MOODS)) {
        ctx.globalAlpha = 0.45; ctx.fillStyle = color(hue); ctx.fillRect(x, h - 15, 12, 12); ctx.globalAlpha = 1;
        put(sign, x + 6, h - 8, "ink", "center", 10, true); put(name, x + 18, h - 8, "ink", "left", 12);
        x += 34 + ctx.measureText(name).width;
      }
    });
    return { canvas: surface.canvas, show(fresh) { spec = fresh; surface.paint(); } };
  }

  return { color, digits, parts, text, percent, tick, still, Plot, Surface, grid };
})();
