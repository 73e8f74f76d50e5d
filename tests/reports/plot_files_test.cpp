#include "reports/plot_files.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>

#include "base/error.h"
#include "base/read_file.h"
#include "reports/charts.h"
#include "tests/base/temporary_folder.h"
#include "tests/measured_data.h"

using namespace roofcast;
using namespace roofcast::reports;

namespace {

std::vector<Chart> charts_of_fixtures() {
  std::vector<Chart> charts;
  for (const char* name : {"estimate.json", "simulation.json", "sweep.json", "plan.json", "ladder.json", "kernels.csv",
                           "requests.csv", "speculation.json"}) {
    for (Chart& c :
         charts_of(std::vector{read_result(ROOFCAST_SOURCE_DIR "/tests/reports/fixtures/" + std::string(name))}, "x")) {
      c.id = std::string(name, 3) + c.id;
      charts.push_back(std::move(c));
    }
  }
  return charts;
}

Chart small_chart() {
  Chart c{.id = "x", .title = "a < b"};
  c.series = {Series{.name = "a", .x = {1, 2}, .y = {1, 2}}};
  c.command = "roofcast report 'x'";
  return c;
}

}  // namespace

TEST_CASE("plots: an SVG file is self-contained, with title, source and colours") {
  const TemporaryFolder folder;
  const auto paths = write_plots(std::vector{small_chart()}, PlotFormat::kSvg, folder.path() + "/it's a folder/deep");
  REQUIRE(paths.size() == 1);
  const std::string svg = read_file(paths[0], 1 << 20);
  CHECK(svg.rfind("<svg xmlns=\"http://www.w3.org/2000/svg\"", 0) == 0);
  for (const char* part : {"a &lt; b</text>", "Command: roofcast report &#39;x&#39;", ".line.c0,.dots.c0{stroke:#"}) {
    INFO(part);
    CHECK(svg.find(part) != std::string::npos);
  }
  CHECK(svg.find("var(") == std::string::npos);  // a variable of the page's style sheet
}

TEST_CASE("plots: the CSV of a chart has its points, bands and units") {
  Chart c{.id = "x", .x = {.title = "batch"}, .y = {.title = "TPOT, ms"}};
  c.series = {Series{.name = "p50", .x = {1, 2}, .y = {5.5, 7}, .labels = {"one, alone", "two"}}};
  c.bands = {Band{.name = "90 %", .x = {1, 2}, .low = {4, 5}, .high = {6, 9}}};
  CHECK(chart_csv(c) ==
        "series,batch,\"TPOT, ms\",low,high,label\np50,1,5.5,,,\"one, alone\"\np50,2,7,,,two\n"
        "90 %,1,,4,6,\n90 %,2,,5,9,\n");
  // A waterfall lying down: the second bar goes from 3 to 4.
  Chart bars{.id = "y", .x = {.title = "ms"}, .y = {.categories = {"queue", "prefill"}}, .horizontal = true};
  bars.series = {Series{.name = "ttft", .shape = Shape::kBars, .x = {0, 1}, .y = {3, 4}, .base = {0, 3}}};
  CHECK(chart_csv(bars) == "series,x,ms,low,high,label\nttft,queue,3,0,,\nttft,prefill,4,3,,\n");
  // A sweep of three keys: its views have rows too, and say what they are drawn for.
  Chart seen{
      .id = "z", .x = {.title = "batch"}, .y = {.title = "TPOT, ms"}, .held = {"GPU", "tp"}, .at = {"h100", "1"}};
  seen.series = {Series{.name = "bf16", .x = {1}, .y = {9}}};
  Chart other{.at = {"h100", "2"}};
  other.series = {Series{.name = "bf16", .x = {1}, .y = {5}, .labels = {"b"}}};
  other.bands = {Band{.name = "90 %", .x = {1}, .low = {4}, .high = {6}}};
  seen.views = {other};
  CHECK(chart_csv(seen) ==
        "series,batch,\"TPOT, ms\",low,high,label,GPU,tp\nbf16,1,9,,,,h100,1\nbf16,1,5,,,b,h100,2\n"
        "90 %,1,,4,6,,h100,2\n");
  const TemporaryFolder folder;
  const auto paths = write_plots(std::vector{c}, PlotFormat::kCsv, folder.path());
  REQUIRE(paths.size() == 1);
  CHECK(read_file(paths[0], 1 << 20) == chart_csv(c));
}

TEST_CASE("plots: rsvg-convert draws every fixture") {
  if (std::system("command -v rsvg-convert >/dev/null") != 0) return testing::skip_test("no rsvg-convert");
  const TemporaryFolder folder;
  const std::vector<Chart> charts = charts_of_fixtures();
  const auto paths = write_plots(charts, PlotFormat::kPng, folder.path() + "/it's a folder");
  CHECK(paths.size() == charts.size());
  for (const std::string& path : paths) CHECK(std::filesystem::file_size(path) > 5000);
}

TEST_CASE("plots: no rsvg-convert, or no folder to write to") {
  const TemporaryFolder folder;
  const std::string file = folder.write("file", "x");
  CHECK_THROWS_AS((void)write_plots(std::vector{small_chart()}, PlotFormat::kSvg, file), ConfigError);
  const std::string path = getenv("PATH") ? getenv("PATH") : "";
  setenv("PATH", folder.path().c_str(), 1);
  CHECK_THROWS_WITH_AS((void)write_plots(std::vector{small_chart()}, PlotFormat::kPng, folder.path() + "/out"),
                       "rsvg-convert is missing: apt-get install librsvg2-bin; --svg works without", Unavailable);
  setenv("PATH", path.c_str(), 1);
}
