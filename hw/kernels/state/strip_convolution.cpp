// TensorRT-LLM's convolution in prefill: a block per sequence and channel, which loops over the prompt in strips.

#include "hw/kernels/state/state_kernel.h"

namespace roofcast {
namespace {

struct Constants : ConvolutionParameters {
  Constants() { strip_start_us = 0.5, strip_us = 1.0; }
  static std::span<const Parameter<Constants>> fields();
};

std::span<const Parameter<Constants>> Constants::fields() {
  using P = Constants;
  static constexpr auto kFields =
      joined(kConvolutionLaunchField<P>,
             std::array<Parameter<P>, 3>{{
                 {"strip_start_us", &P::strip_start_us, 0.0, 10.0, Transfer::kCycles,
                  "start of a block; one block per (sequence, channel)"},
                 {"strip_us", &P::strip_us, 0.0, 10.0, Transfer::kCycles,
                  "time per strip of 512 tokens in a block, one after another"},
                 {"strips_per_sm", &P::strips_per_sm, 1.0, 64.0, Transfer::kKept, "concurrent blocks per SM"},
             }},
             kConvolutionFields<P>);
  return kFields;
}

}  // namespace

const ConvolutionKernel& strip_convolution() {
  static const ConvolutionKernelOf<Constants> kernel({.name = "strip_convolution",
                                                      .help = "TensorRT-LLM's causal convolution before a mixer",
                                                      .form = "equations-state.md",
                                                      .unexplained = kConvolutionUnexplained});
  return kernel;
}
const ConvolutionKernel& mamba_strip_convolution() {
  static const ConvolutionKernelOf<Constants> kernel({.name = "mamba_strip_convolution",
                                                      .help = "TensorRT-LLM's causal convolution before a Mamba mixer",
                                                      .form = "equations-state.md",
                                                      .unexplained = kConvolutionUnexplained,
                                                      .lenders = {&strip_convolution()}});
  return kernel;
}

}  // namespace roofcast
