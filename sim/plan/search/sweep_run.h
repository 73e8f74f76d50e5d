#pragma once
// All points of a sweep on all cores, each kept in the store when it is done.

#include <atomic>
#include <functional>

#include "sim/plan/search/sweep_crew.h"
#include "sim/plan/search/sweep_store.h"

namespace roofcast {

struct SweepOutcome {
  std::vector<std::uint64_t> points;          ///< kept by `where`, in order
  std::vector<std::string> hashes;            ///< one a point
  std::map<std::string, std::string> errors;  ///< by hash: combinations that cannot be read
  std::uint64_t found = 0, computed = 0;      ///< already in the store; run now
  bool interrupted = false;
};

using SweepProgress = std::function<void(std::uint64_t done, std::uint64_t of)>;

/// What a store says of the sweep.
StoredSweep stored(const SweepSpec& sweep);

/// Runs what the store lacks. `stop` ends it after the points under way. Throws the first ConfigError when no point
/// could be read at all. `progress` may be null; it is called under a lock. With a crew the points are spread over its
/// ranks.
SweepOutcome run_sweep(const SweepSpec& sweep, Fidelity fidelity, SweepStore& store, const std::atomic<bool>& stop,
                       const SweepProgress& progress = nullptr, SweepCrew* crew = nullptr);

}  // namespace roofcast
