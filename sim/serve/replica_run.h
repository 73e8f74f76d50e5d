#pragma once
// What a replica has in hand: requests on their way, chunks of the step being planned, and the run under way.

#include <cstdint>

#include "sim/serve/kv_pool.h"
#include "sim/serve/live_request.h"
#include "sim/serve/sim_time.h"
#include "sim/step/step_model.h"

namespace roofcast {

struct ReplicaArrival {
  SimTime ready;
  Slot slot;
};

/// A cache on its way, by the time at which it is here.
struct CacheLanding {
  SimTime at;
  Slot slot;
};

struct PlannedChunk {
  Slot slot;
  int tokens;
};

/// What it takes to let a request in.
struct PlannedAdmission {
  KvPool::Hit hit;
  int tokens = 0;          ///< of the first chunk
  std::int64_t bytes = 0;  ///< to take now
  std::int64_t room = 0;   ///< that there has to be
  std::int64_t reserve = 0;
  bool possible = false;
};

struct StepRun {
  SimTime start, end, last_start;
  std::int64_t steps = 0;
  int rows = 0;  ///< decoding sequences, and ended ones that a static batch still computes
  double context = 0;
  bool whole = false;  ///< a run of decode steps that an arrival may shorten
  StepCost cost;
};

}  // namespace roofcast
