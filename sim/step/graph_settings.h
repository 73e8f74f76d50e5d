#pragma once
#include <vector>

namespace roofcast {

/// How CUDA graphs are used in decode.
struct GraphSettings {
  bool enabled = true;
  int max_batch = 512;            ///< sequences; larger decode steps run eagerly
  int prefill_tokens = 0;         ///< steps with prefill are replayed piece by piece up to this many tokens
  bool plain_prefill = false;     ///< ... only for text models whose layers all attend to every head's own keys
  bool dependent_launch = false;  ///< kernels start before those that they wait for have ended
  std::vector<int> padded_sizes;  ///< batch sizes captured; empty: 1 2 4 and multiples of 8
};

}  // namespace roofcast
