#pragma once
#include <vector>

namespace roofcast {

/// How CUDA graphs are used in decode.
struct GraphSettings {
  bool enabled = true;
  int max_batch = 512;            ///< sequences; larger decode steps run eagerly
  int prefill_tokens = 0;         ///< steps with prefill use piecewise graphs up to this many tokens
  bool plain_prefill = false;     ///< ... only for text models whose layers all cache keys and values per head, without
                                  ///< sparse attention or attention-DP
  bool dependent_launch = false;  ///< programmatic dependent launch: a kernel starts before its predecessor ends
  std::vector<int> padded_sizes;  ///< batch sizes captured; empty: 1 2 4 and multiples of 8
};

}  // namespace roofcast
