#pragma once
// Attention-DP ranks whose prompts wait for each other. Source: TensorRT-LLM, py_executor.py (_balance_adp_requests).

#include <vector>

#include "sim/serve/batch.h"
#include "sim/serve/replica_run.h"
#include "sim/serve/request_queue.h"
#include "sim/step/deployment.h"

namespace roofcast {

/// A request belongs to one rank for good. While every rank decodes, prompts are held until every rank has one.
class RankBalance {
 public:
  RankBalance(const Deployment& deployment, bool continuous, int query_len, const RequestTable& requests,
              const RequestQueue& queue, const Batch& batch);

  bool active() const { return active_; }
  /// A request goes to the rank with the fewest, and stays there. `requests` of each rank are counted where still
  /// empty.
  void assign(LiveRequest& request, std::vector<int>& requests) const;
  /// Whether prompts are held in the step being planned. A rank without a prompt would only wait for the others'. After
  /// so many steps prompts run all the same, whether or not one waited in them.
  bool holds() const;
  /// Tokens that each rank may still prefill in a step that has these chunks already.
  std::vector<std::int64_t> room(const std::vector<PlannedChunk>& chunks) const;
  /// Prompt tokens of the rank that has most of them.
  double fullest_prefill(const std::vector<PlannedChunk>& chunks) const;
  /// Steps after which held prompts run all the same.
  std::int64_t steps_until_release() const { return wait_steps_ - clock_ % wait_steps_; }

  void advance(std::int64_t steps) { clock_ += steps; }
  void prefilled() { clock_ = 0; }

 private:
  struct Load;
  Load load() const;

  const RequestTable& requests_;
  const RequestQueue& queue_;
  const Batch& batch_;
  std::size_t ranks_;
  std::int64_t wait_steps_, budget_;
  int query_len_;
  bool active_;
  std::int64_t clock_ = 0;  ///< steps since ranks last prefilled together, or gave up waiting for it
};

}  // namespace roofcast
