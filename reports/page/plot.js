"use strict";
// Charts by Chart.js, on the report page and in the explorer: axes, reference lines, names next to points.
window.Plots = (function () {
  const root = document.documentElement;
  const color = (name) => getComputedStyle(root).getPropertyValue("--" + name).trim();
  const still = matchMedia("(prefers-reduced-motion: reduce)");

  const tick = (value) => {
    const size = Math.abs(value);
    for (const [at, unit, by] of [[1e12, "T", 1e12], [1e9, "G", 1e9], [1e6, "M", 1e6], [1e4, "k", 1e3]]) {
      if (size >= at && size < 1e15) return +(value / by).toPrecision(4) + unit;
    }
    return String(+value.toPrecision(4));
  };
  /// Ticks of a log axis: powers of ten, and 2 and 5 where there is room.
  function logTick(value) {
    const mantissa = value / 10 ** Math.floor(Math.log10(value) + 1e-9);
    const shown = this.max / this.min > 500 ? [1] : [1, 2, 5];
    return shown.some((m) => Math.abs(mantissa - m) < 1e-6) ? tick(value) : "";
  }

  /// {title, log, categories (true, or their names), min, max, suggestedMin, suggestedMax, stacked, percent, step}
  function axis(spec) {
    const out = {
      type: spec.categories ? "category" : spec.log ? "logarithmic" : "linear", title: { display: !!spec.title, text: spec.title, color: color("soft") },
      grid: { color: color("grid"), drawBorder: false, display: !spec.categories }, ticks: { color: color("soft"), maxRotation: spec.categories ? 50 : 0, autoSkipPadding: 12 }, stacked: !!spec.stacked,
    };
    if (!spec.categories) out.ticks.includeBounds = false;  // round numbers alone
    if (!spec.categories) out.ticks.callback = spec.percent ? (v) => tick(100 * v) + " %" : spec.log ? logTick : tick;
    else out.ticks.autoSkip = false;
    if (Array.isArray(spec.categories)) out.labels = spec.categories;
    if (spec.step) out.ticks.stepSize = spec.step;
    for (const end of ["min", "max", "suggestedMin", "suggestedMax"]) if (spec[end] !== undefined) out[end] = spec[end];
    if (spec.min === undefined && spec.suggestedMin === undefined && !spec.log && !spec.categories) out.beginAtZero = true;
    return out;
  }

  /// Lines across the plot: a capacity, a knee. {at, label, vertical, color, strong}
  const guides = {
    id: "guides",
    afterDatasetsDraw(chart) {
      const { ctx, chartArea: a, scales } = chart, ground = color("card") || color("paper");
      const taken = obstacles(chart), clear = (box) => taken.reduce((n, t) => n + meets(box, t), 0);
      chart.written = { guides: [], names: [] };  // for the SVG
      ctx.save();
      ctx.font = "12px system-ui, sans-serif";
      const ends = [];  // of what is written in each row above the plot
      for (const g of [...(chart.options.guides || [])].sort((one, other) => one.at - other.at)) {
        const p = (g.vertical ? scales.x : scales.y).getPixelForValue(g.at);
        if (!Number.isFinite(p) || (g.vertical ? p < a.left - 1 || p > a.right + 1 : p < a.top - 1 || p > a.bottom + 1)) continue;
        ctx.strokeStyle = ctx.fillStyle = color(g.color || "alarm");
        ctx.lineWidth = g.strong ? 2.5 : 1.3;
        ctx.setLineDash(g.strong ? [] : [6, 4]);
        ctx.beginPath();
        if (g.vertical) { ctx.moveTo(p, a.top); ctx.lineTo(p, a.bottom); } else { ctx.moveTo(a.left, p); ctx.lineTo(a.right, p); }
        ctx.stroke();
        const w = ctx.measureText(g.label).width;
        let x, y;
        if (g.vertical) {  // above the plot, in as many rows as the names need
          x = Math.max(a.left, Math.min(p - w / 2, a.right - w));
          let row = 0;
          while (ends[row] > x) ++row;
          ends[row] = x + w + 8;
          y = a.top - 5 - ROW * row;
        } else {  // at the end, and on the side, where it hides the least
          const places = [[a.right - 5 - w, p - 6], [a.left + 6, p - 6], [a.right - 5 - w, p + 14], [a.left + 6, p + 14]].filter(([, at]) => at - 10 > a.top && at < a.bottom);
          const hidden = places.map(([left, at]) => clear([left, at - 10, left + w, at + 3]));
          [x, y] = places[hidden.indexOf(Math.min(...hidden))] || [a.left + 6, p + 14];
          taken.push([x, y - 10, x + w, y + 3]);
        }
        ctx.textAlign = "left"; ctx.lineWidth = 3; ctx.setLineDash([]); ctx.strokeStyle = ground; ctx.strokeText(g.label, x, y); ctx.fillText(g.label, x, y);
        chart.written.guides.push([g.label, x, y, ctx.fillStyle]);
      }
      // Names next to points, where they cover no point and no other name. Above first, because lines of frontiers fall to the right.
      ctx.fillStyle = color("ink"); ctx.strokeStyle = ground; ctx.textAlign = "left"; ctx.font = "11px system-ui, sans-serif"; ctx.lineWidth = 3; ctx.setLineDash([]);
      chart.data.datasets.forEach((set, i) => {
        if (!set.names || !chart.isDatasetVisible(i)) return;
        chart.getDatasetMeta(i).data.forEach((point, k) => {
          const name = set.names[k], bar = point.width !== undefined && chart.config.type === "bar", r = bar ? 2 : point.options.radius || 4;
          if (!name || !Number.isFinite(point.x)) return;
          const w = ctx.measureText(name).width, right = (bar ? Math.max(point.x, point.base) : point.x) + r + 4, left = point.x - r - 4 - w;
          const places = bar ? [[right, 0]] : [[right, -9], [right, 0], [left, -9], [left, 0], [right, 9], [left, 9]];
          for (const [x, down] of places) {
            const box = [x, point.y + down - 6, x + w, point.y + down + 6];
            if (box[0] < a.left || box[2] > (bar ? chart.width : a.right + 4) || box[1] < a.top - 8 || box[3] > a.bottom || clear(box)) continue;
            taken.push(box);
            ctx.strokeText(name, x, point.y + down + 4); ctx.fillText(name, x, point.y + down + 4);
            chart.written.names.push([name, x, point.y + down + 4]);
            break;
          }
        });
      });
      ctx.restore();
    },
  };
  const ROW = 15;
  const meets = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
  /// Boxes of the drawn points; large sets are ignored, because labels could not avoid them.
  function obstacles(chart) {
    const out = [];
    chart.data.datasets.forEach((set, i) => {
      if (chart.config.type === "bar" || !chart.isDatasetVisible(i)) return;
      const points = chart.getDatasetMeta(i).data;
      if (points.length > 300) return;
      for (const p of points) { const r = (p.options && p.options.radius) || 0; if (r > 0) out.push([p.x - r, p.y - r, p.x + r, p.y + r]); }
    });
    return out;
  }
  /// Room above the plot for the names of vertical lines: one row, or two where two names are near.
  const rows_above = (guides) => Math.min(4, (guides || []).filter((g) => g.vertical && g.label).length);

  /// The range being selected with the mouse: {x, y, w, h} in pixels of the canvas.
  const stretch = {
    id: "stretch",
    afterDraw(chart) {
      const s = chart.stretch, { ctx } = chart;
      if (!s) return;
      ctx.save();
      ctx.fillStyle = color("link") + "22"; ctx.strokeStyle = color("link"); ctx.lineWidth = 1;
      ctx.fillRect(s.x, s.y, s.w, s.h); ctx.strokeRect(s.x, s.y, s.w, s.h);
      ctx.restore();
    },
  };
  const HOW = "Drag to zoom, click a point to pin what it says; arrow keys move the pin, + and - zoom, 0 shows all.";

  /// One Chart.js chart that keeps its points when they move. A spec is {kind, x, y, sets, guides, horizontal, reverse, tooltip, ...}.
  /// A set of points has Chart.js's keys and `color`, `alpha` (of its filling), `colors`, `names` (next to the points), `quiet` (no tooltip),
  /// `pair` (shown and hidden with the next set) and `unlisted` (not in the legend).
  class Plot {
    constructor(box, label) {
      this.canvas = document.createElement("canvas");
      this.canvas.setAttribute("role", "img");
      this.canvas.setAttribute("aria-label", label);
      this.canvas.tabIndex = 0;
      box.append(this.canvas);
      this.box = box;
      this.note = document.createElement("div");
      this.note.className = "pin";
      this.note.setAttribute("role", "status");
      this.note.hidden = true;
      this.whole = document.createElement("button");
      this.whole.type = "button";
      this.whole.className = "whole";
      this.whole.textContent = "Show all";
      this.whole.hidden = true;
      this.whole.addEventListener("click", () => { this.zoom({}); this.canvas.focus(); });
      box.append(this.note, this.whole);
      this.range = {};  // of x and y, where they are zoomed
      this.pinned = null;  // {set, index}: the point whose words stay
      this.listen();
    }

    // Zoom and pin -----------------------------------------------------------------------------------------------------------
    /// Mouse drags select a range; touch drags scroll the page.
    listen() {
      let from = null;
      const at = (e) => { const r = this.canvas.getBoundingClientRect(); return { x: e.clientX - r.left, y: e.clientY - r.top }; };
      const inside = (p) => { const a = this.chart && this.chart.chartArea; return a && p.x >= a.left && p.x <= a.right && p.y >= a.top && p.y <= a.bottom; };
      this.canvas.addEventListener("pointerdown", (e) => { const p = at(e); from = e.button === 0 && inside(p) ? { ...p, finger: e.pointerType === "touch" } : null; });
      this.canvas.addEventListener("pointermove", (e) => {
        if (!from || from.finger) return;
        this.chart.stretch = this.stretch_of(from, at(e));
        this.chart.draw();
      });
      addEventListener("pointerup", (e) => {
        if (!from) return;
        const start = from, end = at(e), s = this.stretch_of(start, end);
        from = null;
        this.chart.stretch = null;
        if (s && !start.finger) { this.zoom(this.range_of(s)); return; }
        this.chart.draw();
        if (Math.hypot(end.x - start.x, end.y - start.y) < 8) this.pin_at(e);
      });
      this.canvas.addEventListener("pointercancel", () => { from = null; if (this.chart) { this.chart.stretch = null; this.chart.draw(); } });
      this.canvas.addEventListener("dblclick", () => this.zoom({}));
      this.canvas.addEventListener("keydown", (e) => this.key(e));
    }
    /// An axis with little movement, or with names, is selected completely.
    stretch_of(from, to) {
      const { chartArea: a, scales } = this.chart, out = { x: a.left, y: a.top, w: a.right - a.left, h: a.bottom - a.top };
      const put = (name, low, high, start, length) => {
        const u = Math.max(low, Math.min(from[name], to[name])), v = Math.min(high, Math.max(from[name], to[name]));
        if (scales[name].type === "category" || v - u < 8) return false;
        out[start] = u; out[length] = v - u;
        return true;
      };
      const across = put("x", a.left, a.right, "x", "w"), along = put("y", a.top, a.bottom, "y", "h");
      return across || along ? out : null;
    }
    range_of(s) {
      const { chartArea: a, scales } = this.chart, out = { ...this.range };
      if (s.w < a.right - a.left - 0.5) out.x = [scales.x.getValueForPixel(s.x), scales.x.getValueForPixel(s.x + s.w)];
      if (s.h < a.bottom - a.top - 0.5) out.y = [scales.y.getValueForPixel(s.y + s.h), scales.y.getValueForPixel(s.y)];
      return out;
    }
    /// Zooms to a range of x, y or both: {x: [from, to]}; {} shows all.
    zoom(range) {
      if (!this.chart) return;
      this.range = Object.fromEntries(Object.entries(range).map(([name, [u, v]]) => [name, u < v ? [u, v] : [v, u]]).filter(([, [u, v]]) => Number.isFinite(u) && Number.isFinite(v) && u < v));
      this.show(this.spec);
    }
    /// Zooms by `by` around the middle, on every numeric axis.
    zoom_about(by) {
      const { chartArea: a } = this.chart, w = (a.right - a.left) * by, h = (a.bottom - a.top) * by, out = {};
      const middle = { x: (a.left + a.right) / 2, y: (a.top + a.bottom) / 2 };
      for (const [name, half, sign] of [["x", w / 2, 1], ["y", h / 2, -1]]) {
        const s = this.chart.scales[name];
        if (s.type !== "category") out[name] = [s.getValueForPixel(middle[name] - sign * half), s.getValueForPixel(middle[name] + sign * half)];
      }
      this.zoom(out);
    }
    sets() { return this.chart.data.datasets.map((set, i) => ({ set, i })).filter(({ set, i }) => this.chart.isDatasetVisible(i) && !set.quiet && set.data.some((p) => p !== null)).map(({ i }) => i); }
    pin_at(event) {
      const near = this.chart.getElementsAtEventForMode(event, "nearest", { intersect: false, axis: "xy" }, false).filter((e) => !this.chart.data.datasets[e.datasetIndex].quiet)[0];
      const point = near && near.element, r = this.canvas.getBoundingClientRect(), bar = this.chart.config.type === "bar";
      const far = !point || (!bar && Math.hypot(point.x - event.clientX + r.left, point.y - event.clientY + r.top) > 30);
      const same = near && this.pinned && near.datasetIndex === this.pinned.set && near.index === this.pinned.index;
      this.pin(far || same ? null : { set: near.datasetIndex, index: near.index });
    }
    key(event) {
      if (!this.chart || event.ctrlKey || event.metaKey || event.altKey) return;
      const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowUp: [1, 0], ArrowDown: [-1, 0] }[event.key];
      if (step) {
        const sets = this.sets();
        if (!sets.length) return;
        const has = (set, index) => { const p = this.chart.data.datasets[set].data[index]; return p !== null && p !== undefined; };
        const first = !this.pinned;
        let { set, index } = this.pinned || { set: sets[0], index: step[1] < 0 ? 0 : -1 };  // the first press takes the first point, or the last
        if ((step[0] && !first) || !sets.includes(set)) set = sets[(Math.max(0, sets.indexOf(set)) + step[0] + sets.length) % sets.length];
        const count = this.chart.data.datasets[set].data.length;
        index = Math.min(index, count - 1);
        for (let k = 0; k < count; ++k) { if (step[1] || first || k) index = (index + (step[1] || 1) + count) % count; if (has(set, index)) break; }
        this.pin({ set, index: Math.max(0, index) });
      } else if (event.key === "Escape") { if (this.pinned) this.pin(null); else this.zoom({}); } else if (event.key === "+" || event.key === "=") this.zoom_about(0.7); else if (event.key === "-") this.zoom_about(1 / 0.7); else if (event.key === "0") this.zoom({}); else return;
      event.preventDefault();
    }
    /// What a point says, beside it, until it is let go.
    pin(point) {
      this.pinned = point;
      const set = point && this.chart.data.datasets[point.set], element = set && this.chart.getDatasetMeta(point.set).data[point.index];
      const at = element ? element.getProps(["x", "y"], true) : {};  // where a point that moves will stand
      this.note.hidden = !element || !this.chart.isDatasetVisible(point.set) || !Number.isFinite(at.x) || !Number.isFinite(at.y);
      if (this.note.hidden) { this.note.replaceChildren(); return; }
      const { controller } = this.chart.getDatasetMeta(point.set), said = controller.getLabelAndValue(point.index);
      const words = [].concat(this.spec.tooltip({ chart: this.chart, dataset: set, datasetIndex: point.set, dataIndex: point.index, parsed: controller.getParsed(point.index), raw: set.data[point.index], label: said.label, formattedValue: said.value }));
      const lines = words.map((line) => { const p = document.createElement("p"); p.textContent = line; return p; });
      const off = document.createElement("button");
      off.type = "button";
      off.textContent = "×";
      off.setAttribute("aria-label", "unpin");
      off.addEventListener("click", () => { this.pin(null); this.canvas.focus(); });
      this.note.replaceChildren(off, ...lines);
      const a = this.chart.chartArea, x = Math.max(a.left, Math.min(a.right, at.x)), y = Math.max(a.top, Math.min(a.bottom, at.y)), right = x > (a.left + a.right) / 2;
      this.note.style.left = right ? "" : x + 8 + "px";
      this.note.style.right = right ? this.box.clientWidth - x + 8 + "px" : "";
      this.note.style.top = Math.min(y + 6, this.box.clientHeight - this.note.offsetHeight) + "px";
    }

    options(spec) {
      const scales = { x: axis({ ...spec.x, ...this.within("x", spec) }), y: axis({ ...spec.y, ...this.within("y", spec) }) };
      if (spec.horizontal) { scales.y.reverse = !!spec.reverse; }
      if (spec.right) scales.right = { ...axis(spec.right), position: "right", grid: { display: false } };
      return {
        responsive: true, maintainAspectRatio: false, animation: spec.still || still.matches ? false : { duration: 280, easing: "easeOutCubic" }, indexAxis: spec.horizontal ? "y" : "x", scales,
        layout: { padding: { top: 4 + ROW * rows_above(spec.guides), right: 6 } }, interaction: spec.interaction || { mode: spec.kind === "bar" ? "index" : "nearest", axis: spec.kind === "bar" ? (spec.horizontal ? "y" : "x") : "xy", intersect: false }, guides: spec.guides || [],
        plugins: {
          legend: {
            display: spec.legend !== false, position: "bottom",
            labels: { color: color("ink"), usePointStyle: true, boxWidth: 10, boxHeight: 8, padding: 10, filter: (item, data) => !data.datasets[item.datasetIndex].unlisted && !(spec.hide || []).includes(item.text) },
            onClick(_, item, { chart }) {
              const i = item.datasetIndex, show = !chart.isDatasetVisible(i);
              for (const k of chart.data.datasets[i].pair ? [i, i + 1] : [i]) chart.setDatasetVisibility(k, show);
              chart.update();
            },
          },
          tooltip: { backgroundColor: color("ink"), titleColor: color("card") || color("paper"), bodyColor: color("card") || color("paper"), filter: (item) => !item.dataset.quiet, callbacks: { title: spec.tooltipTitle || (spec.kind === "bar" ? undefined : () => ""), label: (item) => spec.tooltip(item) } },
        },
      };
    }
    /// The zoomed range of an axis, if it can hold it.
    within(name, spec) {
      const range = this.range[name];
      if (range && (spec[name].categories || (spec[name].log && range[0] <= 0))) delete this.range[name];
      return this.range[name] ? { min: range[0], max: range[1] } : {};
    }
    show(spec) {
      if (typeof Chart === "undefined") return;
      this.spec = spec;
      for (const set of spec.sets) {
        const hue = color(set.color);
        set.borderColor = set.faint ? hue + "55" : hue;
        set.backgroundColor = hue + (set.alpha || (set.fill ? "b0" : spec.kind === "bar" || set.solid ? "" : "cc"));
        if (set.colors) set.backgroundColor = set.colors.map((c) => color(c));
      }
      if (!this.chart) {
        this.chart = new Chart(this.canvas, { type: spec.kind, data: { labels: spec.labels, datasets: spec.sets }, options: this.options(spec), plugins: [guides, stretch] });
        return;
      }
      const old = this.chart.data.datasets;
      this.chart.data.labels = spec.labels;
      // The same object moves its points; another one would fly in from the corner.
      this.chart.data.datasets = spec.sets.map((set) => { const was = old.find((o) => (o.key ?? o.label) === (set.key ?? set.label)); return was && was !== set ? Object.assign(was, { names: undefined }, set) : set; });
      this.chart.options = this.options(spec);
      this.whole.hidden = !Object.keys(this.range).length;
      this.chart.update();
      if (this.pinned) this.pin(this.pinned);
    }
  }

  const escaped = (words) => String(words).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
  /// What Chart.js has on its canvas as an SVG of the same size: axes, areas, lines, bars, points, their names, lines across, legend.
  function svg_of(chart, title) {
    const { chartArea: a, scales, width, height } = chart, ink = color("ink"), soft = color("soft"), ground = color("card") || color("paper"), out = [], round = (v) => +v.toFixed(1);
    const words = (text, x, y, more = "") => out.push(`<text x="${round(x)}" y="${round(y)}" ${more}>${escaped(text)}</text>`);
    for (const [name, s] of Object.entries(scales)) {
      const across = name === "x";
      s.ticks.forEach((t, i) => {
        const p = s.getPixelForTick(i);
        if (s.type !== "category") out.push(across ? `<path d="M${round(p)} ${a.top}V${a.bottom}" stroke="${color("grid")}"/>` : `<path d="M${a.left} ${round(p)}H${a.right}" stroke="${color("grid")}"/>`);
        if (t.label !== "") words(t.label, across ? p : a.left - 6, across ? a.bottom + 15 : p + 4, `fill="${soft}" text-anchor="${across ? "middle" : "end"}"`);
      });
      const t = s.options.title;
      if (t.display) across ? words(t.text, (a.left + a.right) / 2, a.bottom + 34, `fill="${soft}" text-anchor="middle"`) : words(t.text, 0, 0, `fill="${soft}" text-anchor="middle" transform="translate(13 ${round((a.top + a.bottom) / 2)}) rotate(-90)"`);
    }
    const shown = chart.data.datasets.map((set, i) => ({ set, i, points: chart.getDatasetMeta(i).data })).filter(({ i }) => chart.isDatasetVisible(i));
    for (const { set, points } of shown) {
      const hue = (k, own) => (Array.isArray(own) ? own[k] : own), line = points.filter((p) => Number.isFinite(p.x) && Number.isFinite(p.y)).map((p) => round(p.x) + " " + round(p.y));
      if (chart.config.type !== "bar" && set.showLine !== false && line.length > 1) {
        const below = set.fill === "+1" || set.fill === "-1" ? shown.find((o) => o.i === chart.data.datasets.indexOf(set) + Number(set.fill)) : null;
        if (set.fill) out.push(`<path d="M${line.join("L")}${below ? "L" + [...below.points].reverse().map((p) => round(p.x) + " " + round(p.y)).join("L") : `L${line[line.length - 1].split(" ")[0]} ${round(scales.y.getPixelForValue(scales.y.min))}L${line[0].split(" ")[0]} ${round(scales.y.getPixelForValue(scales.y.min))}`}Z" fill="${set.backgroundColor}"/>`);
        if (set.borderWidth !== 0) out.push(`<path d="M${line.join("L")}" fill="none" stroke="${set.borderColor}" stroke-width="${set.borderWidth || 2}"${(set.borderDash || []).length ? ` stroke-dasharray="${set.borderDash.join(" ")}"` : ""}/>`);
      }
      points.forEach((p, k) => {
        if (!Number.isFinite(p.x) || !Number.isFinite(p.y)) return;
        if (p.width !== undefined && chart.config.type === "bar") { const flat = p.horizontal, x = flat ? Math.min(p.base, p.x) : p.x - p.width / 2, y = flat ? p.y - p.height / 2 : Math.min(p.base, p.y); out.push(`<rect x="${round(x)}" y="${round(y)}" width="${round(flat ? Math.abs(p.x - p.base) : p.width)}" height="${round(flat ? p.height : Math.abs(p.y - p.base))}" fill="${hue(k, set.backgroundColor)}"/>`); }
        else if (p.options && p.options.radius > 0) out.push(p.options.pointStyle === "crossRot" ? `<path d="M${round(p.x - 3)} ${round(p.y - 3)}l6 6m0 -6l-6 6" stroke="${set.borderColor}"/>` : `<circle cx="${round(p.x)}" cy="${round(p.y)}" r="${round(p.options.radius)}" fill="${hue(k, set.backgroundColor)}"/>`);
      });
    }
    for (const g of chart.options.guides || []) {
      const p = (g.vertical ? scales.x : scales.y).getPixelForValue(g.at), c = color(g.color || "alarm");
      if (!Number.isFinite(p) || (g.vertical ? p < a.left || p > a.right : p < a.top || p > a.bottom)) continue;
      out.push(`<path d="${g.vertical ? `M${round(p)} ${a.top}V${a.bottom}` : `M${a.left} ${round(p)}H${a.right}`}" stroke="${c}" stroke-width="${g.strong ? 2.5 : 1.3}"${g.strong ? "" : ' stroke-dasharray="6 4"'}/>`);
    }
    for (const [label, x, y, hue] of chart.written.guides) words(label, x, y, `fill="${hue}" stroke="${ground}" stroke-width="3" paint-order="stroke"`);
    for (const [name, x, y] of chart.written.names) words(name, x, y, `font-size="11" fill="${ink}" stroke="${ground}" stroke-width="3" paint-order="stroke"`);
    let x = a.left, foot = height + 26;
    if (chart.options.plugins.legend.display) for (const { set } of shown) {
      if (set.unlisted || !set.label) continue;
      if (x + 26 + 6.8 * set.label.length > width) { x = a.left; foot += 18; }
      out.push(`<rect x="${round(x)}" y="${foot - 9}" width="10" height="10" rx="5" fill="${Array.isArray(set.backgroundColor) ? set.borderColor : set.backgroundColor}" stroke="${set.borderColor}"/>`);
      words(set.label, x + 15, foot, `fill="${ink}"`);
      x += 30 + 6.8 * set.label.length;
    }
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 -30 ${width} ${foot + 42}" width="${width}" height="${foot + 42}" font-family="system-ui, sans-serif" font-size="12"><title>${escaped(title)}</title><rect y="-30" width="100%" height="100%" fill="${ground}"/><text x="${a.left}" y="-11" font-size="14" font-weight="600" fill="${ink}">${escaped(title)}</text>${out.join("\n")}</svg>\n`;
  }
  function save(name, blob) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 5000);
  }
  /// On its own ground, as it stands on the page.
  function save_png(name, canvas) {
    const copy = document.createElement("canvas");
    copy.width = canvas.width;
    copy.height = canvas.height;
    const pen = copy.getContext("2d");
    pen.fillStyle = color("card") || color("paper");
    pen.fillRect(0, 0, copy.width, copy.height);
    pen.drawImage(canvas, 0, 0);
    copy.toBlob((blob) => save(name, blob));
  }
  const save_svg = (name, chart, title) => save(name, new Blob([svg_of(chart, title)], { type: "image/svg+xml" }));

  return { color, tick, still, HOW, Plot, svg_of, save, save_png, save_svg };
})();
