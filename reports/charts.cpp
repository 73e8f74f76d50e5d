#include "reports/charts.h"

#include <set>

#include <fmt/format.h>

#include "reports/html_text.h"

namespace roofcast::reports {
namespace {

/// The line below every plot: the provenance of the constants.
std::string source_of(const Result& r) {
  std::string out;
  const bool own = r.json.is_object() && r.json.contains("provenance");
  const Json& json = own || r.points.empty() ? r.json : r.points.front().result;
  const std::string parameters = text_at(json, "provenance.parameters"), source = text_at(json, "provenance.source");
  if (r.kind == ResultKind::kKernelRows || r.kind == ResultKind::kServingRows)
    return "measured: the table's own column; predicted: roofcast " ROOFCAST_VERSION;
  if (text_at(json, "provenance.fidelity") == "ideal") {
    out = "ideal: datasheet peaks, no efficiency, no launch or host cost";
  } else if (!parameters.empty()) {
    out = fmt::format("constants {}{}", parameters, source.empty() ? "" : ": " + source);
  }
  const std::string version = text_at(json, "provenance.roofcast_version");
  return out +
         fmt::format("{}roofcast {}", out.empty() ? "" : "; ", version.empty() ? ROOFCAST_VERSION : version.c_str());
}

void add_charts(const Result& result, std::vector<Chart>& out) {
  switch (result.kind) {
    case ResultKind::kEstimate:
      add_estimate_charts(result, out);
      break;
    case ResultKind::kSimulation:
      add_simulation_charts(result, out);
      break;
    case ResultKind::kSweep:
      add_sweep_charts(result, out);
      break;
    case ResultKind::kPlan:
      add_plan_charts(result, out);
      break;
    case ResultKind::kLadder:
      add_ladder_charts(result, out);
      break;
    case ResultKind::kComparison:
      add_measured_run_charts(result, out);
      break;
    case ResultKind::kKernelRows:
    case ResultKind::kServingRows:
      add_validation_charts(result, out);
      break;
    case ResultKind::kValidation:
      add_error_charts(result, out);
      break;
    case ResultKind::kCalibration:
      add_acceptance_charts(result, out);
      break;
    case ResultKind::kRequestRows:
      add_request_charts(result, out);
      break;
    case ResultKind::kServicesPlan:
      add_services_charts(result, out);
      break;
    case ResultKind::kLecture:
    case ResultKind::kImport:
    case ResultKind::kCatalog:
    case ResultKind::kCatalogEntry:
      break;
  }
}

std::string one_line(std::string_view text, std::size_t limit) {
  std::string out = clean_utf8(text);
  for (char& c : out) {
    if (c == '\n' || c == '\t') c = ' ';
  }
  return shortened(out, limit);
}

/// Cleans texts from users' files: one line each, of bounded length, valid UTF-8.
void tidy(Chart& chart) {
  chart.title = one_line(chart.title, 140);
  chart.heading = one_line(chart.heading, 140);
  for (Axis* axis : {&chart.x, &chart.y}) {
    axis->title = one_line(axis->title, 100);
    for (std::string& name : axis->categories) name = one_line(name, 80);
  }
  for (Series& s : chart.series) {
    s.name = one_line(s.name, 60);
    for (std::string& label : s.labels) label = one_line(label, 120);
  }
  for (Band& band : chart.bands) band.name = one_line(band.name, 60);
  for (ReferenceLine& line : chart.lines) line.label = one_line(line.label, 60);
  chart.source = one_line(chart.source, 300);
  for (Chart& view : chart.views) tidy(view);
}

}  // namespace

std::vector<Chart> charts_of(std::span<const Result> results, const std::string& command) {
  std::vector<Chart> charts;
  add_comparison_charts(results, charts);
  for (Chart& c : charts) c.command = command;
  for (const Result& result : results) {
    const std::size_t before = charts.size();
    add_charts(result, charts);
    for (std::size_t i = before; i < charts.size(); ++i) {
      charts[i].source = source_of(result);
      charts[i].command = result.command.empty() ? command : result.command;
      const bool one_deployment = result.kind == ResultKind::kEstimate || result.kind == ResultKind::kSimulation;
      if (results.size() > 1 || one_deployment || result.kind == ResultKind::kSweep) {
        if (results.size() == 1) charts[i].heading = charts[i].title;
        charts[i].title += ": " + result.label;
      }
    }
  }
  std::erase_if(charts, [](Chart& c) { return !clean(c); });
  std::set<std::string> ids;
  for (Chart& c : charts) {
    const std::string plain = c.id;
    for (int n = 2; !ids.insert(c.id).second; ++n) c.id = fmt::format("{}-{}", plain, n);
    thin(c);
    tidy(c);
    if (c.thinned_from > 0) {
      std::size_t left = 0;
      for (const Series& s : c.series) left += s.x.size();
      c.caption += fmt::format(" Thinned: {} of {} points are drawn.", left, c.thinned_from);
    }
  }
  return charts;
}

}  // namespace roofcast::reports
