#pragma once
// The chunks of a step being planned, the run under way, and the requests that end with it.

#include <cstdint>

#include "sim/serve/live_request.h"
#include "sim/serve/sim_time.h"
#include "sim/step/step_model.h"

namespace roofcast {

struct PlannedChunk {
  Slot slot;
  int tokens;
};

struct StepRun {
  SimTime start, end, last_start;
  std::int64_t steps = 0;
  int rows = 0;  ///< decoding sequences, and ended ones that a static batch still computes
  double context = 0;
  bool whole = false;  ///< a run of decode steps that an arrival may shorten
  StepCost cost;
};

struct EndedRequest {
  Slot slot;
  SimTime delivered;
  bool handed_over = false;  ///< prefilled, and to be decoded elsewhere
};

}  // namespace roofcast
