#include "sim/plan/measured/coverage.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/sim/plan/measured/rows.h"

using namespace roofcast;
using rows::Cells;

namespace {

template <class Lines>
const auto& line(const Lines& lines, const std::string& name, const std::string& metric) {
  for (const auto& each : lines) {
    if (each.name == name && each.metric == metric) return each;
  }
  FAIL("no line " << name << " " << metric);
  return lines.front();
}

}  // namespace

TEST_CASE("coverage: the share of values inside, and the median of high over low") {
  const auto value = [](const char* name, double measured, double low, double high) {
    return Covered{{"all", name}, "ttft_ms", measured, {low, high}};
  };
  const std::vector<CoverageLine> lines =
      coverage({value("a", 10, 8, 16), value("a", 20, 8, 24), value("a", 7.9, 8, 32), value("b", 8, 8, 8)});
  CHECK(line(lines, "a", "ttft_ms").rows == 3);
  CHECK(line(lines, "a", "ttft_ms").inside == doctest::Approx(2.0 / 3));
  CHECK(line(lines, "a", "ttft_ms").width == doctest::Approx(3));  // of 2, 3 and 4
  CHECK(line(lines, "b", "ttft_ms").inside == 1);                  // the ends are inside
  CHECK(line(lines, "all", "ttft_ms").rows == 4);
  CHECK(line(lines, "all", "ttft_ms").inside == doctest::Approx(3.0 / 4));
  CHECK(coverage({}).empty());
}

TEST_CASE("coverage: a run's interval holds its own prediction, and none is given where nothing is scored") {
  const Cells run = rows::closed_loop({{"concurrency", "2"}, {"osl", "16"}});
  const RunPrediction p = rows::predict(rows::read(run));
  const CsvTable table = rows::table({
      rows::with(run, {{"ttft_ms", std::to_string(p.ttft_ms)}, {"tpot_ms", std::to_string(p.tpot_ms)}}),
      rows::with(run, {{"ttft_ms", std::to_string(50 * p.ttft_ms)}, {"tpot_ms", std::to_string(50 * p.tpot_ms)}}),
      rows::with(run, {{"ttft_ms", "1"}, {"tpot_ms", "1"}, {"suspect", "1"}}),
      rows::with(run, {{"model", "llama-3.1-70b"}, {"ttft_ms", "1"}, {"tpot_ms", "1"}}),
  });
  const MeasuredRuns runs = read_measured_runs(table);
  const std::vector<RunIntervals> intervals = run_intervals(runs);
  REQUIRE(intervals.size() == 4);
  const auto ttft = intervals[0].of("mean_ttft_ms"), tpot = intervals[0].of("mean_tpot_ms");
  REQUIRE(ttft);
  REQUIRE(tpot);
  CHECK(ttft->low < p.ttft_ms);
  CHECK(ttft->high > p.ttft_ms);
  CHECK(tpot->low < p.tpot_ms);
  CHECK(tpot->high > p.tpot_ms);
  CHECK(intervals[2].metrics.empty());  // not scored
  CHECK(intervals[3].metrics.empty());  // cannot be predicted
  const std::vector<CoverageLine> lines = coverage(covered_runs(runs, table, intervals));
  for (const char* name : {"all", "vllm", "h100-sxm", "light"}) {
    CHECK(line(lines, name, "tpot_ms").rows == 2);
    CHECK(line(lines, name, "tpot_ms").inside == doctest::Approx(0.5));  // one of the two
  }
}

TEST_CASE("coverage: one figure of a run by its own interval, the time of a batch by one over its throughput") {
  for (const Cells& kind : {rows::figure({{"batch", "4"}, {"metric", "e2e_ms"}}), rows::figure({{"batch", "4"}}),
                            rows::figure({{"request_rate", "2"}, {"metric", "ttft_ms"}})}) {
    const double value = rows::predict(rows::read(kind)).value;
    const double slower = kind.at("metric") == "output_tokens_per_s" ? value / 50 : value * 50;
    const CsvTable table = rows::table(
        {rows::with(kind, {{"value", std::to_string(value)}}), rows::with(kind, {{"value", std::to_string(slower)}})});
    const MeasuredRuns runs = read_measured_runs(table);
    const std::vector<CoverageLine> lines = coverage(covered_runs(runs, table, run_intervals(runs)));
    CAPTURE(kind.at("metric"));
    CHECK(line(lines, "trtllm", kind.at("metric")).rows == 2);
    CHECK(line(lines, "trtllm", kind.at("metric")).inside == doctest::Approx(0.5));
  }
}

TEST_CASE("coverage: quantiles of ln(measured / predicted) by load") {
  // Predictions of TTFT are exp(0), exp(0.05) .. exp(1) times too low: of 21 such the 5, 50 and 95 % are 0.05, 0.5,
  // 0.95.
  const std::vector<Cells> cells(21, rows::closed_loop({{"ttft_ms", "40"}, {"tpot_ms", "8"}}));
  const CsvTable table = rows::table(cells);
  const MeasuredRuns runs = read_measured_runs(table);
  PredictedTable predicted{&runs, &table, {}};
  for (std::size_t i = 0; i < cells.size(); ++i) {
    RunPrediction p;
    p.ttft_ms = 40 / std::exp(0.05 * static_cast<double>(i));
    p.tpot_ms = i == 0 ? 0 : 8;  // 0: there is none
    predicted.predictions.push_back(p);
  }
  const std::vector<SpreadLine> lines = spreads_by_regime({predicted});
  REQUIRE(lines.size() == 2);
  const SpreadLine &tpot = lines[lines[0].metric == "tpot_ms" ? 0 : 1], &ttft = lines[&tpot == &lines[0] ? 1 : 0];
  CHECK(ttft.regime == "light");  // 4 in flight on a GPU
  CHECK(ttft.rows == 21);
  CHECK(ttft.low == doctest::Approx(0.05));
  CHECK(ttft.median == doctest::Approx(0.5));
  CHECK(ttft.high == doctest::Approx(0.95));
  CHECK(tpot.rows == 20);
  CHECK(tpot.high == doctest::Approx(0.0));
}

TEST_CASE("coverage: what an interval needs beside its other causes, whichever class is left out") {
  // Of one release 30 values are as predicted, of another 10 are 40 % higher: the latter alone need the more.
  std::vector<Cells> cells(30, rows::closed_loop({{"ttft_ms", "40"}, {"tpot_ms", "8"}}));
  const std::vector<Cells> others(
      10, rows::closed_loop({{"engine_version", "0.18.0"}, {"ttft_ms", "40"}, {"tpot_ms", "8"}}));
  cells.insert(cells.end(), others.begin(), others.end());
  const CsvTable table = rows::table(cells);
  const MeasuredRuns runs = read_measured_runs(table);
  const LogSpread rest = regime_spread(LoadRegime::kLight).tpot;
  PredictedTable predicted{&runs, &table, {}, {}};
  const double other = 0.2;  // of all other causes
  for (std::size_t i = 0; i < cells.size(); ++i) {
    RunPrediction p;
    p.tpot_ms = i < 30 ? 8 : 8 / 1.4;
    predicted.predictions.push_back(p);
    predicted.intervals.push_back({.metrics = {{"mean_tpot_ms", p.tpot_ms * std::exp(-std::hypot(rest.low, other)),
                                                p.tpot_ms * std::exp(std::hypot(rest.high, other))}},
                                   .regime = LoadRegime::kLight});
  }
  const std::vector<SpreadLine> lines = rests_by_regime({predicted});
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].regime == "light (rest)");
  CHECK(lines[0].rows == 40);
  CHECK(lines[0].low == 0);
  CHECK(std::hypot(lines[0].high, other) == doctest::Approx(std::log(1.4)).epsilon(1e-3));
  for (std::size_t i = 0; i < 30; ++i) predicted.intervals[i].regime = LoadRegime::kQueued;  // whole errors, no rest
  CHECK(rests_by_regime({predicted})[0].rows == 10);
}
