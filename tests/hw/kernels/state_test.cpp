#include "hw/kernels/state/state_kernel.h"

#include <doctest/doctest.h>

#include <cmath>

#include "hw/efficiency.h"
#include "hw/gpu_spec.h"

using namespace roofcast;

namespace {

GpuSpec round_gpu() {
  GpuSpec gpu;
  gpu.sm_count = 100;
  gpu.memory_bandwidth = 2000.0 * kGigabytePerSecond;
  gpu.l2_cache = Bytes{50e6};
  gpu.dense[static_cast<std::size_t>(Dtype::kBf16)] = 1000.0 * kTeraflopPerSecond;
  return gpu;
}

/// 32 value heads and 16 key heads of 128: as in Qwen3-Next.
StateMixer delta() {
  return {.kind = StateMixer::Kind::kGatedDelta,
          .heads = 32,
          .key_heads = 16,
          .key_dim = 128,
          .value_dim = 128,
          .conv_channels = 8192,
          .chunk = 64};
}

}  // namespace

TEST_CASE("state: its size does not grow with the context") {
  // 32 x 128 x 128 x 4 B = 2 097 152 B, and 3 x 8192 x 2 B = 49 152 B of window
  CHECK(state_bytes(delta()).base() == 2097152.0 + 49152.0);
}

TEST_CASE("state: ideal decode reads and writes the state once") {
  const GpuSpec gpu = round_gpu();
  StateMixer mixer = delta();
  mixer.conv_channels = 0;
  const Cost cost = state_decode(8, mixer, {.gpu = &gpu, .fidelity = Fidelity::kIdeal});
  // state  = 8 x 2 x 2 097 152 B                       = 33 554 432 B
  // tokens = 8 x 2 B x (2 x 16 x 128 + 2 x 32 x 128)   = 196 608 B;  33 751 040 B at 2000 GB/s = 16.876 us
  CHECK(cost.bytes.base() == 33751040.0);
  CHECK(cost.time.in(kMicrosecond) == doctest::Approx(16.87552));
  CHECK(cost.flops.base() == 8 * 6.0 * 32 * 128 * 128);
  CHECK(cost.bound == Bound::kMemory);
}

TEST_CASE("state: decode by worked constants") {
  const GpuSpec gpu = round_gpu();
  StateParameters p;
  p.decode_launch_us = 4;
  p.decode_bandwidth_fraction = 0.5;
  p.decode_state_share = 1.0;
  // 64 x 2 x 2 097 152 B = 268 435 456 B at 1000 GB/s
  CHECK(recurrence_decode_time(64, delta(), p, gpu).in(kMicrosecond) == doctest::Approx(4 + 268.435456));
  // 4 x 2 x 2 097 152 B = 16 777 216 B: it fits L2, where other layers have evicted it
  CHECK(recurrence_decode_time(4, delta(), p, gpu).in(kMicrosecond) == doctest::Approx(4 + 16.777216));
  // A share that a benchmark kept in L2 crosses memory in a served step: 1024 x 2 x 2 097 152 B and 1024 x 24 576 B of
  // tokens at 2000 GB/s.
  p.decode_bandwidth_fraction = 1;
  p.decode_state_share = 0.7;
  CHECK(recurrence_decode_time(1024, delta(), p, gpu).in(kMicrosecond) == doctest::Approx(2147.483648 + 12.582912));
}

TEST_CASE("state: chunks of a prompt follow one another") {
  const GpuSpec gpu = round_gpu();
  StateParameters p;
  p = {.prefill_launch_us = 3,
       .serial_us = 0,
       .start_us = 5,
       .chunk_us = 2,
       .chunk_sm_us = 0,
       .intermediate_passes = 0,
       .prefill_bandwidth_fraction = 1,
       .decode_launch_us = 1,
       .decode_bandwidth_fraction = 1,
       .decode_state_share = 1};
  // one wave (32 heads, 100 SMs), 16 chunks: 3 + 5 + 16 x 2 = 40 us; the traffic, 33.4 MB in 16.7 us, hides nearly:
  const double traffic = (1024 * 2.0 * (2 * 16 * 128 + 2 * 32 * 128) + 2 * 2097152.0) / 2e12 * 1e6;
  CHECK(scan_prefill_time(1, 1024, delta(), p, gpu).in(kMicrosecond) ==
        doctest::Approx(3 + std::pow(std::pow(37.0, 4) + std::pow(traffic, 4), 0.25)));
  // four sequences: 128 heads need two waves
  CHECK(scan_prefill_time(4, 64, delta(), p, gpu).in(kMicrosecond) > 3 + 2 * 7);
  // the unfused chain: 16 serial chunks, and 32 x 16 chunks of 6 us spread over the SMs
  p = {.prefill_launch_us = 15,
       .serial_us = 1,
       .start_us = 0,
       .chunk_us = 0,
       .chunk_sm_us = 6,
       .intermediate_passes = 0,
       .prefill_bandwidth_fraction = 1,
       .decode_launch_us = 1,
       .decode_bandwidth_fraction = 1,
       .decode_state_share = 1};
  CHECK(scan_prefill_time(1, 1024, delta(), p, gpu).in(kMicrosecond) ==
        doctest::Approx(15 + 16 + 32 * 16 * 6 / 100.0 + traffic));
}

TEST_CASE("state: Mamba-1 waits for its exponentials") {
  GpuSpec gpu = round_gpu();
  const StateMixer mamba{
      .kind = StateMixer::Kind::kMamba1, .heads = 8192, .key_heads = 1, .key_dim = 16, .value_dim = 1};
  StateParameters p;
  p.prefill_launch_us = 0, p.prefill_bandwidth_fraction = 1;
  const auto time = [&] { return scan_prefill_time(1, 4096, mamba, p, gpu).in(kMicrosecond); };
  // 4096 x 8192 x 16 exponentials at 16 a clock and SM: 197.4 us, and 135 MB of memory traffic: 67.4 us
  CHECK(time() == doctest::Approx(197.4).epsilon(0.01));
  gpu.exponentials_per_clock = 32;
  CHECK(time() == doctest::Approx(std::pow(std::pow(98.7, 4) + std::pow(67.4, 4), 0.25)).epsilon(0.01));
}

TEST_CASE("state: the convolution by worked constants") {
  const GpuSpec gpu = round_gpu();
  ConvolutionParameters p;
  p = {.launch_us = 2,
       .ramp_us = 1,
       .strip_start_us = 0,
       .strip_us = 0,
       .strips_per_sm = 16,
       .issue_ns_per_kb = 50,
       .bandwidth_fraction = 1,
       .decode_launch_us = 2,
       .decode_ns_per_channel = 0,
       .decode_bandwidth_fraction = 0.5};
  // b = 8192 x (4 x 4096 + 12) = 134 316 032 B: 67.2 us of issue (50 ns/kB over 100 SMs), 67.2 us of memory
  const double b = 8192.0 * (4 * 4096 + 12);
  const double issue = b * 50e-12 / 100 * 1e6, memory = b / 2e12 * 1e6;
  CHECK(convolution_prefill_time(1, 4096, 8192, p, gpu).in(kMicrosecond) ==
        doctest::Approx(3 + std::pow(std::pow(issue, 4) + std::pow(memory, 4), 0.25)));
  // 256 x 8192 x 16 B = 33.6 MB, in L2: 4800 GB/s
  CHECK(convolution_decode_time(256, 8192, p, gpu).in(kMicrosecond) ==
        doctest::Approx(2 + 256 * 8192 * 16 / 4800e9 * 1e6));
}

TEST_CASE("state: every kind grows with batch and length, and bandwidth helps") {
  const GpuSpec gpu = round_gpu();
  GpuSpec faster = gpu;
  faster.memory_bandwidth *= 2.0;
  const Efficiency priors;
  const Machine machine{.gpu = &gpu, .efficiency = &priors}, better{.gpu = &faster, .efficiency = &priors};
  for (const auto kind : {StateMixer::Kind::kMamba1, StateMixer::Kind::kMamba2, StateMixer::Kind::kGatedDelta,
                          StateMixer::Kind::kLightning, StateMixer::Kind::kConvolution}) {
    StateMixer mixer = delta();
    mixer.kind = kind;
    if (kind == StateMixer::Kind::kMamba1) {
      mixer.heads = 5120;
      mixer.key_heads = 1;
      mixer.key_dim = 16;
      mixer.value_dim = 1;
    }
    if (kind == StateMixer::Kind::kConvolution) {
      mixer.key_dim = mixer.value_dim = 0;
      // 2 x 8 tokens, a multiply and an add a tap
      CHECK(state_prefill(2, 8, mixer, machine).flops.base() == 2 * 16 * mixer.conv_channels * mixer.conv_width);
      CHECK(state_bytes(mixer) == Bytes(2 * (mixer.conv_width - 1) * mixer.conv_channels));
    }
    Seconds before{};
    for (double n = 1; n < 3e5; n *= 3) {
      const Seconds prompt = state_prefill(2, n, mixer, machine).time;
      CHECK(prompt >= before);
      CHECK(state_prefill(2, n, mixer, better).time <= prompt);
      CHECK(state_prefill(2, n, mixer, {.gpu = &gpu, .fidelity = Fidelity::kIdeal}).time < prompt);
      before = prompt;
    }
    CHECK(state_decode(64, mixer, machine).time > state_decode(1, mixer, machine).time);
    CHECK(state_decode(64, mixer, better).time <= state_decode(64, mixer, machine).time);
    CHECK(state_decode(0, mixer, machine).time == Seconds{});
  }
}
