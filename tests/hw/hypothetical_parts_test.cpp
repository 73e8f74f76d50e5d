// Parts that nobody sells, and those of the catalogue beside each other: more of anything is never slower, whatever the
// constants come from.

#include <doctest/doctest.h>

#include <array>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/config_library.h"
#include "hw/changed_gpu.h"
#include "hw/collectives.h"
#include "hw/efficiency.h"
#include "hw/kernels/attention.h"
#include "hw/kernels/elementwise.h"
#include "hw/kernels/gemm.h"
#include "hw/kernels/latent_attention.h"
#include "hw/kernels/moe.h"

using namespace roofcast;

namespace {

constexpr double kNoise = 1.0 + 1e-9;

/// How much longer a larger part may take.
struct Within {
  double decode = kNoise, prompts = kNoise, others = kNoise;
  double of(const std::string& what) const { return what == "decode" ? decode : what == "prompt" ? prompts : others; }
};
constexpr Within kExactly;
/// A B200's fitted rate of L2 for products is below that of its memory.
constexpr Within kMoreL2{.others = 1.005};
/// Each GPU of a pair has constants and split rules of its own.
constexpr Within kSiblings{.decode = 1.2, .prompts = 1.04, .others = 1.05};

struct Timed {
  std::string what;
  std::function<Seconds(const Machine&)> time;
};

void add_products(std::vector<Timed>& out, Dtype format, std::optional<Dtype> activations = std::nullopt) {
  for (const double m : {1.0, 16.0, 64.0, 512.0, 8192.0}) {
    for (const auto& [n, k] : {std::pair{8192.0, 4096.0}, {2048.0, 7168.0}}) {
      const GemmShape shape{.m = m, .n = n, .k = k, .weights = format, .activations = activations.value_or(format)};
      out.push_back(
          {std::string(name_of(format)) + " product", [=](const Machine& on) { return gemm(shape, on).time; }});
    }
  }
}

void add_experts(std::vector<Timed>& out, Dtype format) {
  for (const double tokens : {1.0, 64.0, 1024.0, 16384.0}) {
    MoeShape shape;
    shape.tokens = tokens, shape.hidden = 4096, shape.inter = 1536, shape.top_k = 8, shape.experts = 128;
    shape.weights = shape.activations = format;
    out.push_back(
        {std::string(name_of(format)) + " experts", [=](const Machine& on) { return moe_experts(shape, on).time; }});
  }
}

void add_attention(std::vector<Timed>& out, Dtype cache, double dim) {
  const AttentionHeads heads{.heads = 32, .kv_heads = 8, .head_dim = dim, .value_dim = dim, .kv = cache};
  for (const double batch : {1.0, 16.0, 64.0, 512.0}) {
    for (const double context : {256.0, 2048.0, 32768.0}) {
      const DecodeShape decode{.batch = batch, .mean_context = context, .max_context = context};
      out.push_back({"decode", [=](const Machine& on) { return attention_decode(decode, heads, on).time; }});
    }
  }
  for (const double tokens : {128.0, 4096.0, 32768.0}) {
    const PrefillShape prompt{.batch = 2, .query_len = tokens};
    out.push_back({"prompt", [=](const Machine& on) { return attention_prefill(prompt, heads, on).time; }});
  }
}

void add_latent_attention(std::vector<Timed>& out, double heads, Dtype cache) {
  LatentHeads latent;
  latent.heads = heads, latent.kv = cache;
  for (const double batch : {1.0, 16.0, 256.0}) {
    for (const double context : {256.0, 2048.0, 32768.0}) {
      const DecodeShape decode{.batch = batch, .mean_context = context, .max_context = context};
      out.push_back({"latent decode", [=](const Machine& on) { return latent_decode(decode, latent, on).time; }});
    }
  }
  for (const double tokens : {128.0, 4096.0, 32768.0}) {
    const PrefillShape prompt{.batch = 2, .query_len = tokens};
    out.push_back({"latent prompt", [=](const Machine& on) { return latent_prefill(prompt, latent, on).time; }});
  }
}

/// Products, experts and attention of prompts and decode steps, in 16 and 8 bit; what moves memory alone.
std::vector<Timed> operators(const GpuSpec& gpu) {
  std::vector<Timed> out;
  for (const Dtype format : {Dtype::kBf16, Dtype::kFp8}) {
    if (!gpu.compute_dtype(format, format)) continue;
    add_products(out, format);
    add_experts(out, format);
  }
  for (const double dim : {64.0, 128.0, 256.0}) {
    for (const Dtype cache : {Dtype::kBf16, Dtype::kFp8}) add_attention(out, cache, dim);
  }
  for (const double bytes : {1e5, 1e7, 1e9}) {
    out.push_back({"elementwise", [=](const Machine& on) { return elementwise(Bytes(bytes), Flops(0), 1, on).time; }});
  }
  return out;
}

CalibratedGpu with(const std::string& base, const std::vector<std::string>& changes, const std::string& kernels) {
  // The part's constants are those of `base` as carried over, so that nothing but the change differs.
  ConfigTree tree = with_constants_of(with_sibling(load_named("hardware", base, {})), base, {});
  for (const std::string& change : changes) tree = with_assignment(tree, change, "test");
  return load_gpu(tree, kernels);
}

std::string of_peaks(const GpuSpec& spec, double factor) {
  std::string out = "dense={";
  for (std::size_t i = 0; i < kDtypeCount; ++i) {
    const auto dtype = static_cast<Dtype>(i);
    if (spec.dense[i].base() <= 0.0) continue;
    out += (out.back() == '{' ? "" : ", ") + std::string(name_of(dtype)) + ": " +
           std::to_string(spec.dense[i].base() * factor / 1e12) + " TFLOP/s";
  }
  return out + "}";
}

struct Enlarged {
  std::vector<std::string> changes;
  Within within;
};

/// One thing more of a part, and SMs or clock with their peaks.
std::vector<Enlarged> enlarged(const GpuSpec& spec, double more) {
  const std::string sms = std::to_string(static_cast<int>(spec.sm_count * more + 0.999));
  const double exact = std::stod(sms) / spec.sm_count;
  const auto watts = [&](double by) { return "board_power=" + std::to_string(spec.board_power.value * by) + " W"; };
  return {
      {{"memory_bandwidth=" + std::to_string(spec.memory_bandwidth.base() * more / 1e9) + " GB/s"}, kExactly},
      {{watts(more)}, kExactly},
      {{"l2_cache=" + std::to_string(spec.l2_cache.base() * more / 1048576.0) + " MiB"}, kMoreL2},
      {{of_peaks(spec, more)}, kExactly},
      {{of_peaks(spec, more), watts(more)}, kExactly},
      {{"boost_clock=" + std::to_string(spec.boost_clock.base() * more / 1e6) + " MHz", of_peaks(spec, more),
        watts(more)},
       kExactly},
      {{"sm_count=" + sms}, kExactly},
      {{"sm_count=" + sms, of_peaks(spec, exact), watts(exact)}, kExactly},
  };
}

void never_slower(const CalibratedGpu& before, const CalibratedGpu& after, const std::vector<Timed>& all,
                  const Within& within = kExactly) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(i);
    CAPTURE(all[i].what);
    const Seconds old = all[i].time({.gpu = &before.spec, .efficiency = &before.efficiency});
    const Seconds now = all[i].time({.gpu = &after.spec, .efficiency = &after.efficiency});
    CHECK(now.base() / old.base() <= within.of(all[i].what));
  }
}

constexpr std::array kBases{"h100-sxm", "a100-sxm",     "b200-sxm", "l40s",   "l4", "a10g",
                            "rtx-4090", "rtx-pro-6000", "mi300x",   "mi355x", "h20"};

}  // namespace

TEST_CASE("hypothetical parts: more bandwidth, watts, L2, peak, clock or SMs are not slower") {
  // Under the same peak, that is a limit of the chip: as many SMs as the GPU has that a part is like still reach it.
  std::mt19937 random(7);
  std::uniform_real_distribution<double> factor(1.01, 3.0);
  for (const char* base : kBases) {
    for (const std::string kernels : {"vllm", "trtllm"}) {
      const CalibratedGpu before = with(base, {}, kernels);
      if (kernels == "trtllm" && before.spec.architecture >= Architecture::kCdna3) continue;  // none there
      std::vector<Timed> all = operators(before.spec);
      add_products(all, Dtype::kInt4, Dtype::kBf16);
      for (const Dtype cache : {Dtype::kBf16, Dtype::kFp8}) {
        for (const double heads : {16.0, 128.0}) add_latent_attention(all, heads, cache);
      }
      for (const auto& [changes, within] : enlarged(before.spec, factor(random))) {
        CAPTURE(std::string(base));
        CAPTURE(kernels);
        CAPTURE(changes.front());
        never_slower(before, with(base, changes, kernels), all, within);
      }
    }
  }
}

TEST_CASE("hypothetical parts: a part that is like another equals it until it differs") {
  // rtx-4090 has an A100's products: 128 SMs may run as its 108. What is like it may, too.
  const ConfigTree twin = parse_config_text("name: twin\nlike: rtx-4090\n", "twin.yaml");
  const CalibratedGpu one = load_gpu(load_named("hardware", "rtx-4090", {}), "vllm"), other = load_gpu(twin, "vllm");
  CHECK(other.efficiency.carried_over_from == one.efficiency.carried_over_from);
  for (const Timed& each : operators(one.spec)) {
    CAPTURE(each.what);
    const Seconds first = each.time({.gpu = &one.spec, .efficiency = &one.efficiency});
    const Seconds second = each.time({.gpu = &other.spec, .efficiency = &other.efficiency});
    CHECK(second.base() == doctest::Approx(first.base()).epsilon(1e-9));
  }
}

TEST_CASE("hypothetical parts: a higher peak in one format slows no other") {
  using enum Dtype;
  constexpr std::array<std::pair<Dtype, Dtype>, 8> kFormats{{{kBf16, kBf16},
                                                             {kFp8, kFp8},
                                                             {kFp8Block, kFp8},
                                                             {kInt8, kInt8},
                                                             {kTernary, kInt8},
                                                             {kNvfp4, kNvfp4},
                                                             {kInt4, kBf16},
                                                             {kInt4, kFp8}}};
  for (const char* base : {"h100-sxm", "a100-sxm", "b200-sxm", "gb300", "gh200", "l40s", "rtx-pro-6000", "mi300x"}) {
    const CalibratedGpu before = with(base, {}, "vllm");
    for (std::size_t i = 0; i < kDtypeCount; ++i) {
      const auto raised = static_cast<Dtype>(i);
      if (before.spec.peak(raised).base() <= 0.0) continue;
      std::vector<Timed> all;
      for (const auto& [weights, activations] : kFormats) {
        const std::optional<Dtype> runs = before.spec.compute_dtype(weights, activations);
        if (runs && *runs != raised) add_products(all, weights, activations);
      }
      const std::string change = "dense." + std::string(name_of(raised)) + "=" +
                                 std::to_string(before.spec.peak(raised).base() * 3.0 / 1e12) + " TFLOP/s";
      CAPTURE(std::string(base));
      CAPTURE(change);
      never_slower(before, with(base, {change}, "vllm"), all);
    }
  }
}

TEST_CASE("hypothetical parts: a newer, larger sibling of the catalogue is not slower") {
  // Each has at least the SMs, bandwidth, peaks and clock of the one before, and no older kernels.
  constexpr std::array<std::pair<const char*, const char*>, 16> kNewer{{
      {"a100-sxm-40gb", "a100-sxm"},
      {"a100-pcie", "a100-sxm"},
      {"h100-pcie", "h100-sxm"},
      {"h200-nvl", "h200-sxm"},
      {"h20", "h200-sxm"},
      {"l4", "l40s"},
      {"l20", "l40s"},
      {"rtx-3090", "rtx-4090"},
      {"rtx-4090", "rtx-5090"},
      {"rtx-pro-4500", "rtx-pro-6000"},
      {"rtx-a6000", "rtx-6000-ada"},
      {"b200-sxm", "gb200"},
      {"gb200", "rubin"},
      {"mi300x", "mi325x"},
      {"mi325x", "mi355x"},
      {"mi350x", "mi355x"},
  }};
  for (const auto& [older, later] : kNewer) {
    CAPTURE(std::string(older));
    CAPTURE(std::string(later));
    const CalibratedGpu before = load_gpu(load_named("hardware", older, {}), "vllm");
    const CalibratedGpu after = load_gpu(load_named("hardware", later, {}), "vllm");
    never_slower(before, after, operators(before.spec), kSiblings);
  }
}

TEST_CASE("hypothetical parts: faster links are never slower") {
  for (const char* base : {"h100-sxm", "b200-sxm", "gb200", "l40s", "mi300x"}) {
    const CalibratedGpu before = with(base, {}, "vllm");
    const bool fabric = before.spec.node.fabric_bandwidth.base() > 0.0;
    const bool nvlink = fabric && std::string(base) != "mi300x";
    const std::string key = !fabric ? "node.pcie_bandwidth" : nvlink ? "node.nvlink_bandwidth" : "node.link_bandwidth";
    const double links = nvlink || !fabric ? 1.0 : 7.0;
    const BytesPerSecond link = fabric ? before.spec.node.fabric_bandwidth : before.spec.node.pcie_bandwidth;
    std::vector<std::string> changes{key + "=" + std::to_string(1.5 * link.base() / links / 1e9) + " GB/s"};
    if (links > 1) changes.push_back("node.fabric_bandwidth=" + std::to_string(1.5 * link.base() / 1e9) + " GB/s");
    const CalibratedGpu after = with(base, changes, "vllm");
    std::vector<Timed> all;
    for (const int gpus : {2, 4, 8}) {
      for (const double bytes : {1e3, 1e5, 1e7, 1e9}) {
        const Group group{gpus, gpus};
        all.push_back({"all-reduce", [=](const Machine& on) {
                         return collective(Collective::kAllReduce, Bytes(bytes), group, on).time;
                       }});
      }
    }
    CAPTURE(std::string(base));
    never_slower(before, after, all);
  }
}

TEST_CASE("hypothetical parts: an 8-bit cache is not slower than 16 bit where no kernel unpacks it") {
  for (const char* name : {"mi300x", "mi325x", "mi350x", "mi355x", "h100-sxm", "h200-sxm", "b200-sxm", "gb200"}) {
    const CalibratedGpu gpu = load_gpu(load_named("hardware", name, {}), "vllm");
    const Machine machine{.gpu = &gpu.spec, .efficiency = &gpu.efficiency};
    for (const double batch : {8.0, 64.0, 512.0}) {
      for (const double context : {512.0, 2048.0, 16384.0}) {
        if (batch * context < 32768) continue;  // a launch longer than the cache is read, as measured on an H100
        const DecodeShape decode{.batch = batch, .mean_context = context, .max_context = context};
        const AttentionHeads wide{.heads = 32, .kv_heads = 8, .head_dim = 128, .value_dim = 128};
        AttentionHeads narrow = wide;
        narrow.kv = Dtype::kFp8;
        CAPTURE(name);
        CAPTURE(batch);
        CAPTURE(context);
        CHECK(attention_decode(decode, narrow, machine).time <= attention_decode(decode, wide, machine).time * kNoise);
      }
    }
  }
}

TEST_CASE("hypothetical parts: experts and products in fewer bytes are not slower") {
  // Steps large enough that weights or the matrix units count, not the kernels of quantization beside them.
  for (const char* name : {"h100-sxm", "h200-sxm", "b200-sxm", "gb200", "l40s", "rtx-pro-6000", "mi300x", "mi355x"}) {
    const CalibratedGpu gpu = load_gpu(load_named("hardware", name, {}), "vllm");
    const Machine machine{.gpu = &gpu.spec, .efficiency = &gpu.efficiency};
    for (const double m : {64.0, 512.0, 8192.0}) {
      const GemmShape wide{.m = m, .n = 16384, .k = 8192};
      GemmShape narrow = wide;
      narrow.weights = narrow.activations = Dtype::kFp8;
      CAPTURE(name);
      CAPTURE(m);
      CHECK(gemm(narrow, machine).time <= gemm(wide, machine).time * kNoise);
    }
  }
}
