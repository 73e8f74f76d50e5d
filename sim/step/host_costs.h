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
  Seconds launch_time{};              ///< launch of one kernel; an eager step is never faster than its launches
  Seconds request_time{};             ///< front end, per request, serial: tokenization, queues between processes
  Seconds request_latency{};          ///< fixed delay of the front end per request, in parallel
  Seconds token_time{};               ///< front end, per output token, serial: detokenization and streaming
  Seconds prompt_token_time{};        ///< front end, per prompt token, serial
  Seconds graph_gap{};                ///< between two kernels of a graph without dependent launch
  Seconds rank_skew{};                ///< wait of ranks for each other per collective, beyond its benchmark

  double scatter = 0;  ///< standard deviation, relative to the mean, of the front end's time per request and of the
                       ///< GPU's wait for the host per step

  /// Multiplies all host times by `factor`, but not graph_gap and rank_skew.
  void scale(double factor);
};

}  // namespace roofcast
