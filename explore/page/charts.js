"use strict";
// How numbers are written, and canvases that the page draws by itself. What they show comes from the server; nothing is forecast here.
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

  /// A canvas of our own, drawn at the screen's resolution and again whenever its size changes.
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

  return { color, digits, parts, text, percent, tick, still, Plot, Surface };
})();
