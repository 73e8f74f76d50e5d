#pragma once
#include "base/units.h"

namespace roofcast {

/// Time that the host and the front end take, beside the GPU. Per engine and version family; never per model.
struct HostCosts {
  Seconds step_time{};       ///< scheduling and input preparation of a step that the GPU waits for
  Seconds sequence_time{};   ///< the same, a running sequence
  Seconds scheduler_time{};  ///< the host's own work for a step: beside the GPU's under async_scheduling, where it
                             ///< shows only when it takes longer; before the GPU's otherwise
  Seconds scheduler_sequence_time{};  ///< the same, a running sequence
  Seconds worker_time{};        ///< more of it where a replica has several GPUs: the driver sends each step to workers
  Seconds prefill_step_time{};  ///< more for a step that holds a prefill chunk
  Seconds eager_step_time{};    ///< launching a step without CUDA graphs, beside its kernels: the GPU works meanwhile
  Seconds eager_prompt_time{};  ///< the same, a prompt of it: TensorRT-LLM 1.0 sets its sampling up in C++
  Seconds launch_time{};        ///< launching one kernel of it; an eager step is never faster than its launches
  Seconds request_time{};       ///< front end, serial a request: tokenization, queueing through processes
  Seconds request_latency{};    ///< fixed delay of the front end before a request reaches the engine and back
  Seconds token_time{};         ///< front end, serial an output token: detokenization and streaming
  Seconds prompt_token_time{};  ///< front end, serial a prompt token
  Seconds piece_time{};  ///< a layer of a step whose attention is launched between two pieces of a graph, and again for
                         ///< each doubling of the ranks, which launch by themselves and wait for the last
  Seconds graph_gap{};   ///< between two kernels of a graph that starts each when the one before has ended
  Seconds rank_skew{};   ///< what ranks wait for each other at a collective, beyond its benchmark

  /// All that the host does, so neither graph_gap nor rank_skew, takes `factor` times as long.
  void scale(double factor);
};

}  // namespace roofcast
