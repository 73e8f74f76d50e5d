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

}  // namespace roofcast::reports
