// One machine whose memory, clock, power or links are not those that the constants were measured on: the rows of
// libraries tell, and the forecasts of every operator follow.

#include "calibrate/machine_fit.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "base/config_library.h"
#include "base/random.h"
#include "calibrate/gpu_file.h"
#include "hw/collectives.h"
#include "hw/kernels/attention.h"
#include "hw/kernels/elementwise.h"
#include "hw/kernels/gemm/gemm_kernel.h"
#include "hw/kernels/moe.h"

using namespace roofcast;
using namespace roofcast::calibrate;

namespace {

ConfigTree h100() { return load_named("hardware", "h100-sxm", SourceLocation{"--gpu", 0, 0}); }

/// What cuBLASLt and NCCL take on a machine that gives `truth` of an H100, with 2 % noise.
std::vector<MeasuredTable> measured_on(const MachineShares& truth) {
  const BenchmarkedGpu here = on_machine(load_benchmarked_gpu(h100()), truth);
  Random random(5);
  const auto noisy = [&](Seconds time) {
    return std::to_string(time.in(kMicrosecond) * (1.0 + 0.02 * random.normal()));
  };
  std::string products = "engine,dtype,m,n,k,timing,latency_us\n";
  for (const auto& [n, k] : {std::pair{6144, 4096}, {4096, 4096}, {28672, 4096}, {4096, 14336}}) {
    for (int m = 1; m <= 8192; m *= 4) {
      const GemmShape shape{.m = 1.0 * m, .n = 1.0 * n, .k = 1.0 * k};
      const MatmulKernel& kernel = gemm_kernel(shape, here.spec, here.of("vllm").rules());
      const GemmParameters constants = gemm_constants(kernel, Dtype::kBf16, here.spec, here.of("vllm"));
      for (const auto& [name, timing] : {std::pair{"cool", Timing::kCool}, {"served", Timing::kServed}}) {
        const Seconds time = gemm_with(shape, kernel, constants, here.spec, {.cool = timing == Timing::kCool}).time;
        products += "cublaslt-13.1.0,bf16," + std::to_string(m) + "," + std::to_string(n) + "," + std::to_string(k) +
                    "," + name + "," + noisy(time) + "\n";
      }
    }
  }
  std::string messages = "engine,op,dtype,gpus,elements,latency_us\n";
  for (double elements = 256; elements < 3e8; elements *= 4) {
    const Group group{.gpus = 8, .gpus_per_node = 8};
    const auto* fitted = here.of("vllm").find(nccl_kernel(Collective::kAllReduce), Dtype::kBf16);
    const Seconds time = nccl_time(Collective::kAllReduce, Bytes{2 * elements}, group, fitted->value, here.spec);
    messages += "nccl-2.28.9,all_reduce,bf16,8," + std::to_string(elements) + "," + noisy(time) + "\n";
  }
  return {{"gemm", CsvTable::parse(products, "g.csv")}, {"nccl", CsvTable::parse(messages, "n.csv")}};
}

FitOptions quick() {
  FitOptions options;
  options.what = "the machine";
  options.starts = 1;
  options.folds_run = 0;
  options.max_evaluations = 400;
  return options;
}

FitResult<MachineShares> found_on(const MachineShares& truth) {
  return fit_machine(measured_on(truth), load_benchmarked_gpu(h100()), quick());
}

}  // namespace

TEST_CASE("machine: shares of one machine come back from what libraries took on it") {
  const MachineShares truth{.memory_bandwidth = 0.9, .clock = 0.95, .power = 0.8, .fabric_bandwidth = 0.9};
  const MachineShares found = found_on(truth).value;
  CHECK(found.memory_bandwidth == doctest::Approx(0.9).epsilon(0.015));
  CHECK(found.clock == doctest::Approx(0.95).epsilon(0.015));
  CHECK(found.power == doctest::Approx(0.8).epsilon(0.05));
  CHECK(found.fabric_bandwidth == doctest::Approx(0.9).epsilon(0.03));
}

TEST_CASE("machine: one that is as its kind changes nothing, noise or not") {
  const MachineShares found = found_on({}).value;
  for (const Parameter<MachineShares>& share : MachineShares::fields()) CHECK(found.*share.member == 1.0);
}

TEST_CASE("machine: kernels of our own and engines' tell nothing of it") {
  std::vector<MeasuredTable> tables = measured_on({.memory_bandwidth = 0.8});
  tables.erase(tables.begin() + 1);
  std::string text = "engine,dtype,m,n,k,timing,latency_us\n";
  for (int m = 1; m <= 64; m *= 2) text += "roofcast-0.1.0,bf16," + std::to_string(m) + ",4096,4096,cool,99\n";
  tables[0].table = CsvTable::parse(text, "g.csv");
  CHECK(fit_machine(tables, load_benchmarked_gpu(h100()), quick()).fields.empty());
}

TEST_CASE("machine: forecasts of all operators move with a machine that differs by a tenth") {
  const std::string path = (std::filesystem::temp_directory_path() / "roofcast_machine_test.yaml").string();
  const auto file_of = [&](const MachineShares& truth) {
    const FitResult<MachineShares> fit = found_on(truth);
    write_gpu_file(path, with_gpu_constants(with_machine(h100(), fit.value, "a test"), {}));
    return parse_config_file(path);
  };
  struct Case {
    const char* name;
    MachineShares truth;
    bool memory, work, links;  ///< whose operators move
  };
  const Case cases[] = {{"memory", {.memory_bandwidth = 0.9}, true, false, false},
                        {"clock", {.clock = 0.9}, false, true, false},
                        {"links", {.fabric_bandwidth = 0.9}, false, false, true},
                        {"more memory", {.memory_bandwidth = 1.1}, true, false, false}};
  for (const Case& one : cases) {
    const ConfigTree written = file_of(one.truth);
    for (const std::string kernels : {"vllm", "trtllm"}) {
      const CalibratedGpu before = load_gpu(h100(), kernels), after = load_gpu(written, kernels);
      CHECK(after.efficiency.carried_over_from.empty());  // the same kind: its fits hold
      const auto ratio = [&](auto&& operator_) {
        const auto time = [&](const CalibratedGpu& gpu) {
          return operator_(Machine{.gpu = &gpu.spec, .efficiency = &gpu.efficiency}).base();
        };
        return time(after) / time(before);
      };
      const AttentionHeads heads{.heads = 32, .kv_heads = 8, .head_dim = 128, .value_dim = 128};
      MoeShape experts;
      experts.tokens = 16;
      experts.hidden = 4096;
      experts.inter = 14336;
      experts.top_k = 2;
      experts.experts = 8;
      MoeShape many = experts;
      many.tokens = 16384;
      const double slower = one.truth.memory_bandwidth > 1.0 ? -1.0 : 1.0;  // the sign of what is expected
      const auto moves = [&](const char* what, double by, bool expected) {
        INFO(one.name, ", ", kernels, ": ", what, " ", by);
        if (expected) CHECK((by - 1.0) * slower > 0.03);
        if (!expected) CHECK(std::abs(by - 1.0) < 0.07);
      };
      moves("product of few rows",
            ratio([](const Machine& m) { return gemm({.m = 16, .n = 28672, .k = 4096}, m).time; }), one.memory);
      moves("fp8 product of few rows", ratio([](const Machine& m) {
              return gemm({.m = 16, .n = 28672, .k = 8192, .weights = Dtype::kFp8, .activations = Dtype::kFp8}, m).time;
            }),
            one.memory);
      moves("decode attention", ratio([&](const Machine& m) {
              return attention_decode({.batch = 64, .mean_context = 8192, .max_context = 8192}, heads, m).time;
            }),
            one.memory);
      moves("norm", ratio([](const Machine& m) { return elementwise(Bytes{1e9}, Flops{}, 1, m).time; }), one.memory);
      moves("experts of few tokens", ratio([&](const Machine& m) { return moe_experts(experts, m).time; }), one.memory);
      moves("prompt attention",
            ratio([&](const Machine& m) { return attention_prefill({.batch = 4, .query_len = 8192}, heads, m).time; }),
            one.work);
      if (one.work) {
        moves("product of many rows",
              ratio([](const Machine& m) { return gemm({.m = 8192, .n = 8192, .k = 8192}, m).time; }), true);
        moves("experts of many tokens", ratio([&](const Machine& m) { return moe_experts(many, m).time; }), true);
      }
      moves("all-reduce", ratio([](const Machine& m) {
              return collective(Collective::kAllReduce, Bytes{256e6}, {.gpus = 8, .gpus_per_node = 8}, m).time;
            }),
            one.links);
    }
  }
  std::filesystem::remove(path);
}
