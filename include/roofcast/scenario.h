#pragma once
#include <concepts>
#include <memory>
#include <string>
#include <string_view>

namespace roofcast {
inline namespace v0 {

struct ScenarioTree;

/// The input: model, GPU, engine, parallelism, precision, workload, objectives; for a plan also its search. The keys
/// are those of scenario files (docs/serving.md). Copies are cheap, because they share unchanged parts.
class Scenario {
 public:
  /// An empty scenario; set all keys with set().
  Scenario();
  /// Reads a YAML file, or the scenario of that name in configs/scenarios. Throws Error.
  static Scenario from_file(const std::string& path_or_name);
  /// The same for a plan in configs/plans.
  static Scenario from_plan(const std::string& path_or_name);
  /// Parses YAML text; `name` is used as its path in messages. Throws Error.
  static Scenario from_text(std::string_view yaml, const std::string& name = "scenario");

  /// Sets a dotted key, like `--set KEY=VALUE`: set("parallelism.tp", 4), set("gpu", "h100-sxm"),
  /// set("workload.arrivals.rate", "6 /s"). `value` is YAML text with units. Names are checked when the scenario is
  /// used.
  Scenario& set(std::string_view key, std::string_view value);
  Scenario& set(std::string_view key, double value);
  Scenario& set(std::string_view key, std::same_as<bool> auto value) { return set(key, value ? "true" : "false"); }

  /// The whole scenario as YAML text for from_text().
  std::string yaml() const;

  const ScenarioTree& tree() const { return *tree_; }  ///< for internal use

 private:
  explicit Scenario(std::shared_ptr<const ScenarioTree> tree);
  std::shared_ptr<const ScenarioTree> tree_;
};

/// ideal: the datasheet roofline. calibrated: with constants fitted to measurements.
enum class Fidelity { ideal, calibrated };

}  // namespace v0
}  // namespace roofcast
