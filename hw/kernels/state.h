#pragma once
// Mixers with a constant state a sequence: S4, Mamba-1, Mamba-2, gated delta net, lightning attention, short
// convolutions, RG-LRU, RWKV.

#include <span>

#include "hw/cost.h"
#include "hw/dtype.h"
#include "hw/kernel_of.h"

namespace roofcast {

enum class KernelFamily;

/// The recurrent state is heads x key_dim x value_dim values; the convolution keeps conv_width - 1
/// values of conv_channels. A short convolution has nothing else: key_dim and value_dim are 0.
struct StateMixer {
  enum class Kind { kMamba1, kMamba2, kGatedDelta, kLightning, kConvolution, kRgLru, kRwkv4, kRwkv6, kRwkv7, kS4 };
  Kind kind = Kind::kMamba2;
  double heads = 0;       ///< value heads of one GPU (Mamba-1, convolution: channels)
  double key_heads = 0;   ///< groups that share keys and queries (B and C)
  double key_dim = 128;   ///< Mamba: state size
  double value_dim = 64;  ///< Mamba-1: 1
  double conv_width = 4, conv_channels = 0;
  double chunk = 256;  ///< tokens of a chunk of the parallel form
  Dtype state = Dtype::kFp32;
  bool operator==(const StateMixer&) const = default;

  /// Each channel has a recurrence of its own, which is scanned without matrix products.
  bool by_channel() const {
    return kind == Kind::kMamba1 || kind == Kind::kRgLru || kind == Kind::kRwkv4 || kind == Kind::kS4;
  }
  /// The delta rule, which also reads what it overwrites.
  bool has_delta_rule() const { return kind == Kind::kGatedDelta || kind == Kind::kRwkv7; }
};

/// The causal convolution before the mixer.
struct ConvolutionParameters {
  double launch_us = 3.0;
  double ramp_us = 1.0;
  double strip_start_us = 0.5;
  double strip_us = 1.0;
  double strips_per_sm = 16.0;
  double issue_ns_per_kb = 0.0;
  double bandwidth_fraction = 0.9;
  double decode_launch_us = 3.0;
  double decode_ns_per_channel = 0.5;
  double decode_bandwidth_fraction = 0.8;
  static std::span<const Parameter<ConvolutionParameters>> fields();
};

/// The recurrence itself: chunked over a prompt, one update in decode.
struct StateParameters {
  double prefill_launch_us = 10.0;
  double serial_us = 0.5;
  double start_us = 5.0;
  double chunk_us = 1.5;
  double chunk_sm_us = 4.0;
  double intermediate_passes = 1.0;
  double prefill_bandwidth_fraction = 0.9;
  double decode_launch_us = 4.0;
  double decode_bandwidth_fraction = 0.8;
  double decode_state_share = 0.95;
  static std::span<const Parameter<StateParameters>> fields();
};

/// Convolution and scan, without the projections (those are GEMMs).
Cost state_prefill(double batch, double query_len, const StateMixer& mixer, const Machine& machine);
Cost state_decode(double batch, const StateMixer& mixer, const Machine& machine);
Bytes state_bytes(const StateMixer& mixer);  ///< a sequence and layer, convolution included

/// Their parts, with constants of the caller's choice: what the fits call.
Seconds convolution_prefill_time(double batch, double query_len, double channels, const ConvolutionParameters& p,
                                 const GpuSpec& gpu);
Seconds convolution_decode_time(double batch, double channels, const ConvolutionParameters& p, const GpuSpec& gpu);
Seconds scan_prefill_time(double batch, double query_len, const StateMixer& mixer, const StateParameters& p,
                          const GpuSpec& gpu);
Seconds recurrence_decode_time(double batch, const StateMixer& mixer, const StateParameters& p, const GpuSpec& gpu,
                               Timing timing);

const KernelOf<StateParameters>& state_kernel();
/// The convolution before a mixer; Mamba's, where it was measured apart.
const KernelOf<ConvolutionParameters>& convolution_kernel();
const KernelOf<ConvolutionParameters>& mamba_convolution_kernel();

/// What is assumed of an engine's convolution: TensorRT-LLM walks strips of a channel, vLLM's many short blocks are
/// bound by what an SM issues. What an engine does not do is 0.
ConvolutionParameters convolution_prior(KernelFamily family);
/// The constants that a mixer takes on a machine; priors without measurements.
const ConvolutionParameters& convolution_parameters(StateMixer::Kind kind, const Efficiency* efficiency);
const StateParameters& state_parameters(const Efficiency* efficiency);

}  // namespace roofcast
