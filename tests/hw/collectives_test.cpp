#include "hw/collectives.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/config_library.h"
#include "hw/efficiency.h"
#include "hw/gpu_spec.h"
#include "hw/kernels/elementwise.h"

using namespace roofcast;

namespace {

/// NVLink 400 GB/s, PCIe 50 GB/s, 40 GB/s of network a GPU, eight to a node.
GpuSpec round_gpu() {
  GpuSpec gpu;
  gpu.name = "round";
  gpu.architecture = Architecture::kHopper;
  gpu.sm_count = 100;
  gpu.memory_bandwidth = 2000.0 * kGigabytePerSecond;
  gpu.node = {.gpus_per_node = 8,
              .fabric = Fabric::kNvSwitch,
              .switch_reduces = true,
              .fabric_domain = 8,
              .fabric_bandwidth = 400.0 * kGigabytePerSecond,
              .pcie_bandwidth = 50.0 * kGigabytePerSecond,
              .nic_bandwidth = 40.0 * kGigabytePerSecond};
  return gpu;
}

double ideal_us(Collective kind, double bytes, int gpus, int per_node, const GpuSpec& gpu) {
  return collective(kind, Bytes{bytes}, {.gpus = gpus, .gpus_per_node = per_node},
                    {.gpu = &gpu, .fidelity = Fidelity::kIdeal})
      .time.in(kMicrosecond);
}

constexpr Collective kAll[] = {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter,
                               Collective::kAllToAll, Collective::kSend};

}  // namespace

TEST_CASE("collectives: ideal times are bytes over the link") {
  const GpuSpec gpu = round_gpu();
  // all-reduce of 8 MB over 8: 2 x 7/8 x 8 MB = 14 MB at 400 GB/s
  CHECK(ideal_us(Collective::kAllReduce, 8e6, 8, 8, gpu) == doctest::Approx(35.0));
  // all-gather of 1 MB from each of 8: the other 7 MB
  CHECK(ideal_us(Collective::kAllGather, 1e6, 8, 8, gpu) == doctest::Approx(17.5));
  CHECK(ideal_us(Collective::kReduceScatter, 8e6, 8, 8, gpu) == doctest::Approx(17.5));
  CHECK(ideal_us(Collective::kAllToAll, 8e6, 8, 8, gpu) == doctest::Approx(17.5));
  CHECK(ideal_us(Collective::kSend, 8e6, 2, 2, gpu) == doctest::Approx(20.0));
}

TEST_CASE("collectives: between nodes the network counts") {
  const GpuSpec gpu = round_gpu();
  // 16 GPUs, two nodes: 2 x 15/16 x 8 MB = 15 MB; the ring crosses on eight NICs of 40 GB/s: 320 GB/s
  CHECK(ideal_us(Collective::kAllReduce, 8e6, 16, 8, gpu) == doctest::Approx(15e6 / 320e9 * 1e6));
  // all-to-all: half of the message leaves through one's own NIC: 4 MB at 40 GB/s
  CHECK(ideal_us(Collective::kAllToAll, 8e6, 16, 8, gpu) == doctest::Approx(100.0));
  // one GPU a node: nothing but the network
  CHECK(ideal_us(Collective::kSend, 8e6, 2, 1, gpu) == doctest::Approx(200.0));
}

TEST_CASE("collectives: over the spine a ring has the links up of its NICs, an all-to-all those of each GPU") {
  GpuSpec gpu = round_gpu();
  gpu.node.leaf_gpus = 32;
  // A ring of 64 moves 2 x 63/64 x 8 MB = 15.75 MB past each border, on eight NICs of 40 GB/s: 49.2 us. Up from a leaf
  // of 32 there is the bandwidth of 32/4 = 8 NICs, which is enough; of 32/8 = 4 it takes twice as long.
  const double ring = 15.75e6 / 320e9 * 1e6;
  for (const double narrower : {1.0, 2.0, 4.0}) {
    gpu.node.oversubscription = narrower;
    CHECK(ideal_us(Collective::kAllReduce, 8e6, 64, 8, gpu) == doctest::Approx(ring));
  }
  // All-to-all: 56 of 64 parts leave the node, 7 MB at 40 GB/s; 32 of 64 leave the leaf, 4 MB at 10 GB/s.
  CHECK(ideal_us(Collective::kAllToAll, 8e6, 64, 8, gpu) == doctest::Approx(400.0));
  gpu.node.oversubscription = 1.0;
  CHECK(ideal_us(Collective::kAllToAll, 8e6, 64, 8, gpu) == doctest::Approx(175.0));
  gpu.node.oversubscription = 8.0;
  CHECK(ideal_us(Collective::kAllReduce, 8e6, 64, 8, gpu) == doctest::Approx(2 * ring));
  // 40 GPUs: 20 below each of two leaves; 4 MB of 8 at 5 GB/s
  CHECK(ideal_us(Collective::kAllToAll, 8e6, 40, 8, gpu) == doctest::Approx(800.0));
  // 32 stay below one leaf: 24 of 32 parts leave the node, 6 MB at 40 GB/s
  CHECK(ideal_us(Collective::kAllToAll, 8e6, 32, 8, gpu) == doctest::Approx(150.0));
}

TEST_CASE(
    "collectives: a pipeline sends over the fabric inside a domain, over the network and the spine between them") {
  GpuSpec gpu = round_gpu();
  const auto us = [&](int gpus, int stages) {
    return pipeline_send(Bytes(8e6), gpus, stages, {.gpu = &gpu, .fidelity = Fidelity::kIdeal}).time.in(kMicrosecond);
  };
  CHECK(us(4, 2) == doctest::Approx(20.0));                  // 8 MB at 400 GB/s
  CHECK(us(8, 2) == doctest::Approx(200.0));                 // each stage is a node: at 40 GB/s
  CHECK(us(4, 4) == doctest::Approx((2 * 20 + 200) / 3.0));  // one of three borders is that of two nodes
  CHECK(us(8, 1) == 0.0);
  // Leaves of one node and a spine of a quarter: the eight NICs of a node share two links up.
  gpu.node.leaf_gpus = 8;
  gpu.node.oversubscription = 4.0;
  CHECK(us(8, 2) == doctest::Approx(800.0));
  CHECK(us(4, 4) == doctest::Approx((2 * 20 + 400) / 3.0));  // four senders on two links
  // A stage of two leaves has no more senders below a leaf than its eight NICs.
  CHECK(us(16, 2) == doctest::Approx(800.0));
  gpu.node.leaf_gpus = 16;
  CHECK(us(8, 2) == doctest::Approx(200.0));
  CHECK(us(8, 4) ==
        doctest::Approx((2 * 200 + 400) / 3.0));  // two of three borders stay below a leaf; eight on four links
}

TEST_CASE("collectives: a pipeline over bridged pairs passes PCIe inside a node and the network between nodes") {
  GpuSpec gpu = round_gpu();
  gpu.node.fabric_domain = 2;
  gpu.node.gpus_per_node = 8;
  const auto us = [&](int gpus, int stages) {
    return pipeline_send(Bytes(8e6), gpus, stages, {.gpu = &gpu, .fidelity = Fidelity::kIdeal}).time.in(kMicrosecond);
  };
  // 8 MB at 400 GB/s over the bridge, at 50 GB/s over PCIe, at 40 GB/s over the network.
  const double bridge = 20, pcie = 160, network = 200;
  CHECK(us(1, 8) == doctest::Approx((4 * bridge + 3 * pcie) / 7));
  CHECK(us(1, 16) == doctest::Approx((8 * bridge + 6 * pcie + network) / 15));
  CHECK(us(4, 4) == doctest::Approx((2 * pcie + network) / 3));
  CHECK(us(8, 2) == doctest::Approx(network));
}

TEST_CASE("collectives: without NVLink a node is connected by PCIe") {
  GpuSpec gpu = round_gpu();
  gpu.node.fabric_bandwidth = BytesPerSecond{};
  gpu.node.fabric_domain = 1;
  CHECK(ideal_us(Collective::kAllReduce, 8e6, 8, 1, gpu) == doctest::Approx(280.0));  // 14 MB at 50 GB/s
}

TEST_CASE("collectives: over PCIe no protocol gets more than the bridges let through") {
  GpuSpec gpu = round_gpu();
  gpu.node.fabric_bandwidth = BytesPerSecond{};
  gpu.node.fabric_domain = 1;
  NcclParameters p;
  p.own_copy = 0.0;
  const auto us = [&](double bytes, int gpus) {
    return nccl_time(Collective::kAllGather, Bytes{bytes}, {.gpus = gpus, .gpus_per_node = 1}, p, gpu).in(kMicrosecond);
  };
  // 3/4 of 4 x 400 MB at 0.55 x 50 GB/s; 7/8 of 8 x 400 MB at 0.45 x 50 GB/s
  CHECK(us(400e6, 4) == doctest::Approx(1.2e9 / 27.5e3).epsilon(0.01));
  CHECK(us(400e6, 8) == doctest::Approx(2.8e9 / 22.5e3).epsilon(0.01));
}

TEST_CASE("collectives: one GPU costs nothing") {
  const GpuSpec gpu = round_gpu();
  const Efficiency priors;
  for (const Collective kind : kAll) {
    for (const Fidelity fidelity : {Fidelity::kIdeal, Fidelity::kCalibrated}) {
      const Machine machine{.gpu = &gpu, .efficiency = &priors, .fidelity = fidelity};
      CHECK(collective(kind, Bytes{1e6}, {.gpus = 1, .gpus_per_node = 1}, machine).time == Seconds{});
      CHECK(nccl(kind, Bytes{}, {.gpus = 8, .gpus_per_node = 8}, machine).time == Seconds{});
    }
  }
}

TEST_CASE("collectives: NCCL takes the fastest protocol") {
  const GpuSpec gpu = round_gpu();
  NcclParameters p;
  p = {.launch_us = 5,
       .step_us = 1,
       .ll_fraction = 0.1,
       .ll128_us = 100,
       .ll128_step_us = 0,
       .ll128_fraction = 0.5,
       .simple_us = 10,
       .simple_step_us = 1,
       .simple_fraction = 1.0,
       .own_copy = 0,
       .switch_us = 0,
       .switch_fraction = 0,
       .network_us = 0,
       .network_fraction = 1};
  const Group four{.gpus = 4, .gpus_per_node = 4};
  // LL:     5 + 6 steps x 1 + 1.5 x 4 kB / 40 GB/s          = 11.15 us
  CHECK(nccl_time(Collective::kAllReduce, Bytes{4e3}, four, p, gpu).in(kMicrosecond) == doctest::Approx(11.15));
  // Simple: 5 + 10 + 6 x (1 + 1) + 1.5 x 400 MB / 400 GB/s  = 1527 us
  CHECK(nccl_time(Collective::kAllReduce, Bytes{400e6}, four, p, gpu).in(kMicrosecond) == doctest::Approx(1527.0));
  // Two nodes of two, two NICs of 40 GB/s, 7 us a hop each way: 150 MB / 80 GB/s beside the links; 2 steps inside a
  // node
  p.network_us = 7;
  const Group split{.gpus = 4, .gpus_per_node = 2};
  CHECK(nccl_time(Collective::kAllReduce, Bytes{100e6}, split, p, gpu).in(kMicrosecond) ==
        doctest::Approx(5 + 10 + 2 * 2 + 1875 + 14));
}

TEST_CASE("collectives: small messages take one shot, large ones two, the largest NCCL") {
  const GpuSpec gpu = round_gpu();
  CustomAllReduceParameters p;
  p = {.launch_us = 4,
       .peer_us = 0.1,
       .one_shot_fraction = 0.5,
       .two_shot_us = 10,
       .two_shot_fraction = 0.5,
       .size_limit_mb = 16,
       .switch_us = 0,
       .switch_fraction = 0,
       .eager_us = 20,
       .eager_us_per_doubling = 1,
       .copy_fraction = 1};
  NcclParameters library;
  library.launch_us = 1000;
  Group eight{.gpus = 8, .gpus_per_node = 8};
  const auto us = [&](double bytes) {
    return custom_all_reduce_time(Bytes{bytes}, eight, p, library, gpu).in(kMicrosecond);
  };
  CHECK(us(20e3) == doctest::Approx(4 + 0.7 + 7 * 20e3 / 200e9 * 1e6));        // 5.4 us, one shot
  CHECK(us(2e6) == doctest::Approx(4 + 0.7 + 10 + 1.75 * 2e6 / 200e9 * 1e6));  // 32.2 us, two shots
  CHECK(us(20e6) > 1000);                                                      // beyond the limit: NCCL
  eight.captured = false;
  CHECK(us(20e3) == doctest::Approx(20 + 3));                        // the host cannot launch faster
  CHECK(us(2e6) == doctest::Approx(32.2 + 2 * 2e6 / 2000e9 * 1e6));  // 2 us to copy in and out
}

TEST_CASE("collectives: an all-reduce that norms has the residual's two passes more, by its own constants") {
  GpuSpec gpu = round_gpu();
  gpu.l2_cache = 0.0 * kMebibyte;
  Efficiency efficiency;
  efficiency.put(custom_all_reduce_kernel(), Dtype::kBf16, {.value = {.launch_us = 4, .peer_us = 0}, .record = {}});
  ElementwiseParameters half;
  half.bandwidth_fraction = 0.5;  // 1000 GB/s
  efficiency.put(elementwise_kernel(), Dtype::kBf16, {.value = half, .record = {}});
  const Machine machine{.gpu = &gpu, .efficiency = &efficiency};
  const Group four{.gpus = 4, .gpus_per_node = 4};
  const Seconds apart = collective(Collective::kAllReduce, Bytes{1e6}, four, machine).time;
  const auto joined = [&] { return (all_reduce_norm(Bytes{1e6}, four, machine).time - apart).in(kMicrosecond); };
  CHECK(joined() == doctest::Approx(2.0));  // 2 MB
  efficiency.put(fused_all_reduce_kernel(), Dtype::kBf16, {.value = {.launch_us = 3, .peer_us = 0}, .record = {}});
  CHECK(joined() == doctest::Approx(1.0));  // another engine's kernel, 1 us faster
  CHECK(fuses_all_reduce(four, gpu));
  CHECK_FALSE(fuses_all_reduce({.gpus = 16, .gpus_per_node = 8}, gpu));
  gpu.node.fabric_bandwidth = BytesPerSecond{};
  CHECK_FALSE(fuses_all_reduce(four, gpu));
}

TEST_CASE("collectives: the engines' kernels stay inside one NVLink domain") {
  const GpuSpec gpu = round_gpu();
  const Efficiency priors;
  const Machine machine{.gpu = &gpu, .efficiency = &priors};
  const Group inside{.gpus = 8, .gpus_per_node = 8}, outside{.gpus = 16, .gpus_per_node = 8};
  CHECK(collective(Collective::kAllReduce, Bytes{16e3}, inside, machine).time <
        nccl(Collective::kAllReduce, Bytes{16e3}, inside, machine).time);
  CHECK(collective(Collective::kAllReduce, Bytes{16e3}, outside, machine).time ==
        nccl(Collective::kAllReduce, Bytes{16e3}, outside, machine).time);
}

TEST_CASE("collectives: real is slower than ideal, more bytes never faster, a faster link never slower") {
  const GpuSpec gpu = round_gpu();
  GpuSpec faster = gpu;
  faster.node.fabric_bandwidth *= 2.0;
  const Efficiency priors;
  const Machine machine{.gpu = &gpu, .efficiency = &priors};
  for (const Collective kind : kAll) {
    for (const Group group : {Group{.gpus = 2, .gpus_per_node = 2}, Group{.gpus = 8, .gpus_per_node = 8},
                              Group{.gpus = 32, .gpus_per_node = 8}}) {
      Seconds before{};
      for (double bytes = 128; bytes < 2e9; bytes *= 1.7) {
        const Seconds time = nccl(kind, Bytes{bytes}, group, machine).time;
        CHECK(time >= before);
        // A switch that adds sends a message once where the ring of the ideal sends it twice.
        const double rings = kind == Collective::kAllReduce && group.gpus == 8 ? 0.5 : 1.0;
        CHECK(time > rings * nccl(kind, Bytes{bytes}, group, {.gpu = &gpu, .fidelity = Fidelity::kIdeal}).time);
        CHECK(nccl(kind, Bytes{bytes}, group, {.gpu = &faster, .efficiency = &priors}).time <= time);
        before = time;
      }
    }
  }
}

TEST_CASE("collectives: a mesh gives a group the links to its members, and no switch that reduces") {
  GpuSpec gpu = round_gpu();
  gpu.node.fabric = Fabric::kXgmiMesh;
  gpu.node.switch_reduces = false;
  // seven links of 400/7 GB/s: two GPUs share one, four have three each, eight all seven
  CHECK(ideal_us(Collective::kSend, 8e6, 2, 2, gpu) == doctest::Approx(140.0));          // 8 MB at 57.1 GB/s
  CHECK(ideal_us(Collective::kReduceScatter, 8e6, 4, 4, gpu) == doctest::Approx(35.0));  // 6 MB at 171.4 GB/s
  CHECK(ideal_us(Collective::kReduceScatter, 8e6, 8, 8, gpu) == doctest::Approx(17.5));  // 7 MB at 400 GB/s
  NcclParameters p;
  p.switch_fraction = 0.9, p.switch_us = 0.0;
  const Group eight{.gpus = 8, .gpus_per_node = 8};
  GpuSpec switched = round_gpu();
  const auto time = [&](const GpuSpec& on) { return nccl_time(Collective::kAllReduce, Bytes{1e8}, eight, p, on); };
  CHECK(time(switched).in(kMicrosecond) == doctest::Approx(5.5 + 1e8 / 360e9 * 1e6).epsilon(1e-3));
  CHECK(time(gpu) > 1.5 * time(switched));
  CHECK(
      custom_all_reduce_time(Bytes{1e8}, eight, {.size_limit_mb = 1, .switch_us = 0, .switch_fraction = 0.9}, {}, gpu) >
      custom_all_reduce_time(Bytes{1e8}, eight, {.size_limit_mb = 1, .switch_us = 0, .switch_fraction = 0.9}, {},
                             switched));
}

TEST_CASE("collectives: a rack of several nodes is passed as a tree over them") {
  GpuSpec gpu = round_gpu();
  gpu.node.gpus_per_node = 4;
  gpu.node.fabric = Fabric::kNvlDomain;
  gpu.node.fabric_domain = 64;
  gpu.node.switch_reduces = false;
  NcclParameters p;
  p = {.launch_us = 5,
       .step_us = 1,
       .ll_fraction = 1,
       .ll128_us = 100,
       .ll128_step_us = 0,
       .ll128_fraction = 1,
       .simple_us = 100,
       .simple_step_us = 0,
       .simple_fraction = 1,
       .own_copy = 0};
  const auto us = [&](Collective kind, int gpus) {
    return nccl_time(kind, Bytes{1.0}, {.gpus = gpus, .gpus_per_node = std::min(gpus, 64)}, p, gpu).in(kMicrosecond);
  };
  CHECK(us(Collective::kAllReduce, 4) == doctest::Approx(5 + 2 * 3).epsilon(1e-3));         // one node: a ring of four
  CHECK(us(Collective::kAllReduce, 64) == doctest::Approx(5 + 2 * (3 + 4)).epsilon(1e-3));  // a tree over 16 nodes
  CHECK(us(Collective::kAllGather, 64) == doctest::Approx(5 + 3 + 4).epsilon(1e-3));
}

TEST_CASE("collectives: never faster than the wire, and better links never slower, over random fabrics") {
  std::mt19937 random(5);
  const auto pick = [&](double low, double high) {
    return low * std::pow(high / low, std::uniform_real_distribution<double>(0.0, 1.0)(random));
  };
  const Efficiency priors;
  for (int i = 0; i < 400; ++i) {
    GpuSpec gpu = round_gpu();
    gpu.node.switch_reduces = i % 4 == 0;
    gpu.node.fabric_bandwidth = BytesPerSecond(pick(50e9, 2e12));
    gpu.node.nic_bandwidth = BytesPerSecond(std::min(pick(5e9, 200e9), gpu.node.fabric_bandwidth.base() / 8));
    if (i % 3 == 0) gpu.node.fabric = Fabric::kXgmiMesh, gpu.node.switch_reduces = false;
    const Collective kind = kAll[i % 5];
    const int gpus = kind == Collective::kSend ? 2 : 1 << (1 + i % 8);
    const Bytes bytes(pick(1e2, 1e9));
    const auto on = [&](const GpuSpec& which, Fidelity fidelity = Fidelity::kCalibrated) {
      const Group group{.gpus = gpus, .gpus_per_node = std::min(gpus, which.node.fabric_domain)};
      return collective(kind, bytes, group, {.gpu = &which, .efficiency = &priors, .fidelity = fidelity}).time;
    };
    const Seconds now = on(gpu);
    CAPTURE(i);
    // A switch that adds sends a message once where the ring of the ideal sends it twice.
    CHECK(now >= on(gpu, Fidelity::kIdeal) * (gpu.node.switch_reduces && kind == Collective::kAllReduce ? 0.5 : 1.0));
    GpuSpec better = gpu;
    better.node.fabric_bandwidth *= 1.5;
    CHECK(on(better) <= now);
    better = gpu;
    better.node.nic_bandwidth *= 1.5;
    CHECK(on(better) <= now);
    GpuSpec below = gpu;  // a network of leaves
    below.node.leaf_gpus = 8 << (i % 4);
    CHECK(on(below) == now);
    below.node.oversubscription = pick(1.0, 16.0);
    CHECK(on(below) >= now);
    better = below;
    better.node.oversubscription = 1.0 + 0.5 * (below.node.oversubscription - 1.0);
    CHECK(on(better) <= on(below));
    better = below;
    better.node.leaf_gpus *= 2;
    CHECK(on(better) <= on(below));
    if (gpu.node.fabric == Fabric::kXgmiMesh) continue;
    better = gpu;  // a rack in place of nodes with a network between them
    better.node.fabric = Fabric::kNvlDomain;
    better.node.fabric_domain = 256;
    CHECK(on(better) <= now);
    better.node.gpus_per_node = 4;
    CHECK(on(better) <= now);
  }
}

TEST_CASE("collectives: shipped racks are never slower than nodes over a network, pairs never faster than their link") {
  const auto shipped = [](const char* name) {
    return load_gpu(load_named("hardware", name, SourceLocation{"test", 1, 1}), "vllm");
  };
  const CalibratedGpu rack = shipped("gb200"), nodes = shipped("b200-sxm"), pair = shipped("mi300x");
  for (const int gpus : {2, 4, 8, 16, 32, 64}) {
    for (double bytes = 1e3; bytes < 1e9; bytes *= 10) {
      const auto time = [&](const CalibratedGpu& on) {
        return collective(Collective::kAllReduce, Bytes{bytes},
                          {.gpus = gpus, .gpus_per_node = std::min(gpus, on.spec.node.fabric_domain)},
                          {.gpu = &on.spec, .efficiency = &on.efficiency})
            .time;
      };
      CHECK(time(rack).base() <= time(nodes).base() * (1.0 + 1e-9));
      if (gpus == 2) CHECK(time(pair).base() >= bytes / 64e9);  // one of seven links
    }
  }
}

TEST_CASE("collectives: bridged cards of one node reach each other over PCIe, those of two over the network") {
  GpuSpec gpu = round_gpu();
  gpu.node.fabric = Fabric::kNvlinkMesh;
  gpu.node.switch_reduces = false;
  gpu.node.fabric_domain = 2;
  gpu.node.pcie_bandwidth = 50.0 * kGigabytePerSecond;
  // A ring of 8 moves 2 x 7/8 of 8 MB past each border, which both cards of a pair share: 7 MB at 50 GB/s.
  CHECK(ideal_us(Collective::kAllReduce, 8e6, 8, 2, gpu) == doctest::Approx(140.0));
  gpu.node.nic_bandwidth *= 2.0;  // not on the way
  CHECK(ideal_us(Collective::kAllReduce, 8e6, 8, 2, gpu) == doctest::Approx(140.0));
  const double two_nodes = ideal_us(Collective::kAllReduce, 8e6, 16, 2, gpu);
  gpu.node.nic_bandwidth *= 2.0;
  CHECK(ideal_us(Collective::kAllReduce, 8e6, 16, 2, gpu) < two_nodes);
}

TEST_CASE("collectives: without peer-to-peer every byte passes the host, whose share falls with the ranks") {
  const CalibratedGpu reach = load_gpu(load_named("hardware", "l40s", {}), "vllm");
  CalibratedGpu apart = reach;
  apart.spec.node.peer_to_peer = false;
  for (const int gpus : {4, 8}) {
    const auto time = [&](const CalibratedGpu& on) {
      const Machine machine{.gpu = &on.spec, .efficiency = &on.efficiency};
      return collective(Collective::kAllReduce, Bytes(1e9), Group{gpus, gpus}, machine).time.base();
    };
    CHECK(time(apart) > 1.5 * time(reach));
    // Twice what a ring passes, less its own part, at 18 GB/s for all.
    CHECK(time(apart) >= 2.0 * (gpus - 1) / gpus * 1e9 / (18e9 / gpus));
  }
}

TEST_CASE("collectives: a larger node, a larger switch and more ranks in it are not slower, or faster, than less") {
  const CalibratedGpu base = load_gpu(load_named("hardware", "b200-sxm", SourceLocation{"test", 1, 1}), "vllm");
  const auto time = [&](int gpus, int node, int domain, double bytes) {
    GpuSpec gpu = base.spec;
    gpu.node.gpus_per_node = node;
    gpu.node.fabric_domain = domain;
    gpu.node.fabric = domain > node ? Fabric::kNvlDomain : Fabric::kNvSwitch;
    return nccl(Collective::kAllReduce, Bytes{bytes}, {.gpus = gpus, .gpus_per_node = std::min(gpus, domain)},
                {.gpu = &gpu, .efficiency = &base.efficiency})
        .time.base();
  };
  for (const double bytes : {1e4, 1e6, 1e8}) {
    CAPTURE(bytes);
    for (const int gpus : {4, 8, 16, 32, 64}) {
      CAPTURE(gpus);
      double before = time(gpus, 8, 8, bytes);  // nodes of eight over a network
      for (const int domain : {16, 32, 64}) {
        const double now = time(gpus, domain, domain, bytes);
        CHECK(now <= before * 1.000001);
        before = now;
        // Eight, or all, in a node are no farther apart than trays of four.
        for (const int node : {8, domain})
          CHECK(time(gpus, node, domain, bytes) <= time(gpus, 4, domain, bytes) * 1.000001);
      }
      if (gpus > 4) CHECK(time(gpus, 64, 64, bytes) >= time(gpus / 2, 64, 64, bytes));
    }
  }
}
