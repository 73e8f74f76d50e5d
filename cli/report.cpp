// roofcast report: results as one page, as plots, as characters.

#include <cstdio>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/options.h"
#include "reports/ascii_chart.h"
#include "reports/charts.h"
#include "reports/html_page.h"
#include "reports/html_text.h"
#include "reports/plot_files.h"

namespace roofcast {
namespace po = boost::program_options;
namespace {

std::string command_line(std::span<const std::string> arguments) {
  std::string out = "roofcast report";
  for (const std::string& word : arguments) out += " " + shell_word(word);
  return out;
}

void draw(const Options& options, const char* flag, PlotFormat format, std::span<const Chart> charts) {
  if (!options.has(flag)) return;
  for (const std::string& path : write_plots(charts, format, options.text(flag))) fmt::print(stderr, "{}\n", path);
}

}  // namespace

int run_report(std::span<const std::string> arguments) {
  Options options(
      "roofcast report RESULT... [--out report.html] [--svg DIR] [--png DIR] [--ascii]",
      "Pictures of results: the JSON of estimate, simulate, sweep, plan and ladder, the tables of validate and of\n"
      "simulate --requests-out. Several results stand side by side.");
  options.add().add_options()(
      "out", po::value<std::string>(),
      "FILE.html: one page that needs no network (default: stdout, unless plots are asked for)")(
      "svg", po::value<std::string>(), "DIR: every plot as SVG")(
      "png", po::value<std::string>(), "DIR: every plot as PNG, by rsvg-convert")("ascii",
                                                                                  "the plots as characters on stdout");
  options.positional("result", -1);
  if (!options.parse(arguments)) return kDone;
  if (!options.has("result"))
    throw ConfigError("report: which results? e.g. roofcast report estimate.json --out report.html");
  const std::vector<Result> results = read_results(options.value<std::vector<std::string>>("result"));
  for (const Result& r : results) {
    for (const std::string& note : r.notes) fmt::print(stderr, "{}: {}\n", r.path, note);
  }
  const std::string command = command_line(arguments);
  const std::vector<Chart> charts = charts_of(results, command);
  for (const Chart& c : charts) {
    if (c.thinned_from > 0) fmt::print(stderr, "{}: {} points are too many to draw; thinned\n", c.id, c.thinned_from);
  }
  if (options.has("ascii")) {
    for (const Chart& c : charts) fmt::print("{}\n", ascii_chart(c));
  }
  const bool only_plots = options.has("svg") || options.has("png") || options.has("ascii");
  if (options.has("out") || !only_plots) options.write(html_page(results, charts, command));
  draw(options, "svg", PlotFormat::kSvg, charts);
  draw(options, "png", PlotFormat::kPng, charts);
  return kDone;
}

}  // namespace roofcast
