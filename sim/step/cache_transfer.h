#pragma once

namespace roofcast {

/// When a cache leaves the worker that computes it.
enum class CacheTransfer {
  kAfterPrefill,
  kByChunk,  ///< each chunk of the prompt once it is computed
  kByLayer,  ///< each layer of a chunk once it is computed
};

}  // namespace roofcast
