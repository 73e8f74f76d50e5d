#pragma once
// Shared by the kernels of recurrences and their convolutions; each kernel has its own file in this folder. Source of
// the equations: docs/equations-state.md.

#include <array>

#include "hw/kernel_of.h"
#include "hw/kernels/state.h"

namespace roofcast {

/// Constants of a convolution. A kernel without one of them has its default, which has no effect.
struct ConvolutionParameters {
  double launch_us = 3.0;
  double ramp_us = 0.0;
  double strip_start_us = 0.0, strip_us = 0.0, strips_per_sm = 16.0;
  double issue_ns_per_kb = 0.0;
  double bandwidth_fraction = 0.9;
  double decode_launch_us = 3.0, decode_ns_per_channel = 0.5, decode_bandwidth_fraction = 0.8;
};
template <class P>
inline constexpr std::array<Parameter<P>, 1> kConvolutionLaunchField{{
    {"launch_us", &P::launch_us, 0.5, 30.0, Transfer::kCycles, "launch over a prompt"},
}};
template <class P>
inline constexpr std::array<Parameter<P>, 4> kConvolutionFields{{
    {"bandwidth_fraction", &P::bandwidth_fraction, 0.1, 1.0, Transfer::kMemoryShare,
     "share of the memory bandwidth over a prompt"},
    {"decode_launch_us", &P::decode_launch_us, 0.5, 30.0, Transfer::kCycles, "launch in decode"},
    {"decode_ns_per_channel", &P::decode_ns_per_channel, 0.0, 10.0, Transfer::kCycles,
     "time per channel on one SM in decode"},
    {"decode_bandwidth_fraction", &P::decode_bandwidth_fraction, 0.1, 1.0, Transfer::kMemoryShare,
     "share of the memory bandwidth in decode"},
}};

/// Constants of a recurrence: chunked in prefill, one update in decode. A kernel without one of them has its default.
struct StateParameters {
  double prefill_launch_us = 10.0;
  double serial_us = 0.0, start_us = 0.0, chunk_us = 0.0, chunk_sm_us = 0.0, intermediate_passes = 0.0;
  double prefill_bandwidth_fraction = 0.9;
  double decode_launch_us = 4.0, decode_bandwidth_fraction = 0.8, decode_state_share = 0.95;
};
template <class P>
inline constexpr std::array<Parameter<P>, 1> kStateLaunchField{{
    {"prefill_launch_us", &P::prefill_launch_us, 0.5, 60.0, Transfer::kCycles, "launches over a prompt"},
}};
template <class P>
inline constexpr std::array<Parameter<P>, 4> kStateFields{{
    {"prefill_bandwidth_fraction", &P::prefill_bandwidth_fraction, 0.1, 1.0, Transfer::kMemoryShare,
     "share of the memory bandwidth"},
    {"decode_launch_us", &P::decode_launch_us, 0.5, 30.0, Transfer::kCycles, "launch in decode"},
    {"decode_bandwidth_fraction", &P::decode_bandwidth_fraction, 0.1, 1.0, Transfer::kMemoryShare,
     "share of the memory bandwidth in decode"},
    {"decode_state_share", &P::decode_state_share, 0.5, 1.0, Transfer::kKept,
     "share of the state's reads and writes that reach memory"},
}};

class ConvolutionKernel : public Kernel {
 public:
  explicit ConvolutionKernel(const KernelFacts& facts) : Kernel(KernelKind::kConvolution, facts) {}
  virtual const ConvolutionParameters& parameters(const ConstantsBlock& constants) const = 0;
};
class StateKernel : public Kernel {
 public:
  explicit StateKernel(const KernelFacts& facts) : Kernel(KernelKind::kState, facts) {}
  virtual const StateParameters& parameters(const ConstantsBlock& constants) const = 0;
};

/// A kernel whose constants are a P, which is a ConvolutionParameters.
template <class P>
class ConvolutionKernelOf final : public KernelOf<P, ConvolutionKernel> {
 public:
  using KernelOf<P, ConvolutionKernel>::KernelOf;
  const ConvolutionParameters& parameters(const ConstantsBlock& constants) const override {
    return this->in(constants)->value;
  }
};

/// A kernel whose constants are a P, which is a StateParameters.
template <class P>
class StateKernelOf final : public KernelOf<P, StateKernel> {
 public:
  using KernelOf<P, StateKernel>::KernelOf;
  const StateParameters& parameters(const ConstantsBlock& constants) const override {
    return this->in(constants)->value;
  }
  /// The prior for a GPU without any measured recurrence. It is the same for every kernel and lies between their
  /// measured constants. Fits start from the defaults of P.
  P prior(const GpuSpec&, Dtype) const override {
    P p;
    p.prefill_launch_us = 10.0, p.serial_us = 0.5, p.start_us = 5.0, p.chunk_us = 1.5, p.chunk_sm_us = 4.0;
    p.intermediate_passes = 1.0;
    return p;
  }
};

inline constexpr Unexplained kConvolutionUnexplained{0.1, 0.27, 0.0}, kStateUnexplained{0.1, 0.4, 0.0};

const ConvolutionKernel& block_convolution();
const ConvolutionKernel& mamba_block_convolution();
const ConvolutionKernel& strip_convolution();
const ConvolutionKernel& mamba_strip_convolution();
const StateKernel& fused_state();
const StateKernel& chunked_state();

/// The kernels that the rules choose.
const ConvolutionKernel& convolution_kernel(const StateMixer& mixer, const GpuSpec& gpu, const KernelRules& rules);
const StateKernel& state_kernel(const StateMixer& mixer, const GpuSpec& gpu, const KernelRules& rules);

/// The parts of a layer for given constants.
Seconds convolution_prefill_time(double batch, double query_len, double channels, const ConvolutionParameters& p,
                                 const GpuSpec& gpu);
Seconds convolution_decode_time(double batch, double channels, const ConvolutionParameters& p, const GpuSpec& gpu);
Seconds scan_prefill_time(double batch, double query_len, const StateMixer& mixer, const StateParameters& p,
                          const GpuSpec& gpu);
Seconds recurrence_decode_time(double batch, const StateMixer& mixer, const StateParameters& p, const GpuSpec& gpu);
/// Bytes of the states that are read from and written to memory.
Bytes decode_state_traffic(double batch, const StateMixer& mixer, const StateParameters& p);

}  // namespace roofcast
