// The shipped constants against the measured tables they were fitted to: a sample, and the whole where it is at hand.
#include <doctest/doctest.h>

#include <string>

#include "base/config_library.h"
#include "calibrate/validate.h"
#include "tests/measured_data.h"

using namespace roofcast;
using namespace roofcast::calibrate;

namespace {

void check_gpu(const std::string& data, const std::string& name, double bf16_limit, double other_limit) {
  const std::string path = data + "/kernels/" + name + "/gemm.csv";
  const BenchmarkedGpu gpu =
      load_benchmarked_gpu(parse_config_file(std::string(ROOFCAST_SOURCE_DIR) + "/configs/hardware/" + name + ".yaml"));
  const KernelValidation found = validate_kernels(CsvTable::read_file(path), gpu);
  for (const ErrorGroup& group : found.groups) {
    if (group.name == "all") continue;
    CAPTURE(name);
    CAPTURE(group.name);
    const bool wide = group.name.find("bfloat16") != std::string::npos;
    CHECK(group.errors.mape < (wide ? bf16_limit : other_limit));
  }
}

}  // namespace

TEST_CASE("gemm constants: mean error on a sample of measured kernels") {
  // some 40 rows a group: the mean varies by a few points around that of the whole
  for (const char* gpu : {"h100-sxm", "h200-sxm", "b200-sxm", "a100-sxm"})
    check_gpu(testing::kSampleData, gpu, 0.12, 0.25);
}

TEST_CASE("gemm constants: mean error on measured kernels") {
  if (!testing::there_or_skip(testing::kWholeData + "/kernels")) return;
  check_gpu(testing::kWholeData, "h100-sxm", 0.06, 0.12);
  check_gpu(testing::kWholeData, "h200-sxm", 0.065, 0.12);
  check_gpu(testing::kWholeData, "b200-sxm", 0.08, 0.12);
  check_gpu(testing::kWholeData, "a100-sxm", 0.08, 0.12);
}
