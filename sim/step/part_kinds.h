#pragma once
// The parts of a step, and what each depends on.

#include <cmath>
#include <cstddef>

#include "sim/model/encoder.h"

namespace roofcast {

/// All layers without their mixers, on the most loaded rank. `group_tokens` are the tokens of all attention-DP ranks.
struct TokenPart {
  double tokens, group_tokens;
  bool prompts;  ///< some of them belong to prompts
  bool operator==(const TokenPart&) const = default;
};
/// Final norm, LM head and sampling.
struct HeadPart {
  double rows;
  bool operator==(const HeadPart&) const = default;
};
/// Adapters of the layers' products.
struct AdapterPart {
  double tokens, adapters;
  /// One micro-batch of a split step; each may use all adapters.
  AdapterPart in_batches(double batches) const {
    return batches > 1 ? AdapterPart{std::ceil(tokens / batches), adapters} : *this;
  }
};
/// Images or audio that an encoder processes.
struct EncoderPart {
  EncoderWork work;
};
/// Writing the cross-attention keys and values of an encoder's output.
struct EncodedPart {
  double tokens;
};
/// Mixers of the decoding sequences of one rank.
struct DecodePart {
  double sequences;
  int query_len;
  double mean_context;
  double least_seconds = 0;  ///< the shortest time that they can take next to prefill
  double gap = 0;            ///< seconds between two kernels
};
/// Mixers of one prefill chunk. All chunks of a step share one launch, so each is priced as one of `chunks` equal
/// chunks.
struct PrefillPart {
  std::size_t chunks;
  double tokens, context_before;
  bool operator==(const PrefillPart&) const = default;
};

}  // namespace roofcast
