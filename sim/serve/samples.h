#pragma once
// Several answers to one prompt: parallel samples (n), best of n, beam search.

#include "base/config_reader.h"
#include "sim/serve/sim_time.h"

namespace roofcast {

/// Sequences that share the prompt of a request and decode in parallel from its first token on.
struct SampleSpec {
  int generated = 1;  ///< sequences
  int returned = 1;   ///< sequences that the client receives; if fewer than generated: all together at the end
  bool beams = false;
  SourceLocation location;
  bool several() const { return generated > 1; }
};

/// `samples: {n: 4}`, `{n: 1, best_of: 8}` or `{beam_width: 4}`.
SampleSpec parse_samples(ConfigReader in);

/// Progress of the sequences of one request.
struct SampleFamily {
  int open = 0;  ///< sequences that have not ended
  int returned = 1;
  bool streams = true;  ///< the client receives every sequence as it is generated
  double tokens = 0;    ///< tokens of all its sequences
  int longest = 0;
  int preemptions = 0;
  int thinking = 0;     ///< thinking tokens of each sequence
  int cached = 0;       ///< cached prompt tokens of the first sequence
  SimTime scheduled{};  ///< when the first sequence was scheduled
  SimTime first_token{}, delivered{};
};

}  // namespace roofcast
