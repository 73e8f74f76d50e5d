#pragma once
// A sweep in parts: each shard runs every n-th point with its own store; the stores are merged afterwards.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/plan/search/sweep_store.h"

namespace roofcast {

/// Every `count`-th of the points that `where` keeps, starting with number `index` (from 1). The points depend only on
/// the sweep file, so shards may run at the same time and be resumed.
struct Shard {
  std::uint64_t index = 1, count = 1;

  std::string text() const;  ///< "2/8"
};

/// Reads "i/n". Throws ConfigError unless 1 <= i <= n.
Shard parse_shard(const std::string& text, const std::string& origin = "--shard");

/// Copies the finished points of the stores at `paths` to `store`, which holds `sweep` with points of these hashes.
/// Throws ConfigError, before anything is copied, for a store of another sweep or a missing store.
void merge_stores(const StoredSweep& sweep, const std::vector<std::string>& hashes,
                  const std::vector<std::string>& paths, SweepStore& store);

}  // namespace roofcast
