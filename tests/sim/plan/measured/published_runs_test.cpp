#include "sim/plan/measured/published_runs.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace roofcast {
namespace {

CsvTable table_of(const std::string& scenario, const std::string& measured) {
  return CsvTable::parse(
      fmt::format("source,scenario,mean_tpot_ms,output_throughput\nhere,\"{}\",{}\n", scenario, measured), "p.csv");
}

const char* kScenario =
    "{model: qwen3-8b, gpu: h100-sxm, engine: vllm, workload: {arrivals: {process: closed_loop, concurrency: 2}, "
    "prompt_tokens: {distribution: fixed, value: 100}, output_tokens: {distribution: fixed, value: 20}, requests: 6}}";

}  // namespace

TEST_CASE("published runs: a row's scenario is simulated and compared with the row's measurements") {
  const CsvTable table = table_of(kScenario, "1000,");
  REQUIRE(holds_scenarios(table));
  const std::vector<PublishedRun> runs = predict_published(table);
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].group == "vllm h100-sxm");
  REQUIRE(runs[0].predictions.size() == std::size(kPublishedMetrics));
  const double tpot = runs[0].predictions[2];
  CHECK(tpot > 3);  // 16.4 GB of weights at 3.35 TB/s take 4.9 ms, of which the embedding table is not read
  CHECK(tpot < 20);
  const std::vector<AccuracyLine> lines = accuracy_of_published(table, runs);
  REQUIRE(lines.size() == 2);  // the blank throughput does not count
  CHECK(lines[0].group == "vllm h100-sxm");
  CHECK(lines[1].group == "all");
  CHECK(lines[1].metric == "mean_tpot_ms");
  CHECK(lines[1].errors.mape == doctest::Approx(1 - tpot / 1000));
}

TEST_CASE("published runs: intervals on request, and whether they hold the measurements") {
  const CsvTable table = table_of(kScenario, "1000,");
  CHECK(predict_published(table)[0].intervals.metrics.empty());
  const std::vector<PublishedRun> runs = predict_published(table, true);
  const auto range = runs[0].intervals.of("mean_tpot_ms");
  REQUIRE(range);
  CHECK(range->low < runs[0].predictions[2]);
  CHECK(range->high > runs[0].predictions[2]);
  // A second for a token is in no interval; one in the middle of it is.
  const double middle = 0.5 * (range->low + range->high);
  const CsvTable likely = table_of(kScenario, fmt::format("{},", middle));
  for (const auto& [of, inside] : {std::pair{&table, 0.0}, {&likely, 1.0}}) {
    const std::vector<CoverageLine> lines = coverage(covered_published(*of, runs));
    REQUIRE(lines.size() == 3);  // all, engine, GPU; the blank throughput is no row
    for (const CoverageLine& line : lines) CHECK(line.inside == inside);
  }
}

TEST_CASE("published runs: a model that does not fit is a note, a wrong scenario is an error with its location") {
  std::string large = kScenario;
  large.replace(large.find("qwen3-8b"), 8, "llama-3.1-405b");
  const std::vector<PublishedRun> runs = predict_published(table_of(large, "10,10"));
  CHECK(runs[0].predictions.empty());
  CHECK(runs[0].note.find("does not fit") != std::string::npos);
  std::string wrong = kScenario;
  wrong.replace(wrong.find("gpu:"), 4, "gpuu:");
  CHECK_THROWS_WITH_AS(predict_published(table_of(wrong, "10,10")), doctest::Contains("p.csv:2:2: its scenario:"),
                       ConfigError);
}

}  // namespace roofcast
