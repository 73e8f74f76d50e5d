// TensorRT-LLM's recurrence in prefill: a sequence of Triton kernels. Chunks are processed in parallel; a short serial
// pass then propagates the state.

#include "hw/kernels/state/state_kernel.h"

namespace roofcast {
namespace {

struct Constants : StateParameters {
  Constants() { prefill_launch_us = 15.0, serial_us = 1.0, chunk_sm_us = 8.0, intermediate_passes = 2.0; }
  static std::span<const Parameter<Constants>> fields();
};

std::span<const Parameter<Constants>> Constants::fields() {
  using P = Constants;
  static constexpr auto kFields =
      joined(kStateLaunchField<P>,
             std::array<Parameter<P>, 3>{{
                 {"serial_us", &P::serial_us, 0.0, 10.0, Transfer::kCycles,
                  "serial pass that propagates the state, per chunk"},
                 {"chunk_sm_us", &P::chunk_sm_us, 0.0, 50.0, Transfer::kCycles,
                  "time per chunk on one SM in the parallel part"},
                 {"intermediate_passes", &P::intermediate_passes, 0.0, 20.0, Transfer::kKept,
                  "number of times keys and values go through memory between kernels"},
             }},
             kStateFields<P>);
  return kFields;
}

}  // namespace

const StateKernel& chunked_state() {
  static const StateKernelOf<Constants> kernel(
      {.name = "chunked_state",
       .help = "the recurrence of state-space and linear mixers in several kernels (TensorRT-LLM by Triton)",
       .form = "equations-state.md",
       .unexplained = kStateUnexplained});
  return kernel;
}

}  // namespace roofcast
