#pragma once
#include "base/units.h"

namespace roofcast {

/// Host and front-end overheads. Fitted per engine and range of versions, never per model.
struct HostCosts {
  Seconds step_time{};       ///< scheduling and input preparation per step that the GPU waits for
  Seconds sequence_time{};   ///< the same, per running sequence
  Seconds scheduler_time{};  ///< host work per step; overlaps the GPU under async_scheduling, so that it shows only
                             ///< if it takes longer; before the GPU's work otherwise
  Seconds scheduler_sequence_time{};  ///< the same, per running sequence
  Seconds worker_time{};              ///< additional with several GPUs: the driver sends each step to workers
  Seconds prefill_step_time{};        ///< additional for a step with a prefill chunk
  Seconds launch_time{};        ///< launching one kernel of an eager step, which is never faster than its launches
  Seconds request_time{};             ///< front end, per request, serial: tokenization, queues between processes
  Seconds request_latency{};          ///< fixed delay of the front end per request, in parallel
  Seconds token_time{};               ///< front end, per output token, serial: detokenization and streaming
  Seconds prompt_token_time{};        ///< front end, per prompt token, serial
  Seconds graph_gap{};          ///< between two kernels of a graph that starts each when the one before has ended
  Seconds rank_skew{};          ///< time that ranks wait for each other at a collective, beyond its benchmark

  double scatter = 0;  ///< standard deviation, relative to the mean, of the time that the front end takes a request in
                       ///< and of what the GPU waits for the host in a step: no two are alike

  /// Multiplies all host times by `factor`, but not graph_gap and rank_skew.
  void scale(double factor);
};

}  // namespace roofcast
