// roofcast report: results as one page, as plots, as characters.

#include <cstdio>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/read_file.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/serving.h"
#include "reports/ascii_chart.h"
#include "reports/charts.h"
#include "reports/html_page.h"
#include "reports/html_text.h"
#include "reports/plot_files.h"

namespace roofcast::cli {
namespace po = boost::program_options;
namespace {

std::string command_line(std::span<const std::string> arguments) {
  std::string out = "roofcast report";
  for (const std::string& word : arguments) out += " " + reports::shell_word(word);
  return out;
}

/// The engine for pages, built by ./dev wasm: next to the configs of an installed program, or in the source tree. Empty
/// if it was not built.
std::string page_engine() {
  const std::filesystem::path share = std::filesystem::path(config_root()).parent_path();
  for (const std::filesystem::path& path : {share / "engine.html", share / "build/wasm/engine.html"}) {
    std::error_code none;
    if (std::filesystem::is_regular_file(path, none)) return read_file(path.string(), std::size_t{1} << 24);
  }
  return "";
}

/// The page, with the engine if it is available and the page still fits in an e-mail.
std::string page(std::span<const reports::Result> results, std::span<const reports::Chart> charts,
                 const std::string& command, bool still) {
  constexpr std::size_t kMost = 1'500'000;  // bytes: a reasonable e-mail attachment
  const std::string engine = still ? "" : page_engine();
  std::string out = reports::html_page(results, charts, command, engine);
  if (engine.empty() || out.size() <= kMost) return out;
  std::string plain = reports::html_page(results, charts, command);
  if (plain.size() < out.size())
    fmt::print(stderr, "the page cannot answer \"what if\": with the engine it would have {:.1f} MB\n",
               static_cast<double>(out.size()) / 1e6);
  return plain;
}

void draw(const Options& options, const char* flag, reports::PlotFormat format,
          std::span<const reports::Chart> charts) {
  if (!options.has(flag)) return;
  for (const std::string& path : reports::write_plots(charts, format, options.text(flag)))
    fmt::print(stderr, "{}\n", path);
}

/// Rejects names of other file types, because the page is HTML.
void check_page_name(const Options& options) {
  if (!options.has("out")) return;
  const std::string path = options.text("out"), ending = lower(std::filesystem::path(path).extension().string());
  for (const auto& [format, instead] : {std::pair{".svg", "--svg DIR writes every plot as SVG"},
                                        {".png", "--png DIR writes every plot as PNG"},
                                        {".pdf", "a browser prints the page as PDF"}}) {
    if (ending == format) throw ConfigError(fmt::format("--out: '{}' would be a page of HTML; {}", path, instead));
  }
}

}  // namespace

int run_report(std::span<const std::string> arguments) {
  Options options(
      "roofcast report RESULT... [--out report.html | --port N] [--still] [--svg DIR] [--png DIR] [--csv DIR]\n"
      "                       [--ascii]",
      "Charts of results: the JSON of estimate, simulate, sweep, plan, ladder, compare and calibrate, the tables of\n"
      "validate and of simulate --requests-out. Several results stand side by side.");
  options.add().add_options()(
      "out", po::value<std::string>(),
      "FILE.html: one page that needs no network (default: stdout, unless plots are asked for)")(
      "port", po::value<std::string>(),
      "N: serve the page on this port of 127.0.0.1 until interrupted, in place of --out; 0 picks a free one")(
      "svg", po::value<std::string>(), "DIR: every plot as SVG")("png", po::value<std::string>(),
                                                                 "DIR: every plot as PNG, by rsvg-convert")(
      "csv", po::value<std::string>(), "DIR: the numbers of every plot as CSV")(
      "ascii", "the plots as characters on stdout")("still",
                                                    "a page without the engine that answers \"what if\" on it");
  options.positional("result", -1);
  if (!options.parse(arguments)) return kDone;
  if (!options.has("result"))
    throw ConfigError("report: which results? e.g. roofcast report estimate.json --out report.html");
  if (options.has("port") && options.has("out"))
    throw ConfigError("--port: cannot be combined with --out: the page is served, or written");
  check_page_name(options);
  const int port = options.has("port") ? static_cast<int>(options.integer("port", 0, 65535)) : 0;
  const std::vector<reports::Result> results = reports::read_results(options.value<std::vector<std::string>>("result"));
  for (const reports::Result& r : results) {
    for (const std::string& note : r.notes) fmt::print(stderr, "{}: {}\n", r.path, note);
  }
  const std::string command = command_line(arguments);
  const std::vector<reports::Chart> charts = reports::charts_of(results, command);
  for (const reports::Chart& c : charts) {
    if (c.thinned_from > 0) fmt::print(stderr, "{}: {} points are too many to draw; thinned\n", c.id, c.thinned_from);
  }
  if (options.has("ascii")) {
    const int width = static_cast<int>(terminal_width().value_or(100));
    for (const reports::Chart& c : charts) fmt::print("{}\n", reports::ascii_chart(c, width));
  }
  const bool only_plots = options.has("svg") || options.has("png") || options.has("csv") || options.has("ascii");
  const bool served = options.has("port");
  if (!served && (options.has("out") || !only_plots))
    options.write(page(results, charts, command, options.has("still")));
  draw(options, "svg", reports::PlotFormat::kSvg, charts);
  draw(options, "png", reports::PlotFormat::kPng, charts);
  draw(options, "csv", reports::PlotFormat::kCsv, charts);
  if (served) {
    serve_until_interrupted({.port = port, .page = page(results, charts, command, options.has("still"))}, "the page");
  }
  return kDone;
}

}  // namespace roofcast::cli
