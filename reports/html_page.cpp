#include "reports/html_page.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/from_chars.h"
#include "base/text.h"
#include "reports/charts.h"
#include "reports/embedded.h"
#include "reports/html_tables.h"
#include "reports/html_text.h"
#include "reports/summary.h"
#include "reports/svg_chart.h"
#include "reports/sweep_verdict.h"

namespace roofcast::reports {
namespace {

constexpr int kDigits = 6;      ///< more than a screen shows, a third of the bytes
constexpr int kViewDigits = 4;  ///< of the many views of a chart

Json rounded(const std::vector<double>& values, int digits) {
  Json out = Json::array();
  for (const double v : values) {
    const std::string text = fmt::format("{:.{}g}", v, digits);
    double short_value = v;
    from_chars(text.data(), text.data() + text.size(), short_value);
    if (short_value == std::floor(short_value) && std::abs(short_value) < 1e15) {
      out.push_back(static_cast<std::int64_t>(short_value));
    } else {
      out.push_back(short_value);
    }
  }
  return out;
}

Json axis_json(const Axis& axis, AxisRange range) {
  Json out{{"title", axis.title}, {"log", axis.log}, {"from", range.low}, {"to", range.high}};
  if (axis.low) out["low"] = *axis.low;
  if (axis.high) out["high"] = *axis.high;
  if (!axis.categories.empty()) out["categories"] = axis.categories;
  return out;
}

const char* name_of(Shape shape) {
  switch (shape) {
    case Shape::kLine:
      return "line";
    case Shape::kPoints:
      return "points";
    case Shape::kLinePoints:
      return "linepoints";
    case Shape::kBars:
      return "bars";
    case Shape::kArea:
      return "area";
  }
  return "line";
}

Json chart_json(const Chart& c, int digits = kDigits) {
  Json out{{"id", c.id},
           {"title", c.title},
           {"x", axis_json(c.x, x_range(c))},
           {"y", axis_json(c.y, y_range(c))},
           {"stacked", c.stacked},
           {"grouped", side_by_side(c)},
           {"horizontal", c.horizontal}};
  const auto edges = upper_edges(c);
  out["series"] = Json::array(), out["bands"] = Json::array(), out["lines"] = Json::array();
  for (std::size_t i = 0; i < c.series.size(); ++i) {
    const Series& s = c.series[i];
    Json series{{"name", s.name},
                {"shape", name_of(s.shape)},
                {"color", color_of(c, i)},
                {"x", rounded(s.x, digits)},
                {"y", rounded(s.y, digits)}};
    if (s.shape == Shape::kArea && c.stacked) series["upper"] = rounded(edges[i], digits);
    if (!s.base.empty()) series["base"] = rounded(s.base, digits);
    if (!s.size.empty()) series["size"] = rounded(s.size, digits);
    if (!s.labels.empty()) series["labels"] = s.labels;
    if (s.write_labels) series["written"] = true;
    if (s.dashed) series["dashed"] = true;
    out["series"].push_back(std::move(series));
  }
  for (std::size_t i = 0; i < c.bands.size(); ++i) {
    const Band& b = c.bands[i];
    const int color = (b.color >= 0 ? b.color : static_cast<int>(i)) % static_cast<int>(kPalette);
    out["bands"].push_back({{"name", b.name},
                            {"color", color},
                            {"x", rounded(b.x, digits)},
                            {"low", rounded(b.low, digits)},
                            {"high", rounded(b.high, digits)}});
  }
  for (const ReferenceLine& l : c.lines)
    out["lines"].push_back({{"vertical", l.vertical}, {"at", l.at}, {"label", l.label}});
  if (c.views.empty()) return out;
  out["held"] = c.held, out["at"] = c.at, out["caption"] = c.caption;
  for (const Chart& view : c.views) {
    Json entry = chart_json(view, kViewDigits);
    entry["at"] = view.at, entry["caption"] = view.caption;
    for (const char* key : {"id", "title", "stacked", "horizontal"}) entry.erase(key);
    out["views"].push_back(std::move(entry));
  }
  return out;
}

/// The result's own keys; long lists are replaced by their length, deep ones truncated.
Json without_lists(const Json& json, int depth = 0) {
  if (json.is_array() && (json.size() > 24 || depth > 8)) return fmt::format("[{} entries]", json.size());
  if (!json.is_structured())
    return json.is_string() ? Json(shortened(clean_utf8(json.get<std::string>()), 2000)) : json;
  if (depth > 8) return "{...}";
  Json out = json.is_array() ? Json::array() : Json::object();
  for (const auto& [key, value] : json.items()) {
    if (json.is_array()) {
      out.push_back(without_lists(value, depth + 1));
    } else if (key != "operators" && key != "verdict" && !key.ends_with("_by_gpu")) {
      out[clean_utf8(key)] = without_lists(value, depth + 1);
    }
  }
  return out;
}

/// Words in capitals are highlighted; columns of a line are preserved.
std::string line_html(const std::string& line) {
  return fmt::format("<p class=\"line{}\">{}</p>\n", is_alarm(line) ? " alarm" : "", html_text(line));
}

std::string part_html(const VerdictPart& part) {
  std::string out = part.title.empty() ? "" : "<h3>" + html_text(part.title) + "</h3>\n";
  if (part.command) {
    std::string text;
    for (const std::string& line : part.lines) text += line + "\n";
    out += "<pre class=\"command\" tabindex=\"0\">" + html_text(text) + "</pre>\n";
  } else {
    for (const std::string& line : part.lines) out += line_html(line);
  }
  if (part.table) {
    out += html_table(part.table->columns, part.table->rows);
    if (const std::size_t shown = part.table->rows.size(); part.table->in_all > shown)
      out += fmt::format("<p class=\"soft\">the first {} of {}</p>\n", shown, part.table->in_all);
  }
  return "<div class=\"part\">" + out + "</div>\n";
}

/// Whether the verdict starts with the text before the colon of a note.
bool is_said(const std::string& note, const ResultVerdict& verdict) {
  if (verdict.parts.empty() || verdict.parts.front().lines.empty()) return false;
  return verdict.parts.front().lines.front().starts_with(note.substr(0, note.find(':')));
}

std::string summary_section(std::span<const Result> results) {
  std::string out = "<section id=\"summary\"><h2>Verdict</h2>\n";
  for (const Result& r : results) {
    if (results.size() > 1) out += "<h3>" + html_text(r.label) + "</h3>\n";
    const ResultVerdict verdict = verdict_of(r);
    for (const std::string& note : r.notes) {
      if (!is_said(note, verdict)) out += "<p class=\"alarm\">" + html_text(note) + "</p>\n";
    }
    for (const VerdictPart& part : verdict.parts) out += part_html(part);
  }
  return out + (results.size() > 1 ? headline_table(results) : "") + "</section>\n";
}

/// Text below every plot that is the same for all; shown once at the bottom of the page.
struct Shared {
  std::string source{}, command{};
};
Shared shared_of(std::span<const Chart> charts) {
  if (charts.empty()) return {};
  Shared s{charts.front().source, charts.front().command};
  for (const Chart& c : charts) {
    if (c.source != s.source) s.source.clear();
    if (c.command != s.command) s.command.clear();
  }
  return s;
}

/// Charts that span both columns: many rows or lines, names next to points, or alone in a row.
std::vector<bool> wide_ones(std::span<const Chart> charts) {
  std::vector<bool> wide;
  for (const Chart& c : charts) {
    const bool names = std::any_of(c.series.begin(), c.series.end(),
                                   [](const Series& s) { return s.write_labels && s.shape != Shape::kBars; });
    wide.push_back((c.horizontal && c.y.categories.size() > 8) || names || c.series.size() > 6);
  }
  std::size_t row = 0;  // narrow charts in the current row
  for (std::size_t i = 0; i <= wide.size(); ++i) {
    const bool ends = i == wide.size() || wide[i];
    if (ends && row % 2 == 1) wide[i - 1] = true;
    row = ends ? 0 : row + 1;
  }
  return wide;
}

std::string figure_of(const Chart& c, bool wide, const Shared& shared) {
  std::string out = fmt::format("<figure id=\"chart-{}\"{}><h3>{}</h3><div class=\"tools\"></div>{}<figcaption>{}",
                                c.id, wide ? " class=\"wide\"" : "", html_text(c.heading.empty() ? c.title : c.heading),
                                svg_chart(c), html_text(c.caption));
  if (c.source != shared.source) out += "<br>Source: " + html_text(c.source);
  if (c.command != shared.command) out += "<br><code>" + html_text(c.command) + "</code>";
  return out + "</figcaption></figure>\n";
}

std::string result_section(const Result& r) {
  std::string out = fmt::format("<h3>{}</h3><p class=\"soft\">{} from {}</p>", html_text(r.label), name_of(r.kind),
                                html_text(r.path));
  if (!r.command.empty()) out += "<pre tabindex=\"0\">" + html_text(r.command) + "</pre>";
  if (const std::string table = detail_table(r); !table.empty())
    out += "<details><summary>Table</summary>" + table + "</details>";
  if (r.json.is_object() && !r.json.empty()) {
    std::string text = html_text(without_lists(r.json).dump(1, ' ', false, Json::error_handler_t::replace));
    constexpr std::string_view kQuote = "&quot;";  // needs no entity between tags
    for (std::size_t at = text.find(kQuote); at != std::string::npos; at = text.find(kQuote, at + 1))
      text.replace(at, kQuote.size(), "\"");
    out += "<details><summary>Specs and results</summary><pre tabindex=\"0\">" + text + "</pre></details>";
  }
  return out + "\n";
}

std::string title_of(std::span<const Result> results) {
  std::string out;
  for (std::size_t i = 0; i < results.size() && i < 3; ++i) out += (i ? " / " : "") + results[i].label;
  return results.size() > 3 ? out + fmt::format(" and {} more", results.size() - 3) : out;
}

/// A value of a sweep key as in the document: a number, a map or a list as itself, else the text.
Json value_of_key(const std::string& text) {
  const Json parsed = Json::parse(text, nullptr, false);
  return parsed.is_discarded() || parsed.is_string() ? Json(text) : parsed;
}

/// The question of a sweep's cheapest usable point: the sweep's document with the values of the point. Batch and
/// lengths of an estimate are next to the document. Null if no point is usable.
Json question_of_point(const Result& sweep) {
  const ResultPoint* best = nullptr;
  double least = 0;
  for (const ResultPoint& p : sweep.points) {
    const double usd = number_at(p.result, "usd_per_million_total_tokens").value_or(1e300);
    if (is_usable(p.result) && (best == nullptr || usd < least)) best = &p, least = usd;
  }
  if (best == nullptr) return nullptr;
  Json document = sweep.json["question"].value("document", Json::object());
  for (const auto& [key, text] : best->keys) {
    Json* at = &document;
    for (const std::string& part : split(key, '.')) {
      if (at->is_string()) *at = Json{{"name", at->get<std::string>()}};
      if (!at->is_object() && !at->is_null()) return nullptr;  // a key within a list
      at = &(*at)[part];
    }
    *at = value_of_key(text);
  }
  const bool simulated = text_at(sweep.json, "run") == "simulate";
  Json question = Json::object();
  question["fidelity"] = sweep.json["question"].value("fidelity", "calibrated");
  for (const char* key : {"batch", "prompt_tokens", "output_tokens", "context"}) {
    if (simulated || !document.contains(key)) continue;
    question[key] = document[key];
    document.erase(key);
  }
  question["document"] = std::move(document);
  return {
      {"kind", simulated ? "simulation" : "estimate"},
      {"label", clean_utf8(sweep.label) + ", the cheapest point: " + point_label(*best, varying_keys(sweep.points))},
      {"question", std::move(question)},
      {"reported", best->result}};
}

/// The questions that the results answer, for reports/page/what_if.js: [{kind, label, question, reported}].
Json questions_of(std::span<const Result> results) {
  Json out = Json::array();
  for (const Result& r : results) {
    if (!r.json.is_object() || !r.json.contains("question") || !r.json["question"].is_object()) continue;
    if (r.kind == ResultKind::kServicesPlan) continue;  // each plan is a search, too slow for a page
    if (r.kind == ResultKind::kSweep) {
      if (Json point = question_of_point(r); !point.is_null()) out.push_back(std::move(point));
      continue;
    }
    Json reported = r.json;
    for (const char* key : {"question", "verdict", "operators", "intervals"}) reported.erase(key);
    if (r.kind == ResultKind::kPlan) reported = {{"winner", r.json.value("winner", Json())}};
    // A ladder and a comparison repeat their scenario.
    const bool of_scenario = r.kind == ResultKind::kLadder || r.kind == ResultKind::kComparison;
    if (of_scenario) reported = Json::object();
    out.push_back({{"kind", name_of(of_scenario ? ResultKind::kSimulation : r.kind)},
                   {"label", clean_utf8(r.label) + (of_scenario ? ", its scenario" : "")},
                   {"question", r.json["question"]},
                   {"reported", std::move(reported)}});
  }
  return out;
}

std::string what_if_section(const Json& questions) {
  return "<section id=\"what-if\" hidden><h2>What if</h2><div class=\"what-if\"><form></form><div><p class=\"soft\" "
         "role=\"status\" aria-live=\"polite\"></p><div class=\"answer\"></div><button id=\"what-reset\" "
         "type=\"button\">As reported</button></div></div></section>\n"
         "<script type=\"application/json\" id=\"questions\">" +
         script_json(questions) + "</script>\n";
}

}  // namespace

std::string html_page(std::span<const Result> results, std::span<const Chart> charts, const std::string& command,
                      const std::string& engine) {
  const std::string title = html_text(title_of(results));
  const Json questions = engine.empty() ? Json::array() : questions_of(results);
  const bool live = !questions.empty();
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline'";
  out += live ? " 'wasm-unsafe-eval' blob:; worker-src blob:; " : "; ";
  out +=
      "style-src 'unsafe-inline'; img-src data:\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  out += fmt::format(
      "<meta name=\"generator\" content=\"roofcast {}\">\n<title>{}</title>\n<style>\n{}</style></head>\n<body>\n",
      ROOFCAST_VERSION, title, kPageStyle);
  out += fmt::format("<header><h1>{}</h1><button id=\"theme\" type=\"button\" hidden>light / dark</button></header>\n",
                     title);
  out += "<main>\n" + summary_section(results);
  if (live) out += what_if_section(questions);
  if (kChartJs.empty())
    out +=
        "<p class=\"soft\">The charts are static: this roofcast was built without Chart.js (Debian's "
        "libjs-chart.js).</p>\n";
  out += "<section id=\"plots\"><h2>Plots</h2>";
  if (!charts.empty()) out += "<p class=\"soft\" id=\"how\"></p>";
  out += "<div class=\"charts\">\n";
  Json specs = Json::array();
  const Shared shared = shared_of(charts);
  const std::vector<bool> wide = wide_ones(charts);
  for (std::size_t i = 0; i < charts.size(); ++i) {
    out += figure_of(charts[i], wide[i], shared);
    specs.push_back(chart_json(charts[i]));
  }
  out += charts.empty() ? "<p>The results have no numbers to draw.</p>" : "";
  out += "</div></section>\n<section id=\"results\"><h2>Results</h2>\n";
  for (const Result& r : results) out += result_section(r);
  out += fmt::format(
      "</section></main>\n<footer><h2>How this page was made</h2><pre tabindex=\"0\">{}</pre><p "
      "class=\"soft\">{}</p></footer>\n",
      html_text(shared.command.empty() || shared.command == command ? command : shared.command + "\n" + command),
      shared.source.empty() ? "roofcast " ROOFCAST_VERSION : html_text("Source of the plots: " + shared.source));
  out += "<script type=\"application/json\" id=\"charts\">" + script_json(specs) + "</script>\n";
  if (live) out += engine;
  const bool packed =
      live && engine.find("id=\"engine-plots\"") != std::string::npos;  // it brings the charts' library and plot.js
  if (!packed) out += fmt::format("<script>{}</script>\n", kChartJs);
  out += fmt::format("<script>{}{}</script>\n", packed ? std::string_view() : kPlotScript, kPageScript);
  if (live) out += fmt::format("<script>{}</script>\n", kWhatIfScript);
  return out + "</body></html>\n";
}

}  // namespace roofcast::reports
