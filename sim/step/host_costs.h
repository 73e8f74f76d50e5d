#pragma once
#include "base/units.h"

namespace roofcast {

/// Time that the host and the front end take. Fitted per engine and range of versions, never per model.
struct HostCosts {
  Seconds step_time{};       ///< scheduling and input preparation of a step that the GPU waits for
  Seconds sequence_time{};   ///< the same, per running sequence
  Seconds scheduler_time{};  ///< the host's own work for a step: beside the GPU's under async_scheduling, where it
                             ///< shows only when it takes longer; before the GPU's otherwise
  Seconds scheduler_sequence_time{};  ///< the same, per running sequence
  Seconds worker_time{};        ///< more of it where a replica has several GPUs: the driver sends each step to workers
  Seconds prefill_step_time{};  ///< more for a step that holds a prefill chunk
  Seconds launch_time{};        ///< launching one kernel of an eager step, which is never faster than its launches
  Seconds request_time{};       ///< front end, per request, one after another: tokenization, queues between processes
  Seconds request_latency{};    ///< fixed delay of the front end before a request reaches the engine and back
  Seconds token_time{};         ///< front end, per output token, one after another: detokenization and streaming
  Seconds prompt_token_time{};  ///< front end, per prompt token, one after another
  Seconds graph_gap{};          ///< between two kernels of a graph that starts each when the one before has ended
  Seconds rank_skew{};          ///< time that ranks wait for each other at a collective, beyond its benchmark

  double scatter = 0;  ///< standard deviation, relative to the mean, of the time that the front end takes a request in
                       ///< and of what the GPU waits for the host in a step: no two are alike

  /// Multiplies all times of the host by `factor`, but not graph_gap and rank_skew.
  void scale(double factor);
};

}  // namespace roofcast
