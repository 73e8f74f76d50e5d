#include "hw/kernels/state.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "hw/efficiency.h"
#include "hw/gpu_spec.h"
#include "hw/kernels/l2.h"

namespace roofcast {
namespace {

constexpr double kActivationBytes = 2.0;  ///< 16-bit activations
constexpr double kStripTokens = 512.0;    ///< tokens that a block of the convolution takes at a time

/// (x^4 + y^4)^(1/4): the larger, a little more where they are alike and the hardware cannot hide one in the other.
double smooth_max(double x, double y) {
  const double large = std::max(x, y), small = std::min(x, y);
  if (large <= 0.0) return 0.0;
  const double r = small / large;
  return large * std::sqrt(std::sqrt(1.0 + r * r * r * r));
}

double state_elements(const StateMixer& m) { return m.heads * m.key_dim * m.value_dim; }

/// Read and written once: queries, keys, values, outputs; in Mamba the groups' C and B, x and y.
double token_bytes(const StateMixer& m) {
  return kActivationBytes * (2.0 * m.key_heads * m.key_dim + 2.0 * m.heads * m.value_dim);
}

/// Of a token in the recurrent form, a multiply and an add an element: decay and write k v^T, read S q; the delta
/// rule also reads S k.
double flops_per_token(const StateMixer& m) {
  const double passes = m.has_delta_rule() ? 6.0 : 4.0;
  return passes * state_elements(m);
}

/// Work of one chunk of one head relative to that of the measured kernel, 64 tokens of a 128 x 128 state:
/// products inside the chunk, C^2 (Dk + Dv), and with the state, 2 C Dk Dv.
double chunk_work(const StateMixer& m, double chunk) {
  const auto work = [](double c, double k, double v) { return c * c * (k + v) + 2.0 * c * k * v; };
  return work(chunk, m.key_dim, m.value_dim) / work(64.0, 128.0, 128.0);
}

/// Scans by channel have no matrix products: exponentials and the like for each (token, channel, state), at about 1.7
/// GHz. Mamba-1 has one; RG-LRU two sigmoids, an exponential and a root (De et al. 2024, arXiv:2402.19427,
/// section 2.4); RWKV-4 four for its three values a channel (Peng et al. 2023, arXiv:2305.13048, appendix D).
constexpr double kExponentialClock = 1.7e9;
double special_functions(const StateMixer& m) {
  if (m.kind == StateMixer::Kind::kRgLru) return 4.0;
  return m.kind == StateMixer::Kind::kRwkv4 ? 4.0 / 3.0 : 1.0;
}

Cost sum(Cost a, const Cost& b) {
  if (b.time > a.time) a.bound = b.bound;
  a.time += b.time;
  a.flops += b.flops;
  a.bytes += b.bytes;
  return a;
}

Bytes convolution_bytes(double batch, double tokens, const StateMixer& m) {
  const double state = 2.0 * (m.conv_width - 1.0) * kActivationBytes;  // read and written a channel
  return Bytes{batch * m.conv_channels * (2.0 * kActivationBytes * tokens + state)};
}

Flops convolution_flops(double batch, double tokens, const StateMixer& m) {
  return Flops{2.0 * batch * tokens * m.conv_channels * m.conv_width};
}

Bytes recurrence_bytes(double batch, double tokens, const StateMixer& m) {
  return Bytes{batch * (tokens * token_bytes(m) + 2.0 * state_elements(m) * bytes_per_element(m.state))};
}

Cost mixing_cost(double batch, double tokens, const StateMixer& m, Seconds time, const GpuSpec& gpu) {
  const Flops flops{batch * tokens * flops_per_token(m)};
  Cost cost = roofline(flops, recurrence_bytes(batch, tokens, m), gpu.peak(Dtype::kBf16), gpu.memory_bandwidth);
  if (time.base() > 0.0) {
    if (cost.time < time * 0.3) cost.bound = Bound::kLatency;
    cost.time = time;
  }
  return cost;
}

Cost convolution_cost(double batch, double tokens, const StateMixer& m, Seconds time, const GpuSpec& gpu) {
  const Bytes bytes = convolution_bytes(batch, tokens, m);
  const Seconds ideal = bytes / gpu.memory_bandwidth;
  return {.time = time.base() > 0.0 ? time : ideal,
          .flops = convolution_flops(batch, tokens, m),
          .bytes = bytes,
          .bound = time.base() > 0.0 && ideal < time * 0.3 ? Bound::kLatency : Bound::kMemory};
}

void check(double batch, const StateMixer& m) {
  const bool recurrent = m.key_dim >= 1.0 && m.value_dim >= 1.0;
  const bool convolves = m.kind == StateMixer::Kind::kConvolution && m.conv_channels >= 1.0;
  SIM_CHECK(batch >= 0.0 && m.heads >= 1.0 && (recurrent || convolves), "a state mixer without a state");
}

}  // namespace

std::span<const Parameter<ConvolutionParameters>> ConvolutionParameters::fields() {
  using P = ConvolutionParameters;
  using enum Transfer;
  static constexpr std::array<Parameter<P>, 10> fields{{
      {"launch_us", &P::launch_us, 0.5, 30.0, kCycles, "launch over a prompt"},
      {"ramp_us", &P::ramp_us, 0.0, 10.0, kCycles, "filling the window, up to eight tokens"},
      {"strip_start_us", &P::strip_start_us, 0.0, 10.0, kCycles, "a block's start, one (sequence, channel) a block"},
      {"strip_us", &P::strip_us, 0.0, 10.0, kCycles, "512 tokens of a block, one strip after another"},
      {"strips_per_sm", &P::strips_per_sm, 1.0, 64.0, kKept, "blocks that an SM runs at once"},
      {"issue_ns_per_kb", &P::issue_ns_per_kb, 0.0, 500.0, kCycles, "what an SM takes to load and store 1000 bytes"},
      {"bandwidth_fraction", &P::bandwidth_fraction, 0.1, 1.0, kMemoryShare,
       "share of the memory bandwidth over a prompt"},
      {"decode_launch_us", &P::decode_launch_us, 0.5, 30.0, kCycles, "launch in decode"},
      {"decode_ns_per_channel", &P::decode_ns_per_channel, 0.0, 10.0, kCycles,
       "what an SM takes for a channel in decode"},
      {"decode_bandwidth_fraction", &P::decode_bandwidth_fraction, 0.1, 1.0, kMemoryShare,
       "share of the memory bandwidth in decode"},
  }};
  return fields;
}

std::span<const Parameter<StateParameters>> StateParameters::fields() {
  using P = StateParameters;
  using enum Transfer;
  static constexpr std::array<Parameter<P>, 10> fields{{
      {"prefill_launch_us", &P::prefill_launch_us, 0.5, 60.0, kCycles, "launches over a prompt"},
      {"serial_us", &P::serial_us, 0.0, 10.0, kCycles, "a chunk of the pass that hands the state on"},
      {"start_us", &P::start_us, 0.0, 60.0, kCycles, "a block's start, one (sequence, head) a block"},
      {"chunk_us", &P::chunk_us, 0.0, 20.0, kCycles, "a chunk of 64 tokens of a block, one after another"},
      {"chunk_sm_us", &P::chunk_sm_us, 0.0, 50.0, kCycles, "what an SM takes for a chunk worked off in parallel"},
      {"intermediate_passes", &P::intermediate_passes, 0.0, 20.0, kKept,
       "times keys and values go through memory between kernels"},
      {"prefill_bandwidth_fraction", &P::prefill_bandwidth_fraction, 0.1, 1.0, kMemoryShare,
       "share of the memory bandwidth"},
      {"decode_launch_us", &P::decode_launch_us, 0.5, 30.0, kCycles, "launch in decode"},
      {"decode_bandwidth_fraction", &P::decode_bandwidth_fraction, 0.1, 1.0, kMemoryShare,
       "share of the memory bandwidth in decode"},
      {"decode_state_share", &P::decode_state_share, 0.5, 1.0, kKept,
       "share of the state's reads and writes that reach memory"},
  }};
  return fields;
}

/// b = 4 L C + 12 C bytes a sequence (four taps, 16 bit). Blocks of one (sequence, channel) walk over the prompt in
/// strips of 512 tokens, some to an SM; or blocks are many and short, and what an SM can issue limits them:
///   time = launch + ramp min(L, 8)/8 + smooth_max(waves (start + ceil(L/512) strip) + b issue / SMs, b / bandwidth)
/// Source: docs/equations-state.md.
Seconds convolution_prefill_time(double batch, double query_len, double channels, const ConvolutionParameters& p,
                                 const GpuSpec& gpu) {
  const double sms = gpu.sm_count;
  const double bytes = batch * channels * (4.0 * query_len + 12.0);
  const double waves = std::max(1.0, batch * channels / (sms * p.strips_per_sm));
  const double strips = p.strip_start_us + std::ceil(query_len / kStripTokens) * p.strip_us;
  const double issue = bytes * p.issue_ns_per_kb * 1e-12 / sms;
  const double rate = rate_with_l2(gpu, Bytes{bytes}, gpu.memory_bandwidth.base() * p.bandwidth_fraction);
  return Seconds{1e-6 * (p.launch_us + p.ramp_us * std::min(query_len, 8.0) / 8.0) +
                 smooth_max(1e-6 * waves * strips + issue, bytes / rate)};
}

/// 16 bytes a channel: the window of three read and written, the token and the output.
Seconds convolution_decode_time(double batch, double channels, const ConvolutionParameters& p, const GpuSpec& gpu) {
  const double bytes = 16.0 * batch * channels;
  const double rate = rate_with_l2(gpu, Bytes{bytes}, gpu.memory_bandwidth.base() * p.decode_bandwidth_fraction);
  const double issue = 1e-9 * batch * channels * p.decode_ns_per_channel / gpu.sm_count;
  return Seconds{1e-6 * p.decode_launch_us + smooth_max(issue, bytes / rate)};
}

/// n = ceil(L / 64) chunks of each (sequence, head), whose states follow one another.
///   fused:    a block walks through its chunks;  waves (start + n chunk), beside the traffic
///   unfused:  chunks in parallel, then a short serial pass; keys and values cross memory between the kernels
/// waves = ceil(B H / SMs), or B H / SMs + 1/2 once there are many.
///   time = launch + n serial + smooth_max(waves (start + n chunk), bytes / bandwidth) + B H n chunk_sm / SMs
/// An engine has one of the two; the other's constants are then 0. Source: docs/equations-state.md.
Seconds scan_prefill_time(double batch, double query_len, const StateMixer& m, const StateParameters& p,
                          const GpuSpec& gpu) {
  constexpr double kChunk = 64.0;
  const double bandwidth = gpu.memory_bandwidth.base() * p.prefill_bandwidth_fraction;
  const double bytes = recurrence_bytes(batch, query_len, m).base();
  if (m.by_channel()) {
    const double rate = gpu.exponentials_per_clock * kExponentialClock * gpu.sm_count;
    const double exponentials = batch * query_len * state_elements(m) * special_functions(m) / rate;
    return Seconds{1e-6 * p.prefill_launch_us + smooth_max(exponentials, bytes / bandwidth)};
  }
  const double work = chunk_work(m, kChunk), chunks = std::ceil(query_len / kChunk);
  const double per_sm = batch * m.heads / gpu.sm_count;
  const double waves = std::max(1.0, per_sm < 6.0 ? std::ceil(per_sm) : per_sm + 0.5);
  const double between =
      p.intermediate_passes * batch * query_len * m.heads * 2.0 * kActivationBytes * (m.key_dim + m.value_dim);
  const double fused = 1e-6 * waves * (p.start_us + chunks * work * p.chunk_us);
  const double serial = 1e-6 * chunks * work * p.serial_us;
  const double parallel = 1e-6 * batch * m.heads * chunks * work * p.chunk_sm_us / gpu.sm_count;
  return Seconds{1e-6 * p.prefill_launch_us + serial + smooth_max(fused, (bytes + between) / bandwidth) + parallel};
}

/// The state is read and written once. In a benchmark's loop part of it may still be in L2; behind other layers' it is
/// not, and crosses memory whole.
Seconds recurrence_decode_time(double batch, const StateMixer& m, const StateParameters& p, const GpuSpec& gpu,
                               Timing timing) {
  const double bytes = batch * (2.0 * state_elements(m) * bytes_per_element(m.state) * p.decode_state_share);
  double rate = gpu.memory_bandwidth.base() * p.decode_bandwidth_fraction;
  if (timing == Timing::kBenchmark) rate = rate_with_l2(gpu, Bytes{bytes}, rate);
  const Seconds time{1e-6 * p.decode_launch_us + bytes / rate};
  return timing != Timing::kBenchmark ? std::max(time, recurrence_bytes(batch, 1.0, m) / gpu.memory_bandwidth) : time;
}

ConvolutionParameters convolution_prior(KernelFamily family) {
  ConvolutionParameters prior;
  if (family == KernelFamily::kTrtllm) {
    prior.ramp_us = 0.0;
  } else {
    prior.strip_start_us = prior.strip_us = 0.0;
    prior.issue_ns_per_kb = 47.0;
  }
  return prior;
}

const KernelOf<StateParameters>& state_kernel() {
  static const KernelOf<StateParameters> kernel(
      {"state", "the recurrence of state-space and linear mixers", "equations-state.md", {0.1, 0.4, 0.0}});
  return kernel;
}
const KernelOf<ConvolutionParameters>& convolution_kernel() {
  static const KernelOf<ConvolutionParameters> kernel(
      {"convolution", "the causal convolution before a mixer", "equations-state.md", {0.1, 0.27, 0.0}});
  return kernel;
}
const KernelOf<ConvolutionParameters>& mamba_convolution_kernel() {
  static const KernelOf<ConvolutionParameters> kernel({"mamba_convolution",
                                                       "the causal convolution before a mixer of Mamba-2",
                                                       "equations-state.md",
                                                       {0.1, 0.27, 0.0}});
  return kernel;
}

const ConvolutionParameters& convolution_parameters(StateMixer::Kind kind, const Efficiency* efficiency) {
  static const ConvolutionParameters none, trtllm = convolution_prior(KernelFamily::kTrtllm),
                                           vllm = convolution_prior(KernelFamily::kVllm);
  if (!efficiency) return none;
  const bool mamba = kind == StateMixer::Kind::kMamba1 || kind == StateMixer::Kind::kMamba2;
  if (const auto* own = mamba ? efficiency->find(mamba_convolution_kernel(), Dtype::kBf16) : nullptr) return own->value;
  const auto* fitted = efficiency->find(convolution_kernel(), Dtype::kBf16);
  if (fitted) return fitted->value;
  return efficiency->family() == KernelFamily::kTrtllm ? trtllm : vllm;
}

const StateParameters& state_parameters(const Efficiency* efficiency) {
  static const StateParameters priors;
  const auto* fitted = efficiency ? efficiency->find(state_kernel(), Dtype::kBf16) : nullptr;
  return fitted ? fitted->value : priors;
}

Bytes state_bytes(const StateMixer& m) {
  return Bytes{state_elements(m) * bytes_per_element(m.state) +
               (m.conv_width - 1.0) * m.conv_channels * kActivationBytes};
}

Cost state_prefill(double batch, double query_len, const StateMixer& m, const Machine& machine) {
  check(batch, m);
  if (batch == 0.0 || query_len <= 0.0) return {};
  const GpuSpec& gpu = *machine.gpu;
  const bool real = machine.fidelity == Fidelity::kCalibrated;
  Cost cost;
  if (m.kind != StateMixer::Kind::kConvolution) {
    const Seconds scan =
        real ? scan_prefill_time(batch, query_len, m, state_parameters(machine.efficiency), gpu) : Seconds{};
    cost = mixing_cost(batch, query_len, m, scan, gpu);
  }
  if (m.conv_channels <= 0.0) return cost;
  const Seconds convolution = real ? convolution_prefill_time(batch, query_len, m.conv_channels,
                                                              convolution_parameters(m.kind, machine.efficiency), gpu)
                                   : Seconds{};
  return sum(cost, convolution_cost(batch, query_len, m, convolution, gpu));
}

Cost state_decode(double batch, const StateMixer& m, const Machine& machine) {
  check(batch, m);
  if (batch == 0.0) return {};
  const GpuSpec& gpu = *machine.gpu;
  const bool real = machine.fidelity == Fidelity::kCalibrated;
  Cost cost;
  if (m.kind != StateMixer::Kind::kConvolution) {
    const Seconds update =
        real ? recurrence_decode_time(batch, m, state_parameters(machine.efficiency), gpu, machine.timing) : Seconds{};
    cost = mixing_cost(batch, 1.0, m, update, gpu);
  }
  if (m.conv_channels <= 0.0) return cost;
  const Seconds convolution =
      real ? convolution_decode_time(batch, m.conv_channels, convolution_parameters(m.kind, machine.efficiency), gpu)
           : Seconds{};
  return sum(cost, convolution_cost(batch, 1.0, m, convolution, gpu));
}

}  // namespace roofcast
