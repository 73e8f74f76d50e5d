#pragma once
// A grid of scenarios: which keys vary, over which values.

#include <cstdint>
#include <string>
#include <vector>

#include "base/config_node.h"
#include "hw/cost.h"
#include "sim/plan/metrics_list.h"
#include "sim/plan/spec_cache.h"

namespace roofcast {

/// Keys that change side by side: one in a grid, several in a zip.
struct SweepAxis {
  std::vector<std::string> keys;
  std::vector<std::vector<ConfigTree>> values;  ///< of each position, in the order of keys
};

struct SweepSpec {
  std::string name;
  bool simulate = false;
  ConfigTree scenario;
  std::vector<SweepAxis> axes;
  std::vector<std::pair<std::string, Mark>> where;

  double grid_points() const;  ///< before `where`; a double, for it may be any number
};

/// Reads
///   scenario: FILE or mapping
///   run: estimate | simulate          (estimate)
///   grid: {dotted.key: [values]}      crossed; or {from, to, times} and {from, to, step} in place of the list
///   zip: {dotted.key: [values]}       side by side, of equal lengths
///   where: [conditions]               points to keep
/// An estimate has the keys batch, prompt_tokens, output_tokens and context of its own.
SweepSpec parse_sweep(const ConfigTree& tree);

/// The scenario of a sweep with a value laid over it. Throws where the sweep varies that key itself; `origin` names the
/// flag.
ConfigTree with_fixed(const SweepSpec& sweep, const ConfigTree& scenario, const std::string& key,
                      const ConfigTree& value, const std::string& origin);

/// The scenario of one point of the grid; the last axis runs fastest.
ConfigTree point_scenario(const SweepSpec& sweep, std::uint64_t index);
/// Its values as text, in the order of the axes' keys.
std::vector<std::string> point_values(const SweepSpec& sweep, std::uint64_t index);
std::vector<std::string> point_keys(const SweepSpec& sweep);

/// Points that `where` keeps, in order. Throws ConfigError when none is left.
std::vector<std::uint64_t> kept_points(const SweepSpec& sweep);

/// Everything that a point's result depends on, as 32 hexadecimal digits.
std::string point_hash(const ConfigTree& scenario, bool simulate, Fidelity fidelity, SpecCache& specs);

/// Estimates or simulates a point. What does not fit has `fits: false` and the reason, not an error.
MetricsList run_point(const ConfigTree& scenario, bool simulate, Fidelity fidelity, SpecCache& specs);

}  // namespace roofcast
