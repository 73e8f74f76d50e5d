// vLLM's convolution in prefill: many short blocks, bound by the issue rate of the SMs.

#include "hw/kernels/state/state_kernel.h"

namespace roofcast {
namespace {

struct Constants : ConvolutionParameters {
  Constants() { ramp_us = 1.0, issue_ns_per_kb = 47.0; }
  static std::span<const Parameter<Constants>> fields();
};

std::span<const Parameter<Constants>> Constants::fields() {
  using P = Constants;
  static constexpr auto kFields =
      joined(kConvolutionLaunchField<P>,
             std::array<Parameter<P>, 2>{{
                 {"ramp_us", &P::ramp_us, 0.0, 10.0, Transfer::kCycles, "filling the window, up to eight tokens"},
                 {"issue_ns_per_kb", &P::issue_ns_per_kb, 0.0, 500.0, Transfer::kCycles,
                  "time for an SM to load and store 1000 bytes"},
             }},
             kConvolutionFields<P>);
  return kFields;
}

}  // namespace

const ConvolutionKernel& block_convolution() {
  static const ConvolutionKernelOf<Constants> kernel({.name = "convolution",
                                                      .help = "vLLM's causal convolution before a mixer",
                                                      .form = "equations-state.md",
                                                      .unexplained = kConvolutionUnexplained});
  return kernel;
}
const ConvolutionKernel& mamba_block_convolution() {
  static const ConvolutionKernelOf<Constants> kernel({.name = "mamba_convolution",
                                                      .help = "vLLM's causal convolution before a Mamba mixer",
                                                      .form = "equations-state.md",
                                                      .unexplained = kConvolutionUnexplained,
                                                      .lenders = {&block_convolution()}});
  return kernel;
}

}  // namespace roofcast
