#pragma once
// A grid of scenarios: which keys vary, over which values.

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/config_node.h"
#include "hw/cost.h"
#include "sim/plan/metrics_list.h"
#include "sim/plan/spec_cache.h"

namespace roofcast {

/// Keys that change together: one in a grid, several in a zip.
struct SweepAxis {
  std::vector<std::string> keys;
  std::vector<std::vector<ConfigTree>> values;  ///< per position, in the order of keys
};

struct SweepSpec {
  std::string name;
  bool simulate = false;
  ConfigTree scenario;
  std::vector<SweepAxis> axes;
  std::vector<std::pair<std::string, SourceLocation>> where;

  double grid_points() const;  ///< before `where`; a double, because it may be huge
};

/// Reads
///   scenario: FILE or mapping
///   run: estimate | simulate          (estimate)
///   grid: {dotted.key: [values]}      crossed; or {from, to, times} and {from, to, step} in place of the list
///   zip: {dotted.key: [values]}       side by side, of equal lengths
///   where: [conditions]               points to keep
/// Estimates have the additional keys batch, prompt_tokens, output_tokens and context.
SweepSpec parse_sweep(const ConfigTree& tree);

/// The scenario of a sweep with one value overridden. Throws ConfigError if the sweep varies that key; `origin` names
/// the flag.
ConfigTree with_fixed(const SweepSpec& sweep, const ConfigTree& scenario, const std::string& key,
                      const ConfigTree& value, const std::string& origin);

/// The scenario of one point of the grid; the last axis varies fastest.
ConfigTree point_scenario(const SweepSpec& sweep, std::uint64_t index);
/// That scenario without the additional keys of estimates.
ConfigTree without_request(const ConfigTree& scenario);
/// The values of a point as text, in the order of the axes' keys.
std::vector<std::string> point_values(const SweepSpec& sweep, std::uint64_t index);
std::vector<std::string> point_keys(const SweepSpec& sweep);

/// Points that `where` keeps, in order. Throws ConfigError if none is left.
std::vector<std::uint64_t> kept_points(const SweepSpec& sweep);

/// A hash of everything that a point's result depends on, as 32 hexadecimal digits.
std::string point_hash(const ConfigTree& scenario, bool simulate, Fidelity fidelity, SpecCache& specs);

/// Estimates or simulates points of one sweep; thread-safe. Estimates that differ only in their request share the
/// parsed scenario and a step model, whose prices do not depend on what it priced before.
class PointRunner {
 public:
  PointRunner(bool simulate, Fidelity fidelity, SpecCache& specs);
  ~PointRunner();
  /// If it does not fit, the result has `fits: false` and the reason; this is no error.
  MetricsList run(const ConfigTree& scenario);

 private:
  struct Read;
  MetricsList simulated(const ConfigTree& scenario);
  std::unique_ptr<Read> lend(const std::string& key, const ConfigTree& scenario);
  void take_back(const std::string& key, std::unique_ptr<Read> read);

  bool simulate_;
  Fidelity fidelity_;
  SpecCache& specs_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::vector<std::unique_ptr<Read>>> free_;  ///< by the scenario as text
  std::size_t kept_ = 0;                                                      ///< in all
};

}  // namespace roofcast
