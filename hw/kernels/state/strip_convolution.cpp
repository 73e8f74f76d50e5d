// TensorRT-LLM's convolution over a prompt: a block for each sequence and channel, which walks the prompt in strips.

#include "hw/kernels/state/state_kernel.h"

namespace roofcast {
namespace {

struct Constants : ConvolutionParameters {
  Constants() { strip_start_us = 0.5, strip_us = 1.0; }
  static std::span<const Parameter<Constants>> fields();
};

std::span<const Parameter<Constants>> Constants::fields() {
  using P = Constants;
  static constexpr auto kFields = joined(
      kConvolutionLaunchField<P>,
      std::array<Parameter<P>, 3>{{
          {"strip_start_us", &P::strip_start_us, 0.0, 10.0, Transfer::kCycles,
           "a block's start, one (sequence, channel) a block"},
          {"strip_us", &P::strip_us, 0.0, 10.0, Transfer::kCycles, "512 tokens of a block, one strip after another"},
          {"strips_per_sm", &P::strips_per_sm, 1.0, 64.0, Transfer::kKept, "blocks that an SM runs at once"},
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
                                                      .help = "the same before a mixer of Mamba",
                                                      .form = "equations-state.md",
                                                      .unexplained = kConvolutionUnexplained,
                                                      .lenders = {&strip_convolution()}});
  return kernel;
}

}  // namespace roofcast
