#pragma once
// The techniques of serving switched on one after another: what each buys on one model, GPU and workload.

#include <string>
#include <vector>

#include "base/config_node.h"
#include "hw/cost.h"
#include "sim/plan/scenario.h"

namespace roofcast {

struct LadderOptions {
  int concurrency = 64;  ///< users of the batched rungs, each with one request at a time
  int requests = 0;      ///< requests of a simulated rung; 0: four per user
};

/// One rung. The first ones serve one request at a time, in closed form, with the workload's mean lengths; from static
/// batching on, the workload is simulated with `concurrency` users.
struct Rung {
  std::string name, help;
  std::string note;  ///< what does not fit; what was left out, and why
  bool fits = true;
  bool has_numbers = true;  ///< an unbatched rung keeps them when it does not fit, for the arithmetic
  bool simulated = false;
  Seconds ttft{}, tpot{}, latency{};  ///< means; latency of a whole request
  double output_tokens_per_s = 0;
  Bytes memory{};  ///< of one GPU: weights, and the cache at its peak
  int gpus = 1;
  double usd_per_million_output_tokens = 0, usd_per_million_total_tokens = 0;  ///< output's part of the bill; all of it
  Bound bound = Bound::kMemory;                                                ///< of the decode step
  double throughput_gain = 1, latency_gain = 1, cost_gain = 1;                 ///< over the rung before it
  double total_gain = 1;  ///< throughput relative to the first rung
};

struct Ladder {
  std::string model, gpu;
  double prompt_tokens = 0, output_tokens = 0;  ///< means of the workload
  LadderOptions options;
  std::vector<Rung> rungs;
};

/// From naive fp32 (no KV cache, the attention matrix in memory, one request at a time, eager launches) to what the
/// scenario asks for. A technique that costs throughput where it comes in is shown and left out of the rungs after it;
/// so is speculation, once batches make verifying expensive. Throws ConfigError for a scenario without a workload.
Ladder climb(const ConfigTree& scenario, Fidelity fidelity, const LadderOptions& options);

}  // namespace roofcast
