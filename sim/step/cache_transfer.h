#pragma once

namespace roofcast {

/// When a prefill worker sends a cache.
enum class CacheTransfer {
  kAfterPrefill,
  kByChunk,  ///< each prefill chunk once it is computed
  kByLayer,  ///< each layer of a chunk once it is computed
};

}  // namespace roofcast
