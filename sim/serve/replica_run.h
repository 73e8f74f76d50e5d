#pragma once
// The chunks of a step being planned, the current run, and the requests that end with it.

#include <cstdint>
#include <vector>

#include "sim/serve/live_request.h"
#include "sim/serve/sim_time.h"
#include "sim/step/step_model.h"

namespace roofcast {

struct PlannedChunk {
  Slot slot;
  int tokens;
};

struct StepRun {
  SimTime start, end;
  std::int64_t steps = 0;
  int rows = 0;  ///< decoding sequences, plus finished ones that a static batch still computes
  double context = 0;
  int query_len = 1;
  std::vector<RankLoad> ranks;  ///< rows, context and chunks per rank; empty if there is one rank
  std::vector<int> decoding;    ///< decoding sequences per rank
  bool whole = false;           ///< a run of decode steps that an arrival may shorten
  StepCost cost;
  double adapters = -1;  ///< as in StepBatch

  /// The decode batch after `passed` of its steps. `then` is storage for the loads of the ranks.
  StepBatch decodes_after(std::int64_t passed, std::vector<RankLoad>& then) const {
    const double tokens = static_cast<double>(passed) * query_len;
    if (!ranks.empty()) then = ranks;
    for (RankLoad& rank : then) {
      rank.decode_context += tokens * rank.decodes;
      rank.prefills = 0;
    }
    return {.decodes = rows,
            .decode_context = context + tokens * rows,
            .query_len = query_len,
            .ranks = then,
            .adapters = adapters};
  }
};

struct EndedRequest {
  Slot slot;
  SimTime delivered;
  bool handed_over = false;    ///< prefilled here; another replica decodes it
  bool forks = false;          ///< not ended: its prompt is prefilled, and other sequences start from it
  std::uint16_t together = 0;  ///< nonzero: one of several that ended in the same step, ordered by slot
};

}  // namespace roofcast
