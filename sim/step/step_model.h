#pragma once
// The time of one engine step from its batch. Only here are operator times summed.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hw/cost.h"
#include "sim/model/encoder_spec.h"
#include "sim/step/operator_family.h"

namespace roofcast {

struct Deployment;

/// New tokens of one sequence in a step, which follow its cached tokens.
struct PrefillChunk {
  int tokens = 0;
  int context_before = 0;
  bool last = true;  ///< last chunk of its prompt: its last row passes the LM head
  int ahead = 0;     ///< prompt tokens of the previous step, which are still in the pipeline
};

/// The share of one attention-DP rank in a step.
struct RankLoad {
  int decodes = 0;
  double decode_context = 0;  ///< tokens in the caches of its decoding sequences
  int prefills = 0;           ///< number of chunks
};

/// The contents of one step. Decoding sequences have `query_len` tokens each (k + 1 when verifying k drafts).
struct StepBatch {
  int decodes = 0;
  double decode_context = 0;  ///< tokens in the caches of all decoding sequences
  int query_len = 1;
  std::span<const PrefillChunk> prefills{};
  /// The same per rank, with the chunks ordered by rank; empty: ranks share the work evenly.
  std::span<const RankLoad> ranks{};
  /// Distinct adapters on the rank with the most; negative: the expected number for its sequences.
  double adapters = -1;
  /// Encoder input before the step, on the rank with the most.
  std::span<const EncoderWork> encodes{};
  bool followed = false;  ///< prompts wait that enter a pipeline right behind those of this step
};

/// One line of a step's breakdown.
struct OperatorTime {
  std::string name;
  double count = 0;
  Cost cost;  ///< total of `count` calls
  OperatorFamily family = OperatorFamily::kGemm;
  double discrepancy = 0;  ///< relative standard deviation of the predicted time
};

/// What the host takes of a time: the GPU works while the host does, and waits for the rest.
struct HostBound {
  Seconds gpu{};
  Seconds meanwhile{};  ///< of the host, while the GPU works: launches outside of graphs, scheduling ahead
  Seconds time{};       ///< the longer of the two, and what the GPU waits
  /// The time if the host takes `factor` times as long.
  Seconds at(double factor) const {
    const Seconds waits = std::max(Seconds(0), time - std::max(gpu, meanwhile));
    return std::max(gpu, factor * meanwhile) + factor * waits;
  }
};

struct StepBreakdown {
  std::vector<OperatorTime> operators;
  Seconds gpu_time{};
  Seconds host_time{};  ///< host time that the GPU does not hide
  Seconds time{};
  HostBound host{}, drafting{};  ///< of the step, and of the drafts before it
  Flops flops{};
  Bytes bytes{};
  Bound bound = Bound::kMemory;
};

/// Time, work and traffic of one GPU.
struct StepCost {
  Seconds time{};
  Flops flops{};
  Bytes bytes{};
  Seconds launched{};  ///< time from the step's start until the host has launched its last kernel; 0 under CUDA graphs
  Seconds host{};      ///< of `time`, that in which the GPU waits for the host
};

/// Prices the steps of one deployment and caches the prices. Not thread-safe: use one per thread. Everything that
/// depends only on the number of tokens (such as GEMMs) is cached per token count. Decode attention is piecewise linear
/// in the mean context, with knots every 64 tokens up to 1024 and 16 per octave beyond.
class StepModel {
 public:
  explicit StepModel(std::shared_ptr<const Deployment> deployment);
  ~StepModel();
  StepModel(StepModel&&) noexcept;

  const Deployment& deployment() const;

  StepCost cost(const StepBatch& batch);
  Seconds time(const StepBatch& batch) { return cost(batch).time; }

  /// Total cost of `steps` decode steps starting with `first`; caches grow by query_len tokens per sequence and step.
  /// Equal to the sum of cost() of each step as long as the same rank stays the slowest.
  StepCost decode_run(const StepBatch& first, std::int64_t steps);
  Seconds run_time(const StepBatch& first, std::int64_t steps);  ///< time of decode_run()
  /// Number of decode steps that start within `budget`, at most `limit`: the largest n whose first n - 1 steps end
  /// before the budget.
  std::int64_t steps_within(const StepBatch& first, Seconds budget, std::int64_t limit);

  /// The step operator by operator.
  StepBreakdown breakdown(const StepBatch& batch);
  /// GPU time of a step in which each attention-DP rank ends a prompt with this one chunk, and does nothing else.
  /// Cached.
  Seconds gpu_time_alone(int tokens, int context_before);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace roofcast
