#pragma once
// Caches without blocks.

#include "sim/step/deployment.h"

namespace roofcast {

/// Tokens of the one region of cache that a sequence has where `block_size` is 0: as long as the longest request.
inline double region_tokens(const Deployment& d) {
  constexpr double kUnknownContext = 2048;
  if (d.engine.max_model_len > 0) return d.engine.max_model_len;
  return d.model.max_context > 0 ? d.model.max_context : kUnknownContext;
}

}  // namespace roofcast
