// calibrate/data/h100-sxm.jsonl and h200-sxm.jsonl: GPUs that no shipped constant was fitted to.

#include <string>

#include <doctest/doctest.h>

#include "tests/base/temporary_folder.h"
#include "tests/cli/run_program.h"

using roofcast::TemporaryFolder;
using roofcast::testing::run_roofcast;

namespace {

double number_after(const std::string& text, const std::string& what) {
  const std::size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return std::stod(text.substr(at + what.size()));
}

}  // namespace

TEST_CASE("own measurements: the shipped constants price whole decode steps within 7 %") {
  for (const char* gpu : {"h100-sxm", "h200-sxm"}) {
    const auto shown = run_roofcast(std::string("calibrate show calibrate/data/") + gpu + ".jsonl");
    REQUIRE(shown.status == 0);
    CHECK(number_after(shown.out, "mean error with this attention") < 7.0);
    CHECK(shown.out.find("wrong_result") == std::string::npos);
    CHECK(shown.out.find("failed") == std::string::npos);
  }
}

TEST_CASE("own measurements: a fit finds the machine to be of its kind, and its rows within the interval") {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/gpu.yaml";
  const auto fitted = run_roofcast("calibrate fit calibrate/data/h200-sxm.jsonl --starts 1 --out '" + file + "'");
  REQUIRE(fitted.status == 0);
  for (const char* share : {"memory_bandwidth", "clock", "power"}) {
    INFO(share);
    CHECK(number_after(fitted.out, share) > 0.95);
    CHECK(number_after(fitted.out, share) < 1.05);
  }
  const auto judged =
      run_roofcast("validate kernels --gpu '" + file + "' --data calibrate/data/h200-sxm.jsonl --format csv");
  REQUIRE(judged.status == 0);
  const std::size_t all = judged.out.find("gemm,all,");
  REQUIRE(all != std::string::npos);
  const std::string line = judged.out.substr(all, judged.out.find('\n', all) - all);
  INFO(line);
  const double within = std::stod(line.substr(line.rfind(',') + 1));
  CHECK(within > 0.70);  // of all formats: bf16 and fp8 have 0.90, int8 has no constants of its own
}
