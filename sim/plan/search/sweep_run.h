#pragma once
// Runs all points of a sweep on all cores, and stores each when it is done.

#include <atomic>
#include <functional>
#include <map>

#include "sim/plan/search/sweep.h"
#include "sim/plan/search/sweep_shard.h"

namespace roofcast {

struct SweepOutcome {
  std::vector<std::uint64_t> points;          ///< points of this shard, in order
  std::vector<std::string> hashes;            ///< one per point
  std::map<std::string, std::string> errors;  ///< by hash: combinations that cannot be read
  std::uint64_t found = 0, computed = 0;      ///< already in the store; run now
  bool interrupted = false;
};

using SweepProgress = std::function<void(std::uint64_t done, std::uint64_t of)>;

/// The description of the sweep for a store.
StoredSweep stored(const SweepSpec& sweep, Shard shard = {});

struct SweepParts {
  Shard shard;                     ///< to run
  std::vector<std::string> merge;  ///< stores whose finished points are copied first
};

/// Runs the points that the store lacks. `stop` ends the run after the points in progress. Throws the first ConfigError
/// if no point of the whole sweep can be read. `progress` may be null; it is called under a lock.
SweepOutcome run_sweep(const SweepSpec& sweep, Fidelity fidelity, SweepStore& store, const std::atomic<bool>& stop,
                       const SweepProgress& progress = nullptr, const SweepParts& parts = {});

}  // namespace roofcast
