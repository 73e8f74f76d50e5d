#pragma once
// Several answers to one prompt: parallel samples (n), the best of several, beams.

#include "base/config_reader.h"
#include "sim/serve/sim_time.h"

namespace roofcast {

/// Sequences that share the prompt of a request, and decode side by side from its first token on.
struct SampleSpec {
  int generated = 1;  ///< sequences
  int returned = 1;   ///< sequences that the client receives; if fewer: all at once, when the last one has ended
  bool beams = false;
  Mark mark;
  bool several() const { return generated > 1; }
};

/// `samples: {n: 4}`, `{n: 1, best_of: 8}` or `{beam_width: 4}`.
SampleSpec parse_samples(ConfigReader in);

/// The progress of its sequences.
struct SampleFamily {
  int open = 0;  ///< sequences that have not ended
  int returned = 1;
  bool streams = true;  ///< the client receives every sequence from its first token on
  double tokens = 0;    ///< tokens of all its sequences
  int longest = 0;
  int preemptions = 0;
  int thinking = 0;     ///< tokens of each that come before its answer
  int cached = 0;       ///< prompt tokens of the first
  SimTime scheduled{};  ///< the first
  SimTime first_token{}, delivered{};
};

}  // namespace roofcast
