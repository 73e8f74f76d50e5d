// Parts that nobody sells: more of anything is never slower, whatever the constants come from.

#include <doctest/doctest.h>

#include <array>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/config_library.h"
#include "hw/efficiency.h"
#include "hw/kernels/attention.h"
#include "hw/kernels/gemm.h"

using namespace roofcast;

namespace {

constexpr double kNoise = 1.0 + 1e-9;

struct Timed {
  std::string what;
  std::function<Seconds(const Machine&)> time;
};

/// Products of a prompt and of a decode step, and both attentions, in 16 and 8 bit.
std::vector<Timed> operators(const GpuSpec& gpu) {
  std::vector<Timed> out;
  for (const Dtype format : {Dtype::kBf16, Dtype::kFp8}) {
    if (!gpu.compute_dtype(format, format)) continue;
    for (const double m : {1.0, 64.0, 512.0, 8192.0}) {
      const GemmShape shape{.m = m, .n = 8192, .k = 4096, .weights = format, .activations = format};
      out.push_back(
          {std::string(name_of(format)) + " product", [=](const Machine& on) { return gemm(shape, on).time; }});
    }
  }
  for (const Dtype cache : {Dtype::kBf16, Dtype::kFp8}) {
    const AttentionHeads heads{.heads = 32, .kv_heads = 8, .head_dim = 128, .value_dim = 128, .kv = cache};
    for (const double batch : {1.0, 64.0, 512.0}) {
      const DecodeShape decode{.batch = batch, .mean_context = 2048, .max_context = 2048};
      out.push_back({"decode", [=](const Machine& on) { return attention_decode(decode, heads, on).time; }});
    }
    const PrefillShape prompt{.batch = 2, .query_len = 4096};
    out.push_back({"prompt", [=](const Machine& on) { return attention_prefill(prompt, heads, on).time; }});
  }
  return out;
}

CalibratedGpu with(const std::string& base, const std::vector<std::string>& changes) {
  ConfigTree tree = with_sibling(load_named("hardware", base, {}));
  // The part's constants are those of `base` as carried over, so that nothing but the change differs.
  if (const ConfigTree* constants = tree->find("efficiency"); (*constants)->find("carried_over_from") == nullptr)
    tree = with_assignment(tree, "efficiency={carried_over_from: " + base + "}", "test");
  for (const std::string& change : changes) tree = with_assignment(tree, change, "test");
  return load_gpu(tree, KernelFamily::kVllm);
}

}  // namespace

TEST_CASE("hypothetical parts: more bandwidth, a faster clock or more watts are never slower") {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> factor(1.01, 3.0);
  for (const char* base :
       {"h100-sxm", "a100-sxm", "b200-sxm", "l40s", "rtx-4090", "rtx-pro-6000", "mi300x", "mi355x"}) {
    const CalibratedGpu before = with(base, {});
    const GpuSpec& spec = before.spec;
    for (int i = 0; i < 6; ++i) {
      const double more = factor(random);
      const std::array<std::string, 2> changes{
          "memory_bandwidth=" + std::to_string(spec.memory_bandwidth.base() * more / 1e9) + " GB/s",
          "board_power=" + std::to_string(spec.board_power.value * more) + " W"};
      for (const std::string& change : changes) {
        const CalibratedGpu after = with(base, {change});
        for (const Timed& one : operators(spec)) {
          CAPTURE(base);
          CAPTURE(change);
          CAPTURE(one.what);
          CHECK(one.time({.gpu = &after.spec, .efficiency = &after.efficiency}) <=
                one.time({.gpu = &before.spec, .efficiency = &before.efficiency}) * kNoise);
        }
      }
    }
  }
}

TEST_CASE("hypothetical parts: AMD's newer part is never slower than the one before, nor an 8-bit cache than 16 bit") {
  const auto on = [](const char* name) { return load_gpu(load_named("hardware", name, {}), KernelFamily::kVllm); };
  const CalibratedGpu mi300x = on("mi300x"), mi325x = on("mi325x"), mi350x = on("mi350x"), mi355x = on("mi355x");
  const std::array<std::pair<const CalibratedGpu*, const CalibratedGpu*>, 3> newer{
      {{&mi300x, &mi325x}, {&mi325x, &mi355x}, {&mi350x, &mi355x}}};
  for (const auto& [older, later] : newer) {
    for (const Timed& one : operators(older->spec)) {
      CAPTURE(older->spec.name);
      CAPTURE(later->spec.name);
      CAPTURE(one.what);
      CHECK(one.time({.gpu = &later->spec, .efficiency = &later->efficiency}) <=
            one.time({.gpu = &older->spec, .efficiency = &older->efficiency}) * kNoise);
    }
  }
  for (const CalibratedGpu* gpu : {&mi300x, &mi325x, &mi350x, &mi355x}) {
    const Machine machine{.gpu = &gpu->spec, .efficiency = &gpu->efficiency};
    for (const double batch : {8.0, 64.0, 512.0}) {
      for (const double context : {512.0, 2048.0, 16384.0}) {
        if (batch * context < 16384) continue;  // a launch longer than the cache is read, as measured on an H100
        const DecodeShape decode{.batch = batch, .mean_context = context, .max_context = context};
        const AttentionHeads wide{.heads = 32, .kv_heads = 8, .head_dim = 128, .value_dim = 128};
        AttentionHeads narrow = wide;
        narrow.kv = Dtype::kFp8;
        CAPTURE(gpu->spec.name);
        CAPTURE(batch);
        CAPTURE(context);
        CHECK(attention_decode(decode, narrow, machine).time <= attention_decode(decode, wide, machine).time * kNoise);
      }
    }
  }
}
