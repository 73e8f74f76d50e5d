#pragma once
// Serving techniques switched on one after another: what each gains for one model, GPU and workload.

#include <string>
#include <vector>

#include "base/config_node.h"
#include "hw/cost.h"
#include "sim/plan/scenario.h"

namespace roofcast {

struct LadderOptions {
  int concurrency = 64;  ///< users in batched rungs, each with one request at a time
  int requests = 0;      ///< requests of a simulated rung; 0: four per user
};

/// One rung. The first rungs serve one request at a time, in closed form, with the mean lengths of the workload. From
/// static batching on, the workload is simulated with `concurrency` users.
struct Rung {
  std::string name, help;
  std::string note;  ///< what does not fit; what was left out and why
  bool fits = true;
  bool has_numbers = true;  ///< unbatched rungs have numbers even if they do not fit
  bool simulated = false;
  Seconds ttft{}, tpot{}, latency{};  ///< means; latency is that of a whole request
  double output_tokens_per_s = 0;
  Bytes memory{};  ///< per GPU: weights, and the cache at its peak
  int gpus = 1;
  double usd_per_million_output_tokens = 0,
         usd_per_million_total_tokens = 0;                      ///< the output part of the bill; the whole bill
  Bound bound = Bound::kMemory;                                 ///< in the decode step
  double throughput_gain = 1, latency_gain = 1, cost_gain = 1;  ///< relative to the previous rung
  double total_gain = 1;                                        ///< throughput relative to the first rung
};

struct Ladder {
  std::string model, gpu;
  double prompt_tokens = 0, output_tokens = 0;  ///< means of the workload
  LadderOptions options;
  std::vector<Rung> rungs;
};

/// Climbs from naive fp32 (no KV cache, attention matrix in memory, one request at a time, eager launches) to what the
/// scenario asks for. A technique that lowers throughput is shown but left out of later rungs; so is speculation, once
/// batches make verification expensive. Throws ConfigError for a scenario without a workload.
Ladder climb(const ConfigTree& scenario, Fidelity fidelity, const LadderOptions& options);

}  // namespace roofcast
