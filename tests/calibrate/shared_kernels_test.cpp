#include "calibrate/shared_kernels.h"

#include <doctest/doctest.h>

using namespace roofcast;
using namespace roofcast::calibrate;

TEST_CASE("shared kernels: on Blackwell one engine's constants serve the other where it has no rows of its own") {
  const auto block = [](std::string name, int rows) {
    FittedConstants made;
    made.block = std::move(name);
    made.values = {{"launch_us", 5.0}, {"eager_host_us", 0.0}, {"size_limit_mb", 16.0}};
    made.record.provenance = Provenance::kMeasured;
    made.record.rows = rows;
    return made;
  };
  const std::vector<FittedSet> fitted{
      {"trtllm",
       {block("trtllm_gen_mla_prefill.bf16", 1), block("trtllm_gen_mla_decode.fp8", 2),
        block("trtllm_gen_mla_decode_loop.bf16", 6), block("custom_all_reduce.bf16", 5)}},
      {"vllm", {block("trtllm_gen_mla_vllm_decode.fp8", 3), block("cutlass_nvfp4.nvfp4", 4)}}};
  GpuSpec gpu;
  gpu.architecture = Architecture::kBlackwell;
  const std::vector<FittedSet> shared = shared_constants(fitted, gpu);
  REQUIRE(shared.size() == 4);
  CHECK(shared[0].kernels == "vllm");
  CHECK(shared[0].blocks[0].block == "trtllm_gen_mla_vllm_prefill.bf16");
  CHECK(shared[0].blocks[0].record.provenance == Provenance::kCarriedOver);
  CHECK(shared[0].blocks[0].record.rows == 1);
  CHECK(shared[0].blocks[0].values[0].second == 5.0);
  CHECK(shared[1].blocks[0].block == "trtllm_gen_mla_vllm_decode_loop.bf16");
  CHECK(shared[1].blocks[0].values[1].second > 100.0);  // vLLM's are timed eagerly
  CHECK(shared[2].kernels == "vllm");
  CHECK(shared[2].blocks[0].block == "fused_all_reduce.bf16");
  CHECK(shared[2].blocks[0].values[0].second == 5.0);
  CHECK(shared[2].blocks[0].values[2].second > 64 * 1.048576);  // what vLLM fuses up to, that size included
  CHECK(shared[3].kernels == "trtllm");
  CHECK(shared[3].blocks[0].block == "cutlass_nvfp4.nvfp4");
  CHECK(shared[3].blocks[0].values == fitted[1].blocks[1].values);
  gpu.architecture = Architecture::kHopper;
  CHECK(shared_constants(fitted, gpu).empty());
}
