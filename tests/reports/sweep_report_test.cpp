#include "reports/sweep_report.h"

#include <doctest/doctest.h>

#include "base/config_library.h"

namespace roofcast::reports {

TEST_CASE("sweep report: the CSV has the metrics of all points, and nothing for infinity and NaN") {
  const SweepSpec sweep = parse_sweep(
      parse_config_text("{scenario: {model: llama-3.1-8b, gpu: h100-sxm}, grid: {batch: [1, 2, 3]}}", "sweep"));
  SweepStore store(":memory:");
  store.add("a", "x=inf\ny=0.5\nwhy='one, two\n", 0);
  store.add("b", "x=-nan\nfits=true\ny=3\n", 0);
  SweepOutcome outcome;
  outcome.points = {0, 1, 2};
  outcome.hashes = {"a", "b", "c"};
  outcome.errors = {{"c", "cannot be read"}};
  CHECK(sweep_report(sweep, outcome, store, "csv") ==
        "batch,x,y,why,fits,model,gpu,error\n"
        "1,,0.5,\"one, two\",,llama-3.1-8b,h100-sxm,\n"
        "2,,3,,true,llama-3.1-8b,h100-sxm,\n"
        "3,,,,,llama-3.1-8b,h100-sxm,cannot be read\n");
}

TEST_CASE("sweep report: the JSON holds as many points as were run, and damaged results are refused") {
  const SweepSpec sweep = parse_sweep(
      parse_config_text("{scenario: {model: llama-3.1-8b, gpu: h100-sxm}, grid: {batch: [1, 2, 3]}}", "sweep"));
  SweepStore store(":memory:");
  const std::vector<std::string> hashes{"a", "b", "c"};
  for (std::size_t points = 0; points <= hashes.size(); ++points) {
    SweepOutcome outcome;
    for (std::size_t i = 0; i < points; ++i) outcome.points.push_back(i), outcome.hashes.push_back(hashes[i]);
    const auto json = nlohmann::json::parse(sweep_report(sweep, outcome, store, "json"));
    CHECK(json.at("points").size() == points);
    if (points < hashes.size()) store.add(hashes[points], "y=1\n", 0);
  }
  for (const char* damaged : {"y=nonsense\n", "y=1x\n", "y\n"}) {
    CAPTURE(damaged);
    SweepStore other(":memory:");
    other.add("a", damaged, 0);
    SweepOutcome outcome;
    outcome.points = {0}, outcome.hashes = {"a"};
    for (const char* format : {"table", "csv", "json"})
      CHECK_THROWS_AS(sweep_report(sweep, outcome, other, format), ConfigError);
  }
}

}  // namespace roofcast::reports
