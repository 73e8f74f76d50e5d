"use strict";
// Draws the charts of the report page with Chart.js instead of SVG. Only arithmetic for drawing.
(function () {
  const { tick, Plot } = Plots;
  const root = document.documentElement;
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const live = [];

  function sets_of(spec) {
    const sets = [];
    for (const b of spec.bands) {
      const common = { unlisted: !b.name, color: "c" + b.color, alpha: "2e", showLine: true, pointRadius: 0, pointHitRadius: 0, pointStyle: "rect", borderWidth: 0, quiet: true };
      sets.push({ ...common, label: b.name, data: b.x.map((x, i) => ({ x, y: b.high[i] })), fill: "+1", pair: true });
      sets.push({ ...common, label: b.name, data: b.x.map((x, i) => ({ x, y: b.low[i] })), fill: false, unlisted: true });
    }
    let area = null;
    for (const s of spec.series) {
      const set = { label: s.name, color: "c" + s.color, pointStyle: s.shape === "line" ? "line" : s.shape === "bars" || s.shape === "area" ? "rect" : "circle", notes: s.labels || [] };
      if (s.shape === "bars") {
        const data = new Array((spec.horizontal ? spec.y : spec.x).categories.length).fill(null), notes = [];
        const log = (spec.horizontal ? spec.x : spec.y).log;  // where a bar from 0 begins at the edge
        s.x.forEach((c, i) => { data[c] = s.base && !(log && s.base[i] <= 0) ? [s.base[i], s.y[i]] : s.y[i]; notes[c] = s.labels ? s.labels[i] : ""; });
        Object.assign(set, { data, notes, categoryPercentage: 0.85, barPercentage: 0.95, grouped: spec.grouped });
        if (s.written && spec.horizontal) { set.names = []; s.x.forEach((c, i) => { set.names[c] = tick(s.y[i]); }); }
      } else {
        const y = s.upper || s.y;
        Object.assign(set, {
          data: s.x.map((x, i) => ({ x, y: y[i] })), own: s.y, showLine: s.shape !== "points", borderWidth: s.shape === "area" ? 1 : 2, borderDash: s.dashed ? [6, 4] : [],
          pointRadius: s.shape === "line" || s.shape === "area" ? 0 : s.size ? s.size.map((a) => 3 + 10 * Math.sqrt(a)) : s.x.length > 300 ? 1.8 : 3.5, pointHitRadius: 6,
        });
        if (s.written) set.names = set.notes;
        if (s.shape === "area") { set.alpha = "c0"; set.fill = area === null || !spec.stacked ? "origin" : area; area = sets.length; }
      }
      sets.push(set);
    }
    const seen = new Map();  // a set keeps its place among those of its name and kind, whatever else a view has
    return sets.map((set) => { const kind = (set.quiet ? "band " : "") + set.label, nth = seen.get(kind) || 0; seen.set(kind, nth + 1); return { ...set, key: kind + " " + nth }; });
  }

  /// The range of the data is valid only for the scale it was computed for.
  const axis_of = ({ title, log, categories, low, high, from, to }, stacked) =>
    log ? { title, log, min: low ?? from, max: high ?? to, stacked } : { title, categories, min: low, max: high, suggestedMin: from, suggestedMax: to, stacked };

  function show({ plot, spec }) {
    const bars = spec.series.some((s) => s.shape === "bars"), stacked = bars && (spec.stacked || spec.series.some((s) => s.base));
    plot.show({
      kind: bars ? "bar" : "scatter", still: true, horizontal: spec.horizontal, reverse: spec.horizontal, x: axis_of(spec.x, stacked), y: axis_of(spec.y, stacked), sets: sets_of(spec),
      guides: spec.lines, legend: spec.series.length + spec.bands.length > 1, interaction: { mode: "nearest", axis: "xy", intersect: bars },
      tooltipTitle: () => "",
      tooltip(item) {
        const set = item.dataset, note = set.notes[item.dataIndex];
        if (set.own) return [set.label + (note ? ": " + note : ""), spec.x.title + ": " + tick(item.parsed.x), spec.y.title + ": " + tick(set.own[item.dataIndex])];
        return note || set.label + ": " + item.formattedValue;
      },
    });
  }

  /// A log axis is offered for positive values that are not stacked.
  function can_be_log(spec, name) {
    const along = name === (spec.horizontal ? "x" : "y");  // the axis of values
    if (along && spec.stacked) return false;
    const values = [...spec.series.flatMap((s) => (along ? [...s.y, ...(s.base || []).filter((v) => v !== 0)] : s.x)), ...spec.bands.flatMap((b) => (along ? b.low : b.x))];
    return values.length > 0 && values.every((v) => v > 0);
  }

  /// One list per constant key of the lines. A combination that was not run falls back to the most similar one.
  function choosers(figure, one, tools) {
    const { spec } = one, views = [spec, ...spec.views], lists = [];
    for (const view of spec.views) for (const name of ["x", "y"]) view[name].log = spec[name].log;
    const colors = new Map(spec.series.map((s) => [s.name, s.color]));  // of a name, the same in every view
    for (const view of spec.views) {
      for (const s of view.series) if (!colors.has(s.name)) colors.set(s.name, colors.size % 10);
      const was = new Map(view.series.map((s) => [s.color, colors.get(s.name)]));
      for (const drawn of [...view.series, ...view.bands]) drawn.color = was.get(drawn.color) ?? drawn.color;
    }
    const choose = (i, value) => {
      const alike = (view) => (view.at[i] === value ? 1000 : 0) + view.at.filter((v, k) => v === one.spec.at[k]).length;
      const view = views.reduce((best, v) => (alike(v) > alike(best) ? v : best));
      one.spec = view === spec ? spec : { ...spec, ...view };
      lists.forEach((list, k) => { list.value = view.at[k]; });
      figure.querySelector("figcaption").firstChild.textContent = view.caption;
      one.plot.range = {};
      one.plot.pin(null);
      show(one);
    };
    spec.held.forEach((key, i) => {
      const label = document.createElement("label"), list = document.createElement("select");
      for (const value of [...new Set(views.map((v) => v.at[i]))].sort((a, b) => parseFloat(a) - parseFloat(b))) list.append(new Option(value, value));
      list.value = spec.at[i];
      list.addEventListener("change", () => choose(i, list.value));
      label.append(key + " ", list);
      lists.push(list);
      tools.append(label);
    });
  }

  function draw(figure, spec) {
    const box = document.createElement("div");
    box.className = "canvas";
    if (spec.horizontal) box.style.height = Math.max(12, 6 + Math.max(2.6, spec.grouped ? 1.2 * spec.series.length : 0) * spec.y.categories.length) + "rem";
    figure.querySelector("svg").before(box);
    const one = { plot: new Plot(box, spec.title), spec };
    show(one);
    figure.classList.add("live");
    live.push(one);
    const tools = figure.querySelector(".tools");
    if (spec.views) choosers(figure, one, tools);
    for (const [words, how] of [["PNG", () => Plots.save_png(spec.id + ".png", one.plot.canvas)], ["SVG", () => Plots.save_svg(spec.id + ".svg", one.plot.chart, spec.title)]]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = words;
      button.setAttribute("aria-label", spec.title + " as " + words);
      button.addEventListener("click", how);
      tools.append(button);
    }
    for (const name of ["x", "y"]) {
      if (spec[name].categories || !spec[name].log && !can_be_log(spec, name)) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = "log " + name;
      button.setAttribute("aria-pressed", spec[name].log ? "true" : "false");
      button.addEventListener("click", () => {
        for (const view of [spec, ...(spec.views || [])]) {
          view[name].log = !view[name].log;
          view[name].from = view[name].to = undefined;
        }
        button.setAttribute("aria-pressed", spec[name].log ? "true" : "false");
        one.plot.range = {};
        show(one);
      });
      tools.append(button);
    }
  }

  const recolor = () => live.forEach(show);
  const theme = document.getElementById("theme");
  theme.hidden = false;
  theme.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; recolor(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolor);
  /// Long tables are filtered by words, all of which a row must have.
  for (const table of document.querySelectorAll("table")) {
    const rows = [...table.tBodies[0].rows];
    if (rows.length < 16) continue;
    const label = document.createElement("label"), input = document.createElement("input"), count = document.createElement("span");
    input.type = "search";
    count.setAttribute("role", "status");
    label.className = "filter soft";
    label.append("Rows with ", input, " ", count);
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) { const text = " " + [...row.cells].map((c) => c.textContent.toLowerCase()).join(" "); row.hidden = !words.every((w) => text.includes(" " + w)); shown += row.hidden ? 0 : 1; }
      count.textContent = words.length ? shown + " of " + rows.length : "";
    });
    table.parentElement.before(label);
  }
  if (typeof Chart === "undefined") return;
  const how = document.getElementById("how");
  if (how) how.textContent = Plots.HOW;
  const specs = JSON.parse(document.getElementById("charts").textContent);
  for (const spec of specs) {
    const figure = document.getElementById("chart-" + spec.id);
    try { draw(figure, spec); } catch (error) { figure.querySelectorAll(".canvas").forEach((c) => c.remove()); figure.classList.remove("live"); console.error(spec.id, error); }
  }
})();
