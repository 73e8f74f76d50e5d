#pragma once
// Contiguous KV caches.

#include "sim/step/deployment.h"

namespace roofcast {

/// Tokens per sequence of a contiguous cache (`block_size` 0): those of the longest request.
inline double region_tokens(const Deployment& d) {
  constexpr double kUnknownContext = 2048;
  if (d.engine.max_model_len > 0) return d.engine.max_model_len;
  return d.model.max_context > 0 ? d.model.max_context : kUnknownContext;
}

}  // namespace roofcast
