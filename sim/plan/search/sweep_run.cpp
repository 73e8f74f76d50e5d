#include "sim/plan/search/sweep_run.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "sim/plan/parallel.h"

namespace roofcast {
namespace {

/// Indices of the points to run: not in the store, one per hash.
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
  std::unordered_set<std::string_view> claimed;
  std::erase_if(missing, [&](std::size_t i) { return !claimed.insert(out.hashes[i]).second; });
  return missing;
}

using PointErrors = std::map<std::size_t, std::string>;  ///< by index, so that the first error is deterministic

/// The result of one point: its metrics as text, or why it cannot be read.
struct PointResult {
  std::string result, error;
  double seconds = 0;
};

PointResult run_one_point(const SweepSpec& sweep, std::uint64_t point, PointRunner& runner) {
  PointResult out;
  const auto start = std::chrono::steady_clock::now();
  try {
    out.result = to_text(runner.run(point_scenario(sweep, point)));
  } catch (const ConfigError& e) {
    out.error = e.what();
  }
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return out;
}

std::vector<std::uint64_t> points_of(const SweepSpec& sweep, Shard shard) {
  std::vector<std::uint64_t> points;
  const std::vector<std::uint64_t> kept = kept_points(sweep);
  for (std::uint64_t i = shard.index - 1; i < kept.size(); i += shard.count) points.push_back(kept[i]);
  return points;
}

/// Hashes every point. A point with an unknown name has no hash; it is among the errors.
PointErrors hash_points(const SweepSpec& sweep, Fidelity fidelity, SpecCache& specs, SweepOutcome& out) {
  PointErrors errors;
  std::mutex mutex;
  out.hashes.resize(out.points.size());
  parallel_for_each_index(out.points.size(), [&](std::size_t i) {
    try {
      out.hashes[i] = point_hash(point_scenario(sweep, out.points[i]), sweep.simulate, fidelity, specs);
    } catch (const ConfigError& error) {
      const std::lock_guard lock(mutex);
      out.hashes[i] = "unreadable " + std::to_string(out.points[i]);
      errors.emplace(i, error.what());
    }
  });
  return errors;
}

}  // namespace

namespace {

/// The name that every point has for this key of the scenario; empty if it varies.
std::string fixed_name(const SweepSpec& sweep, const std::vector<std::string>& keys, const char* key) {
  const bool varies = std::any_of(keys.begin(), keys.end(), [&](const std::string& k) {
    return k == key || k.starts_with(std::string(key) + ".");
  });
  const ConfigTree* value = sweep.scenario->find(key);
  if (varies || value == nullptr) return "";
  if ((*value)->kind == ConfigNode::Kind::kScalar) return (*value)->scalar;
  const ConfigTree* name = (*value)->find("name");
  return name != nullptr && (*name)->kind == ConfigNode::Kind::kScalar ? (*name)->scalar : "";
}

}  // namespace

StoredSweep stored(const SweepSpec& sweep, Shard shard) {
  const std::vector<std::string> keys = point_keys(sweep);
  return {.name = sweep.name,
          .run = sweep.simulate ? "simulate" : "estimate",
          .keys = keys,
          .shard = shard.text(),
          .model = fixed_name(sweep, keys, "model"),
          .gpu = fixed_name(sweep, keys, "gpu")};
}

SweepOutcome run_sweep(const SweepSpec& sweep, Fidelity fidelity, SweepStore& store, const std::atomic<bool>& stop,
                       const SweepProgress& progress, const SweepParts& parts) {
  SpecCache specs;
  SweepOutcome out;
  out.points = points_of(sweep, parts.shard);
  PointErrors errors = hash_points(sweep, fidelity, specs, out);
  if (!parts.merge.empty()) merge_stores(stored(sweep), out.hashes, parts.merge, store);
  store.describe(stored(sweep, parts.shard), out.hashes,
                 [&](std::size_t i) { return point_values(sweep, out.points[i]); });
  std::vector<std::size_t> missing = missing_points(out, store);
  std::erase_if(missing, [&](std::size_t i) { return errors.count(i) > 0; });
  PointRunner runner(sweep.simulate, fidelity, specs);
  std::mutex mutex;
  bool keeping = true;  // false after a storage failure: only the first one is reported
  parallel_for_each_index(missing.size(), [&](std::size_t m) {
    if (stop) return;
    const std::size_t i = missing[m];
    const PointResult r = run_one_point(sweep, out.points[i], runner);
    const std::lock_guard lock(mutex);
    if (!std::exchange(keeping, false)) return;
    if (r.error.empty()) {
      store.add(out.hashes[i], r.result, r.seconds);
    } else {
      errors.emplace(i, r.error);
    }
    ++out.computed;
    if (progress) progress(out.computed, missing.size());
    keeping = true;
  });
  store.commit();
  out.interrupted = stop && out.computed < missing.size();
  for (const auto& [i, error] : errors) out.errors.emplace(out.hashes[i], error);
  const bool nothing = std::all_of(out.hashes.begin(), out.hashes.end(),
                                   [&](const std::string& hash) { return out.errors.count(hash) > 0; });
  if (nothing && parts.shard.count == 1) throw ConfigError(errors.begin()->second);
  return out;
}

}  // namespace roofcast
