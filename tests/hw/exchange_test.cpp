#include "hw/exchange.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "base/config_library.h"
#include "hw/efficiency.h"
#include "hw/gpu_spec.h"

using namespace roofcast;

namespace {

/// NVLink 400 GB/s, 40 GB/s of network a GPU, eight to a node; `domain` GPUs reach each other over NVLink.
GpuSpec round_gpu(int domain = 8) {
  GpuSpec gpu;
  gpu.name = "round";
  gpu.architecture = Architecture::kHopper;
  gpu.sm_count = 100;
  gpu.memory_bandwidth = 2000.0 * kGigabytePerSecond;
  gpu.node = {.gpus_per_node = 8,
              .fabric = domain > 8 ? Fabric::kNvlDomain : Fabric::kNvSwitch,
              .fabric_domain = domain,
              .fabric_bandwidth = 400.0 * kGigabytePerSecond,
              .pcie_bandwidth = 50.0 * kGigabytePerSecond,
              .nic_bandwidth = 40.0 * kGigabytePerSecond};
  return gpu;
}

/// 1,000 tokens of 1,000 values of one byte: a copy is 1 MB.
ExchangeShape shape_of(ExchangeKernel kernel, int ranks, double top_k = 2.0) {
  return {.kernel = kernel,
          .tokens = 1000,
          .hidden = 1000,
          .value_bytes = 1.0,
          .top_k = top_k,
          .experts = 64,
          .ranks = ranks};
}

double ideal_us(const ExchangeShape& shape, const GpuSpec& gpu) {
  return exchange(shape, {.gpu = &gpu, .fidelity = Fidelity::kIdeal}).time.in(kMicrosecond);
}

constexpr ExchangeKernel kAll[] = {ExchangeKernel::kNormal, ExchangeKernel::kLowLatency, ExchangeKernel::kOneSided};

}  // namespace

TEST_CASE("exchange: inside a node a token goes once to each rank, or once for each expert") {
  const GpuSpec gpu = round_gpu();
  // Two choices over 8 ranks meet 8 (1 - (7/8)^2) = 1.875 of them, 7/8 of that elsewhere: 1.640625 MB at 400 GB/s.
  CHECK(ideal_us(shape_of(ExchangeKernel::kNormal, 8), gpu) == doctest::Approx(1.640625e6 / 400e3));
  CHECK(ideal_us(shape_of(ExchangeKernel::kOneSided, 8), gpu) == doctest::Approx(1.640625e6 / 400e3));
  // Straight to both experts: 2 x 7/8 MB
  CHECK(ideal_us(shape_of(ExchangeKernel::kLowLatency, 8), gpu) == doctest::Approx(1.75e6 / 400e3));
}

TEST_CASE(
    "exchange: between nodes the normal mode sends a token once to a node, the others once to each that takes it") {
  const GpuSpec gpu = round_gpu();
  // Two choices over 4 nodes meet 4 (1 - (3/4)^2) = 1.75 of them, 3/4 of that elsewhere: 1.3125 MB at 40 GB/s
  CHECK(ideal_us(shape_of(ExchangeKernel::kNormal, 32), gpu) == doctest::Approx(1.3125e6 / 40e3));
  CHECK(ideal_us(shape_of(ExchangeKernel::kLowLatency, 32), gpu) == doctest::Approx(1.5e6 / 40e3));
  // The one-sided exchange is of NVLink alone: over a network the faster of the other two.
  CHECK(ideal_us(shape_of(ExchangeKernel::kOneSided, 32), gpu) == doctest::Approx(1.3125e6 / 40e3));
  // In a rack of 32: 32 (1 - (31/32)^2) = 1.96875 ranks, 31/32 of them elsewhere
  CHECK(ideal_us(shape_of(ExchangeKernel::kOneSided, 32), round_gpu(32)) ==
        doctest::Approx(1.96875e6 * 31.0 / 32.0 / 400e3));
}

TEST_CASE("exchange: ranks that are alone in their nodes wait for the network only") {
  GpuSpec gpu = round_gpu(1);
  gpu.node.gpus_per_node = 1;
  // 1.640625 MB, as inside a node, at the 40 GB/s of the network
  CHECK(ideal_us(shape_of(ExchangeKernel::kNormal, 8), gpu) == doctest::Approx(1.640625e6 / 40e3));
}

TEST_CASE("exchange: what leaves a leaf passes its links up") {
  GpuSpec gpu = round_gpu();
  gpu.node.leaf_gpus = 16;
  // 32 ranks in four nodes: two experts' copies, 3/4 of them elsewhere, 1.5 MB at 40 GB/s; 16 of the 24 ranks elsewhere
  // are below the other leaf: 1 MB, at a quarter of that.
  CHECK(ideal_us(shape_of(ExchangeKernel::kLowLatency, 32), gpu) == doctest::Approx(37.5));
  gpu.node.oversubscription = 4.0;
  CHECK(ideal_us(shape_of(ExchangeKernel::kLowLatency, 32), gpu) == doctest::Approx(100.0));
  CHECK(ideal_us(shape_of(ExchangeKernel::kLowLatency, 16), gpu) == doctest::Approx(25.0));  // 1 MB below one leaf
  // Once to each of 4 (1 - (3/4)^2) = 1.75 nodes, 3/4 of them elsewhere; two of these three below the other leaf
  CHECK(ideal_us(shape_of(ExchangeKernel::kNormal, 32), gpu) == doctest::Approx(1.3125e6 * 2 / 3 / 10e3));
}

TEST_CASE("exchange: a token that may choose from half of the groups reaches fewer nodes") {
  const GpuSpec gpu = round_gpu();
  ExchangeShape shape = shape_of(ExchangeKernel::kNormal, 64, 8.0);
  CHECK(copies_of(shape, gpu).nodes == doctest::Approx(8.0 * (1.0 - std::pow(7.0 / 8.0, 8))));  // 5.25
  shape.groups = 8, shape.groups_kept = 4;
  CHECK(copies_of(shape, gpu).nodes == doctest::Approx(4.0 * (1.0 - std::pow(3.0 / 4.0, 8))));  // 3.60
  CHECK(copies_of(shape, gpu).over_network == doctest::Approx(3.5996 * 7.0 / 8.0).epsilon(1e-4));
  // Of two nodes with four groups each nearly all hold one of four chosen: 1 - (4 x 3 x 2 x 1) / (8 x 7 x 6 x 5)
  shape.ranks = 16;
  const double reach = 2.0 * (1.0 - 24.0 / 1680.0);
  CHECK(copies_of(shape, gpu).nodes == doctest::Approx(reach * (1.0 - std::pow(1.0 - 1.0 / reach, 8))));
}

TEST_CASE("exchange: start, SMs, links and network by hand") {
  const GpuSpec gpu = round_gpu();
  const ExchangeParameters p{.dispatch_us = 10,
                             .combine_us = 20,
                             .expert_ns = 100,
                             .rank_scan_bytes = 0,
                             .sm_gb_per_s = 1,
                             .network_sm_share = 0.5,
                             .dispatch_fraction = 1,
                             .combine_fraction = 1,
                             .hop_us = 4,
                             .network_fraction = 1};
  ExchangeShape shape = shape_of(ExchangeKernel::kNormal, 8);
  shape.sms = 10;
  // 10 + 64 x 0.1 us, and 1.875 MB by ten SMs of 1 GB/s: 187.5 us, far above the 4.1 us of the links
  CHECK(exchange_time(shape, p, gpu).in(kMicrosecond) == doctest::Approx(16.4 + 187.5).epsilon(1e-5));
  shape.combine = true;
  CHECK(exchange_time(shape, p, gpu).in(kMicrosecond) == doctest::Approx(26.4 + 187.5).epsilon(1e-5));
  // Two nodes: one hop more, SMs half as fast. 16 (1 - (15/16)^2) = 1.9375 copies
  shape.ranks = 16;
  CHECK(exchange_time(shape, p, gpu).in(kMicrosecond) == doctest::Approx(30.4 + 387.5).epsilon(1e-3));
  shape.ranks = 1;
  CHECK(exchange_time(shape, p, gpu) == Seconds{});
}

TEST_CASE("exchange: never faster than the wire, more of anything never slower, over random fabrics") {
  std::mt19937 random(7);
  const auto pick = [&](double low, double high) {
    return low * std::pow(high / low, std::uniform_real_distribution<double>(0.0, 1.0)(random));
  };
  const Efficiency priors;
  for (int i = 0; i < 300; ++i) {
    GpuSpec gpu = round_gpu();
    gpu.node.fabric_bandwidth = BytesPerSecond(pick(50e9, 2e12));
    gpu.node.nic_bandwidth = BytesPerSecond(std::min(pick(10e9, 200e9), gpu.node.fabric_bandwidth.base() / 4));
    ExchangeShape shape = shape_of(kAll[i % 3], 8 << (i % 5), std::round(pick(1, 16)));
    shape.combine = i % 2 == 0;
    shape.tokens = std::round(pick(1, 1e5));
    const auto time = [&](const ExchangeShape& s, const GpuSpec& on) {
      return exchange(s, {.gpu = &on, .efficiency = &priors}).time;
    };
    const Seconds now = time(shape, gpu);
    CAPTURE(i);
    CHECK(now.in(kMicrosecond) >= ideal_us(shape, gpu));
    ExchangeShape more = shape;
    more.tokens *= 2;
    CHECK(time(more, gpu) >= now);
    GpuSpec faster = gpu;
    faster.node.fabric_bandwidth *= 1.5;
    CHECK(time(shape, faster) <= now);
    faster = gpu;
    faster.node.nic_bandwidth *= 1.5;
    CHECK(time(shape, faster) <= now);
    GpuSpec below = gpu;  // a network of leaves
    below.node.leaf_gpus = 8 << (i % 4);
    CHECK(time(shape, below) == now);
    below.node.oversubscription = pick(1.0, 16.0);
    CHECK(time(shape, below) >= now);
    faster = below;
    faster.node.leaf_gpus *= 2;
    CHECK(time(shape, faster) <= time(shape, below));
    GpuSpec rack = gpu;  // what went over the network goes over NVLink
    rack.node.fabric = Fabric::kNvlDomain;
    rack.node.fabric_domain = 256;
    // An eighth of what the normal mode sends to a node is where it arrives, and never on its NVLink.
    const double relayed = shape.kernel != ExchangeKernel::kLowLatency ? 8.0 / 7.0 : 1.0;
    CHECK(time(shape, rack) <= now * relayed);
  }
}

TEST_CASE("exchange: what of it runs on SMs") {
  const GpuSpec gpu = round_gpu();
  const Machine machine{.gpu = &gpu};
  // Normal: 20 of 100 SMs from start to end.
  const ExchangeOnSms normal = exchange_on_sms(shape_of(ExchangeKernel::kNormal, 16), machine);
  CHECK(normal.share == doctest::Approx(0.2));
  CHECK(normal.alone == Seconds{});
  // Low latency over two nodes, 64 experts: starts in 15 us + 64 x 10 ns; 64 SMs copy 2 MB at 19 GB/s each in 1.6 us,
  // the links 7/8 of half of it, 0.875 MB, at 0.7 of 400 GB/s in 3.1 us. The network and its hop are not on SMs.
  const ExchangeShape far = shape_of(ExchangeKernel::kLowLatency, 16);
  const ExchangeOnSms low = exchange_on_sms(far, machine);
  CHECK(low.share == 0.0);
  const double sms = 2e6 / (64 * 19e3), links = 0.875e6 / (0.7 * 400e3);
  CHECK(low.alone.in(kMicrosecond) == doctest::Approx(15.64 + std::pow(std::pow(sms, 4) + std::pow(links, 4), 0.25)));
  CHECK(low.alone < exchange(far, machine).time);
  // Inside a domain of NVLink the SMs do all of it.
  const ExchangeShape near = shape_of(ExchangeKernel::kLowLatency, 8);
  CHECK(exchange_on_sms(near, machine).alone.base() == doctest::Approx(exchange(near, machine).time.base()));
}

TEST_CASE("exchange: over PCIe alone it gets what bridges let through") {
  GpuSpec gpu = round_gpu();
  gpu.node.fabric = Fabric::kPcie;
  gpu.node.fabric_bandwidth = BytesPerSecond(0);
  gpu.node.fabric_domain = 1;
  const ExchangeParameters fast{.dispatch_us = 0, .expert_ns = 0, .sm_gb_per_s = 1e6, .dispatch_fraction = 1.0};
  // Low latency, 8 ranks: 2 copies of 1 MB, 7/8 of them away, at 0.45 of 50 GB/s
  const ExchangeShape shape = shape_of(ExchangeKernel::kLowLatency, 8);
  CHECK(exchange_time(shape, fast, gpu).in(kMicrosecond) == doctest::Approx(1.75e6 / (0.45 * 50e3)).epsilon(1e-3));
}

TEST_CASE("exchange: a large one reaches a fifth of its links on every shipped GPU, however many SMs it gives") {
  for (const std::string& name : names_of("hardware")) {
    const CalibratedGpu gpu = load_gpu(load_named("hardware", name, {}), "vllm");
    if (gpu.spec.node.fabric_bandwidth.base() <= 0.0) continue;
    const Machine machine{.gpu = &gpu.spec, .efficiency = &gpu.efficiency};
    for (const ExchangeKernel kernel : kAll) {
      ExchangeShape shape = shape_of(kernel, std::min(8, gpu.spec.node.fabric_domain), 8.0);
      shape.tokens = 8192, shape.hidden = 7168, shape.value_bytes = 2.0, shape.experts = 256;
      shape.combine = true;
      CAPTURE(name);
      CAPTURE(static_cast<int>(kernel));
      CHECK(exchange(shape, machine).time.in(kMicrosecond) <= 5.0 * ideal_us(shape, gpu.spec));
      // A roofline has no SMs to give away: 20 of the H100's 132.
      if (kernel == ExchangeKernel::kNormal && shape.ranks > 1) CHECK(exchange_on_sms(shape, machine).share <= 0.5);
    }
  }
}
