#pragma once
// A sweep in parts: each shard runs every n-th point into a store of its own; the stores are merged afterwards.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/plan/search/sweep_store.h"

namespace roofcast {

/// Every `count`-th of the points that `where` keeps, from the `index`-th on; `index` counts from 1. Which points these
/// are depends on the sweep file alone, so shards may run at the same time and be resumed.
struct Shard {
  std::uint64_t index = 1, count = 1;

  std::string text() const;  ///< "2/8"
};

/// Reads "i/n". Throws ConfigError unless 1 <= i <= n.
Shard parse_shard(const std::string& text, const std::string& origin = "--shard");

/// Adds the finished points of the stores at `paths` to `store`, which holds `sweep` with points of these hashes.
/// Throws ConfigError, before anything is added, for a store of another sweep and when a shard's store is missing.
void merge_stores(const StoredSweep& sweep, const std::vector<std::string>& hashes,
                  const std::vector<std::string>& paths, SweepStore& store);

}  // namespace roofcast
