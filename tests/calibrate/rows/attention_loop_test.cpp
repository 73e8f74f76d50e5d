#include "calibrate/rows/attention_loop.h"

#include <doctest/doctest.h>

#include "base/config_node.h"
#include "calibrate/rows/state.h"
#include "hw/efficiency.h"
#include "hw/kernels/benchmark_loops.h"
#include "tests/kernel_constants.h"

using namespace roofcast;
using namespace roofcast::calibrate;
using roofcast::testing::constants_of;

namespace {

/// 100 SMs, 1 PFLOP/s in 16 bit and 2 in 8, 2 TB/s, 50 MB of L2.
GpuSpec round_gpu() {
  GpuSpec gpu;
  gpu.architecture = Architecture::kHopper;
  gpu.sm_count = 100;
  gpu.memory_bandwidth = BytesPerSecond(2e12);
  gpu.l2_cache = Bytes(50e6);
  gpu.dense[static_cast<std::size_t>(Dtype::kBf16)] = FlopsPerSecond(1e15);
  gpu.dense[static_cast<std::size_t>(Dtype::kFp8)] = FlopsPerSecond(2e15);
  return gpu;
}

RowHeader timed(Timing timing) {
  RowHeader header;
  header.timing = timing;
  return header;
}

}  // namespace

TEST_CASE("attention loop: without constants only GPUs before Hopper are assumed to read a cache again") {
  GpuSpec gpu = round_gpu();
  const auto reuse = [&](Architecture architecture) {
    gpu.architecture = architecture;
    return KernelOf<CacheLoop>::in(assumed_attention_loop(attention::xqa_decode(), Dtype::kBf16, gpu))
        ->value.benchmark_reuse;
  };
  CHECK(reuse(Architecture::kAmpere) == 0.5);
  CHECK(reuse(Architecture::kAda) == 0.5);
  CHECK(reuse(Architecture::kHopper) == 0.0);
  CHECK(reuse(Architecture::kBlackwellGeforce) == 0.0);
}

TEST_CASE("attention loop: it finds a small cache in the L2, serving does not") {
  const GpuSpec gpu = round_gpu();
  const attention::DecodeKernel& kernel = attention::flash_attention_3_decode();
  const ConstantsBlock p = kernel.assumed(gpu, Dtype::kBf16);
  const ConstantsBlock loop = assumed_attention_loop(kernel, Dtype::kBf16, gpu);
  const auto gap = [&](double context) {
    const DecodeShape shape{.batch = 16, .mean_context = context, .max_context = context};
    const AttentionHeads heads{.heads = 8, .kv_heads = 8};
    const auto time = [&](Timing timing) {
      return attention_row_time(DecodeRow{timed(timing), shape, heads}, kernel, p, loop, gpu).in(kMicrosecond);
    };
    return time(Timing::kServed) - time(Timing::kBenchmark);
  };
  CHECK(gap(8192) == doctest::Approx(-3).epsilon(1e-6));  // 0.5 GB: nothing is left of it in either
  CHECK(gap(350) > -3);                                   // 23 MB of 50: only the benchmark is spared the memory
}

TEST_CASE("attention loop: a kernel alone in its graph shows 3 us more of its launch") {
  const GpuSpec gpu = round_gpu();
  const attention::PrefillKernel& kernel = attention::flash_attention_3_prefill();
  const ConstantsBlock p = kernel.assumed(gpu, Dtype::kBf16);
  const PrefillShape shape{.batch = 1, .query_len = 4096};
  const AttentionHeads heads{.heads = 8, .kv_heads = 8};
  const auto time = [&](Timing timing) {
    return attention_row_time(PrefillRow{timed(timing), shape, heads}, kernel, p, {}, gpu).in(kMicrosecond);
  };
  CHECK(time(Timing::kBenchmark) - time(Timing::kServed) == doctest::Approx(3).epsilon(1e-9));
}

TEST_CASE("attention loop: keys and values of the same pages are read once") {
  // 1 GB of cache in a loop whose L2 finds half of it at 8 TB/s, the other half comes from memory at 2 TB/s x 0.5:
  // 500 us + 62.5 us, where served it is 1000 us. XQA's path and launch are next to nothing.
  const GpuSpec gpu = round_gpu();
  const attention::DecodeKernel& kernel = attention::xqa_decode();
  const ConstantsBlock p = constants_of(kernel, {{"launch_us", 0},
                                                 {"launch_head_dim_us", 0},
                                                 {"tile_us", 0},
                                                 {"tile_row_us", 0},
                                                 {"row_ns", 0},
                                                 {"group_us", 0},
                                                 {"combine_us", 0},
                                                 {"split_ns", 0},
                                                 {"bandwidth_fraction", 0.5}});
  const ConstantsBlock loop = constants_of(*attention_loop_of(kernel), {{"benchmark_reuse", 0.5}});
  const DecodeShape shape{.batch = 256, .mean_context = 953.67, .max_context = 953.67};
  const AttentionHeads heads{.heads = 32, .kv_heads = 8};  // 8 x 512 B a token
  const auto time = [&](Timing timing) {
    return attention_row_time(DecodeRow{timed(timing), shape, heads}, kernel, p, loop, gpu).in(kMicrosecond);
  };
  CHECK(time(Timing::kServed) == doctest::Approx(1000).epsilon(0.01));
  CHECK(time(Timing::kBenchmark) == doctest::Approx(562.5).epsilon(0.01));
}

TEST_CASE("attention loop: with idle SMs, rules see the busy ones only, in a row as in a forecast") {
  // 8 KV heads x 8 parts of 128 tokens are 0.24 blocks per SM of 264, too few for XQA, and 0.48 of the 132 measured.
  const ConfigTree wide = parse_config_text("{name: wide, like: h100-sxm, sm_count: 264}", "wide.yaml");
  const CalibratedGpu gpu = load_gpu(wide, "trtllm");
  const Machine machine{.gpu = &gpu.spec, .efficiency = &gpu.efficiency};
  const DecodeShape shape{.batch = 1, .mean_context = 1024, .max_context = 1024};
  const AttentionHeads heads{.heads = 32, .kv_heads = 8};
  CHECK(attention_row_time(DecodeRow{timed(Timing::kServed), shape, heads}, machine) ==
        attention_decode(shape, heads, machine).time);
}

TEST_CASE("attention loop: serving lacks the overhead of eager loops") {
  const GpuSpec gpu = round_gpu();
  const attention::LatentDecodeKernel& kernel = attention::flash_attention_3_mla_decode();
  const ConstantsBlock p = constants_of(kernel, {{"launch_us", 12}, {"launch_heads_us", 0}, {"sequence_ns", 0}});
  const ConstantsBlock loop =
      constants_of(*attention_loop_of(kernel), {{"eager_device_us", 60}, {"eager_host_us", 160}});
  const DecodeShape shape{.batch = 1, .mean_context = 64, .max_context = 64};
  const auto time = [&](Timing timing) {
    return attention_row_time(LatentDecodeRow{timed(timing), shape, {.heads = 16}}, kernel, p, loop, gpu)
        .in(kMicrosecond);
  };
  CHECK(time(Timing::kBenchmark) == doctest::Approx(160).epsilon(0.01));  // the host's pace
  CHECK(time(Timing::kServed) < 12);                                      // 12 - 3 us of launch and a short path
}

TEST_CASE("state loop: it finds a small state in L2, serving does not") {
  StateParameters p;
  p.decode_launch_us = 4;
  p.decode_bandwidth_fraction = 0.5;
  p.decode_state_share = 1.0;
  StateRow row;
  row.batch = 4;
  row.mixer = {.kind = StateMixer::Kind::kGatedDelta, .heads = 32, .key_heads = 16, .key_dim = 128, .value_dim = 128};
  // 4 x 2 x 2 097 152 B = 16 777 216 B, from L2 at 100 x 48 GB/s or from memory at 1000 GB/s
  CHECK(recurrence_row_time(row, p, round_gpu()).in(kMicrosecond) == doctest::Approx(4 + 16.777216 / 4.8));
  row.header.timing = Timing::kServed;
  CHECK(recurrence_row_time(row, p, round_gpu()).in(kMicrosecond) == doctest::Approx(4 + 16.777216));
}
