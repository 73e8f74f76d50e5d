#include "hw/kernels/state.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/choice.h"
#include "base/error.h"
#include "hw/efficiency.h"
#include "hw/gpu_spec.h"
#include "hw/kernel_rules.h"
#include "hw/kernels/l2.h"
#include "hw/kernels/state/state_kernel.h"

namespace roofcast {
namespace {

constexpr double kActivationBytes = 2.0;  ///< 16-bit activations
constexpr double kStripTokens = 512.0;    ///< tokens that a block of the convolution processes at a time

/// (x^4 + y^4)^(1/4): about the larger one, and more if both are similar and cannot fully overlap.
double smooth_max(double x, double y) {
  const double large = std::max(x, y), small = std::min(x, y);
  if (large <= 0.0) return 0.0;
  const double r = small / large;
  return large * std::sqrt(std::sqrt(1.0 + r * r * r * r));
}

double state_elements(const StateMixer& m) { return m.heads * m.key_dim * m.value_dim; }

/// Values read or written once per token: queries, keys, values, outputs; in Mamba, C and B of the groups, x and y.
double token_bytes(const StateMixer& m) {
  return kActivationBytes * (2.0 * m.key_heads * m.key_dim + 2.0 * m.heads * m.value_dim);
}

/// FLOPs per token in the recurrent form, with a multiply and an add per element: decay and write k v^T, read S q; the
/// delta rule also reads S k. S4's states are complex, two values each: a x + b u takes 6 + 2 + 2 FLOPs, Re(c x) 4,
/// hence 7 per value.
double flops_per_token(const StateMixer& m) {
  const double passes = m.kind == StateMixer::Kind::kS4 ? 7.0 : m.has_delta_rule() ? 6.0 : 4.0;
  return passes * state_elements(m);
}

/// Work of one chunk of one head relative to that of the measured kernel, which has 64 tokens and a 128 x 128 state:
/// GEMMs within the chunk, C^2 (Dk + Dv), and with the state, 2 C Dk Dv.
double chunk_work(const StateMixer& m, double chunk) {
  const auto work = [](double c, double k, double v) { return c * c * (k + v) + 2.0 * c * k * v; };
  return work(chunk, m.key_dim, m.value_dim) / work(64.0, 128.0, 128.0);
}

/// Special functions per (token, channel, state). Scans by channel have no GEMMs; their time is that of exponentials
/// and similar functions, at about 1.7 GHz. Mamba-1 has one; RG-LRU two sigmoids, an exponential and a root (De et al.
/// 2024, arXiv:2402.19427, section 2.4); RWKV-4 four for its three values per channel (Peng et al. 2023,
/// arXiv:2305.13048, appendix D). S4 has none, but a step of its recurrence; the FFT convolutions that it may use in
/// prefill are not modelled.
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
  const double state = 2.0 * (m.conv_width - 1.0) * kActivationBytes;  // read and written, per channel
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

CallTraits traits_of(const StateMixer& mixer, const GpuSpec& gpu) {
  CallTraits traits(gpu);
  traits.mixer = mixer.kind;
  return traits;
}

ConvolutionParameters convolution_parameters(const StateMixer& m, const Machine& machine) {
  const Efficiency& e = efficiency_of(machine);
  const ConvolutionKernel& kernel = convolution_kernel(m, *machine.gpu, e.rules());
  return kernel.parameters(e.constants(kernel, Dtype::kBf16, *machine.gpu));
}

StateParameters state_parameters(const StateMixer& m, const Machine& machine) {
  const Efficiency& e = efficiency_of(machine);
  const StateKernel& kernel = state_kernel(m, *machine.gpu, e.rules());
  return kernel.parameters(e.constants(kernel, Dtype::kBf16, *machine.gpu));
}

void check(double batch, const StateMixer& m) {
  const bool recurrent = m.key_dim >= 1.0 && m.value_dim >= 1.0;
  const bool convolves = m.kind == StateMixer::Kind::kConvolution && m.conv_channels >= 1.0;
  SIM_CHECK(batch >= 0.0 && m.heads >= 1.0 && (recurrent || convolves), "a state mixer without a state");
}

}  // namespace

StateMixer::Kind parse_state_mixer(std::string_view name, const SourceLocation& location) {
  static constexpr std::array<std::string_view, 10> kNames{
      "mamba1", "mamba2", "gated_delta", "lightning", "convolution", "rg_lru", "rwkv4", "rwkv6", "rwkv7", "s4"};
  static_assert(kNames.size() == static_cast<std::size_t>(StateMixer::Kind::kS4) + 1);
  return static_cast<StateMixer::Kind>(choice_of("mixer", name, kNames, location));
}

const ConvolutionKernel& convolution_kernel(const StateMixer& mixer, const GpuSpec& gpu, const KernelRules& rules) {
  return static_cast<const ConvolutionKernel&>(rules.pick(KernelKind::kConvolution, traits_of(mixer, gpu)));
}

const StateKernel& state_kernel(const StateMixer& mixer, const GpuSpec& gpu, const KernelRules& rules) {
  return static_cast<const StateKernel&>(rules.pick(KernelKind::kState, traits_of(mixer, gpu)));
}

/// b = 4 L C + 12 C bytes per sequence (four taps, 16 bit). Either a block per (sequence, channel) loops over the
/// prompt in strips of 512 tokens, with several blocks per SM; or there are many short blocks, limited by the issue
/// rate of SMs:
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

/// 16 bytes per channel: the window of three values read and written, the token, and the output.
Seconds convolution_decode_time(double batch, double channels, const ConvolutionParameters& p, const GpuSpec& gpu) {
  const double bytes = 16.0 * batch * channels;
  const double rate = rate_with_l2(gpu, Bytes{bytes}, gpu.memory_bandwidth.base() * p.decode_bandwidth_fraction);
  const double issue = 1e-9 * batch * channels * p.decode_ns_per_channel / gpu.sm_count;
  return Seconds{1e-6 * p.decode_launch_us + smooth_max(issue, bytes / rate)};
}

/// n = ceil(L / 64) chunks per (sequence, head), whose states depend on each other in sequence.
///   fused:    a block loops over its chunks;  waves (start + n chunk), overlapping with the traffic
///   unfused:  chunks in parallel, then a short serial pass; keys and values go through memory between the kernels
/// waves = ceil(B H / SMs), or B H / SMs + 1/2 if there are many.
///   time = launch + n serial + smooth_max(waves (start + n chunk), bytes / bandwidth) + B H n chunk_sm / SMs
/// An engine has one of the two; the constants of the other are then 0. Source: docs/equations-state.md.
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

Bytes decode_state_traffic(double batch, const StateMixer& m, const StateParameters& p) {
  return Bytes{batch * (2.0 * state_elements(m) * bytes_per_element(m.state) * p.decode_state_share)};
}

/// The state is read and written once, and always from memory, because other layers' states evicted it from L2.
Seconds recurrence_decode_time(double batch, const StateMixer& m, const StateParameters& p, const GpuSpec& gpu) {
  const double bytes = decode_state_traffic(batch, m, p).base();
  const double rate = gpu.memory_bandwidth.base() * p.decode_bandwidth_fraction;
  const Seconds time{1e-6 * p.decode_launch_us + bytes / rate};
  return std::max(time, recurrence_bytes(batch, 1.0, m) / gpu.memory_bandwidth);
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
    const Seconds scan = real ? scan_prefill_time(batch, query_len, m, state_parameters(m, machine), gpu) : Seconds{};
    cost = mixing_cost(batch, query_len, m, scan, gpu);
  }
  if (m.conv_channels <= 0.0) return cost;
  const Seconds convolution =
      real ? convolution_prefill_time(batch, query_len, m.conv_channels, convolution_parameters(m, machine), gpu)
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
    const Seconds update = real ? recurrence_decode_time(batch, m, state_parameters(m, machine), gpu) : Seconds{};
    cost = mixing_cost(batch, 1.0, m, update, gpu);
  }
  if (m.conv_channels <= 0.0) return cost;
  const Seconds convolution =
      real ? convolution_decode_time(batch, m.conv_channels, convolution_parameters(m, machine), gpu) : Seconds{};
  return sum(cost, convolution_cost(batch, 1.0, m, convolution, gpu));
}

}  // namespace roofcast
