#include "sim/plan/search/sweep_run.h"
#include "sim/plan/parallel.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace roofcast {
namespace {

/// Positions of the points to run: not in the store, each hash once.
std::vector<std::size_t> missing_points(SweepOutcome& out, const SweepStore& store) {
  std::unordered_set<std::string> known = store.hashes();
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < out.hashes.size(); ++i) {
    if (known.count(out.hashes[i]) > 0) {
      ++out.found;
    } else {
      missing.push_back(i);
    }
  }
  std::unordered_set<std::string> claimed;
  std::erase_if(missing, [&](std::size_t i) { return !claimed.insert(out.hashes[i]).second; });
  return missing;
}

using PointErrors = std::map<std::size_t, std::string>;  ///< by position, so that the first is the same every time
using Keep = std::function<void(std::size_t, const PointResult&)>;

/// A hash for every point. Those that cannot be, where a name stands for nothing, are among the errors.
PointErrors hash_points(const SweepSpec& sweep, Fidelity fidelity, SpecCache& specs, SweepOutcome& out) {
  PointErrors errors;
  std::mutex mutex;
  out.hashes.resize(out.points.size());
  parallel_for_each_index(out.points.size(), [&](std::size_t i) {
    try {
      out.hashes[i] = point_hash(point_scenario(sweep, out.points[i]), sweep.simulate, fidelity, specs);
    } catch (const ConfigError& error) {
      const std::lock_guard lock(mutex);
      out.hashes[i] = "unreadable " + std::to_string(i);
      errors.emplace(i, error.what());
    }
  });
  return errors;
}

void run_by_crew(SweepCrew& crew, const std::vector<std::uint64_t>& points, const std::vector<std::size_t>& missing,
                 const SweepCrew::Compute& compute, const Keep& keep, const std::atomic<bool>& stop) {
  std::unordered_map<std::uint64_t, std::size_t> positions;
  std::vector<std::uint64_t> wanted;
  for (const std::size_t i : missing) positions.emplace(points[i], i), wanted.push_back(points[i]);
  crew.run(
      wanted, compute, [&](PointResult&& r) { keep(positions.at(r.point), r); }, stop);
}

/// On all cores of this machine; results are kept one at a time, and none after one that could not be: what a store
/// says of a failed write is of the first.
void run_here(const std::vector<std::uint64_t>& points, const std::vector<std::size_t>& missing,
              const SweepCrew::Compute& compute, const Keep& keep, const std::atomic<bool>& stop) {
  std::mutex mutex;
  bool keeping = true;
  parallel_for_each_index(missing.size(), [&](std::size_t m) {
    if (stop) return;
    const PointResult r = compute(points[missing[m]]);
    const std::lock_guard lock(mutex);
    if (!std::exchange(keeping, false)) return;
    keep(missing[m], r);
    keeping = true;
  });
}

}  // namespace

StoredSweep stored(const SweepSpec& sweep) {
  return {.name = sweep.name, .run = sweep.simulate ? "simulate" : "estimate", .keys = point_keys(sweep)};
}

SweepOutcome run_sweep(const SweepSpec& sweep, Fidelity fidelity, SweepStore& store, const std::atomic<bool>& stop,
                       const SweepProgress& progress, SweepCrew* crew) {
  SpecCache specs;
  SweepOutcome out;
  out.points = kept_points(sweep);
  PointErrors errors = hash_points(sweep, fidelity, specs, out);
  store.describe(stored(sweep), out.hashes, [&](std::size_t i) { return point_values(sweep, out.points[i]); });
  std::vector<std::size_t> missing = missing_points(out, store);
  std::erase_if(missing, [&](std::size_t i) { return errors.count(i) > 0; });
  const auto keep = [&](std::size_t i, const PointResult& r) {
    if (r.error.empty()) {
      store.add(out.hashes[i], r.result, r.seconds);
    } else {
      errors.emplace(i, r.error);
    }
    ++out.computed;
    if (progress) progress(out.computed, missing.size());
  };
  const auto compute = [&](std::uint64_t point) { return run_one_point(sweep, point, fidelity, specs); };
  if (crew != nullptr) {
    run_by_crew(*crew, out.points, missing, compute, keep, stop);
  } else {
    run_here(out.points, missing, compute, keep, stop);
  }
  store.commit();
  out.interrupted = stop && out.computed < missing.size();
  for (const auto& [i, error] : errors) out.errors.emplace(out.hashes[i], error);
  const bool nothing = std::all_of(out.hashes.begin(), out.hashes.end(),
                                   [&](const std::string& hash) { return out.errors.count(hash) > 0; });
  if (nothing) throw ConfigError(errors.begin()->second);
  return out;
}

}  // namespace roofcast
