// vLLM's recurrence in prefill: one fused kernel, whose blocks loop over the chunks of a sequence and head.

#include "hw/kernels/state/state_kernel.h"

namespace roofcast {
namespace {

struct Constants : StateParameters {
  Constants() { prefill_launch_us = 3.0, start_us = 5.0, chunk_us = 2.9; }
  static std::span<const Parameter<Constants>> fields();
};

std::span<const Parameter<Constants>> Constants::fields() {
  using P = Constants;
  static constexpr auto kFields = joined(
      kStateLaunchField<P>,
      std::array<Parameter<P>, 2>{{
          {"start_us", &P::start_us, 0.0, 60.0, Transfer::kCycles, "start of a block; one block per (sequence, head)"},
          {"chunk_us", &P::chunk_us, 0.0, 20.0, Transfer::kCycles,
           "time per chunk of 64 tokens in a block, one after another"},
      }},
      kStateFields<P>);
  return kFields;
}

}  // namespace

const StateKernel& fused_state() {
  static const StateKernelOf<Constants> kernel(
      {.name = "state",
       .help = "the recurrence of state-space and linear mixers in one kernel (vLLM by FlashInfer)",
       .form = "equations-state.md",
       .unexplained = kStateUnexplained});
  return kernel;
}

}  // namespace roofcast
