"use strict";
// How numbers and pictures look. What they show comes from the server; nothing is forecast here.
window.Look = (function () {
  const root = document.documentElement;
  const color = (name) => getComputedStyle(root).getPropertyValue("--" + name).trim();
  const still = matchMedia("(prefers-reduced-motion: reduce)");

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

  const tick = (value) => {
    const size = Math.abs(value);
    if (value === 0) return "0";
    for (const [at, unit, by] of [[1e12, "T", 1e12], [1e9, "G", 1e9], [1e6, "M", 1e6], [1e4, "k", 1e3]]) if (size >= at) return +(value / by).toPrecision(3) + unit;
    return String(+value.toPrecision(3));
  };
  /// On a log axis the powers of ten, and 2 and 5 where there is room.
  function logTick(value) {
    const mantissa = value / 10 ** Math.floor(Math.log10(value) + 1e-9);
    const wide = this.max / this.min > 500;
    return Math.abs(mantissa - 1) < 1e-6 || (!wide && (Math.abs(mantissa - 2) < 1e-6 || Math.abs(mantissa - 5) < 1e-6)) ? tick(value) : "";
  }

  function axis(spec) {
    const out = {
      type: spec.categories ? "category" : spec.log ? "logarithmic" : "linear", title: { display: !!spec.title, text: spec.title, color: color("soft") },
      grid: { color: color("grid"), drawBorder: false, display: !spec.categories }, ticks: { color: color("soft"), maxRotation: 0, autoSkipPadding: 12 }, stacked: !!spec.stacked,
    };
    if (!spec.categories) out.ticks.callback = spec.log ? logTick : tick;
    else out.ticks.autoSkip = false;
    if (spec.percent) out.ticks.callback = (v) => percent(v);
    if (spec.step) out.ticks.stepSize = spec.step;
    if (spec.min !== undefined) out.min = spec.min;
    if (spec.max !== undefined) out.max = spec.max;
    if (spec.suggestedMax !== undefined) out.suggestedMax = spec.suggestedMax;
    if (spec.min === undefined && !spec.log && !spec.categories) out.beginAtZero = true;
    return out;
  }

  /// Lines across the plot: a capacity, a knee. {at, label, vertical, color}
  const guides = {
    id: "guides",
    afterDatasetsDraw(chart) {
      const { ctx, chartArea: a, scales } = chart;
      ctx.save();
      ctx.font = "12px system-ui, sans-serif";
      let row = 0;
      for (const g of chart.options.guides || []) {
        const p = (g.vertical ? scales.x : scales.y).getPixelForValue(g.at);
        if (!Number.isFinite(p) || (g.vertical ? p < a.left - 1 || p > a.right + 1 : p < a.top - 1 || p > a.bottom + 1)) continue;
        ctx.strokeStyle = ctx.fillStyle = color(g.color || "alarm");
        ctx.lineWidth = g.strong ? 2.5 : 1.3;
        ctx.setLineDash(g.strong ? [] : [6, 4]);
        ctx.beginPath();
        if (g.vertical) { ctx.moveTo(p, a.top); ctx.lineTo(p, a.bottom); } else { ctx.moveTo(a.left, p); ctx.lineTo(a.right, p); }
        ctx.stroke();
        const w = ctx.measureText(g.label).width, right = !g.vertical ? !g.left : p + 8 + w > a.right;
        ctx.textAlign = right ? "right" : "left";
        const x = !g.vertical ? (right ? a.right - 5 : a.left + 6) : right ? p - 5 : p + 5, y = g.vertical ? (g.low ? a.bottom - 8 : a.top + 13 + 15 * row++) : p - 6 < a.top + 9 ? p + 14 : p - 6;
        ctx.lineWidth = 3; ctx.setLineDash([]); ctx.strokeStyle = color("card"); ctx.strokeText(g.label, x, y); ctx.fillText(g.label, x, y);
      }
      // Names beside the points that ask for one, where they meet nothing already written.
      const taken = [];
      ctx.fillStyle = color("ink"); ctx.strokeStyle = color("card"); ctx.textAlign = "left"; ctx.font = "11px system-ui, sans-serif"; ctx.lineWidth = 3; ctx.setLineDash([]);
      chart.data.datasets.forEach((set, i) => {
        if (!set.names || !chart.isDatasetVisible(i)) return;
        chart.getDatasetMeta(i).data.forEach((point, k) => {
          const name = set.names[k], r = point.options.radius || 4;
          if (!name) return;
          const w = ctx.measureText(name).width, left = point.x + r + 4 + w > a.right, x = left ? point.x - r - 4 - w : point.x + r + 4, box = [x, point.y - 7, x + w, point.y + 7];
          if (box[0] < a.left || box[1] < a.top || box[3] > a.bottom || taken.some((t) => box[0] < t[2] && t[0] < box[2] && box[1] < t[3] && t[1] < box[3])) return;
          taken.push(box);
          ctx.strokeText(name, x, point.y + 4); ctx.fillText(name, x, point.y + 4);
        });
      });
      ctx.restore();
    },
  };

  /// One Chart.js chart that keeps its points when they move. `describe(data)` gives {kind, x, y, sets, guides, horizontal, tooltip}.
  class Plot {
    constructor(box, label) {
      this.canvas = document.createElement("canvas");
      this.canvas.setAttribute("role", "img");
      this.canvas.setAttribute("aria-label", label);
      box.append(this.canvas);
    }
    options(spec) {
      const scales = { x: axis(spec.x), y: axis(spec.y) };
      if (spec.horizontal) { scales.y.reverse = !!spec.reverse; }
      if (spec.right) scales.right = { ...axis(spec.right), position: "right", grid: { display: false } };
      return {
        responsive: true, maintainAspectRatio: false, animation: still.matches ? false : { duration: 280, easing: "easeOutCubic" }, indexAxis: spec.horizontal ? "y" : "x", scales,
        layout: { padding: { top: 4, right: 6 } }, interaction: { mode: spec.kind === "bar" ? "index" : "nearest", axis: spec.kind === "bar" ? (spec.horizontal ? "y" : "x") : "xy", intersect: false }, guides: spec.guides || [],
        plugins: {
          legend: { display: spec.legend !== false, position: "bottom", labels: { color: color("ink"), usePointStyle: true, boxWidth: 10, boxHeight: 8, padding: 10, filter: (item) => !(spec.hide || []).includes(item.text) } },
          tooltip: { filter: (item) => !item.dataset.quiet, callbacks: { title: spec.tooltipTitle || (spec.kind === "bar" ? undefined : () => ""), label: (item) => spec.tooltip(item) } },
        },
      };
    }
    show(spec) {
      if (typeof Chart === "undefined") return;
      for (const set of spec.sets) {
        const hue = color(set.color);
        set.borderColor = hue;
        set.backgroundColor = set.fill ? hue + "b0" : spec.kind === "bar" || set.solid ? hue : hue + "cc";
        if (set.colors) set.backgroundColor = set.colors.map((c) => color(c));
      }
      if (!this.chart) {
        this.chart = new Chart(this.canvas, { type: spec.kind, data: { labels: spec.labels, datasets: spec.sets }, options: this.options(spec), plugins: [guides] });
        return;
      }
      const old = this.chart.data.datasets;
      this.chart.data.labels = spec.labels;
      // The same object moves its points; another one would fly in from the corner.
      this.chart.data.datasets = spec.sets.map((set) => { const was = old.find((o) => o.label === set.label); return was ? Object.assign(was, { names: undefined }, set) : set; });
      this.chart.options = this.options(spec);
      this.chart.update();
    }
  }

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
