#include "calibrate/rows/moe.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "base/config_library.h"
#include "hw/efficiency.h"

using namespace roofcast;
using namespace roofcast::calibrate;

namespace {

/// Rows of one cell of TensorRT-LLM's CUTLASS experts in nvfp4, `factor` times as long as the shipped constants say.
std::string cell(const BenchmarkedGpu& gpu, double hidden, double tp, double ep, double factor) {
  std::string rows;
  for (const double tokens : {1.0, 16.0, 64.0, 256.0, 1024.0, 4096.0}) {
    rows += fmt::format("trtllm-1.3.0rc20,moe_torch_flow_cutlass,nvfp4,{},{},2048,8,256,{},{},balanced,", tokens,
                        hidden, tp, ep);
    const CsvTable one = CsvTable::parse(
        "engine,kernel,dtype,tokens,hidden_size,inter_size,top_k,experts,tp,ep,distribution,latency_us\n" +
            rows.substr(rows.rfind('\n') + 1) + "1\n",
        "one.csv");
    rows += fmt::format("{}\n", moe_operator().predict(one, gpu)[0].time.in(kMicrosecond)*factor);
  }
  return rows;
}

}  // namespace

TEST_CASE("moe rows: whole cells that ran untuned are no evidence, but count in a benchmark's interval") {
  const ConfigTree b200 = load_named("hardware", "b200-sxm", {});
  const BenchmarkedGpu gpu = load_benchmarked_gpu(b200);
  std::string rows = "engine,kernel,dtype,tokens,hidden_size,inter_size,top_k,experts,tp,ep,distribution,latency_us\n";
  for (const double hidden : {4096.0, 6144.0, 7168.0}) {
    for (const double ep : {1.0, 4.0}) rows += cell(gpu, hidden, 2.0, ep, 1.0);
  }
  rows += cell(gpu, 7168.0, 4.0, 8.0, 1.4);
  FitOptions options;
  options.starts = 1, options.folds = 0, options.max_evaluations = 300;
  const CsvTable table = CsvTable::parse(rows, "moe.csv");
  const std::vector<FittedConstants> fitted = moe_operator().fit(table, gpu.spec, *kernel_rules("trtllm"), options);
  REQUIRE(fitted.size() == 1);
  CHECK(fitted[0].block == "cutlass_nvfp4_experts.nvfp4");
  CHECK(fitted[0].record.rows == 36);
  CHECK(fitted[0].on_rows.mape < 0.05);
  CHECK(fitted[0].record.discrepancy_elsewhere > 1.5 * fitted[0].on_rows.mape);
}
