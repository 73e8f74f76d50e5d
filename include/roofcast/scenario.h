#pragma once
#include <concepts>
#include <memory>
#include <string>
#include <string_view>

namespace roofcast {
inline namespace v0 {

struct ScenarioTree;

/// What is asked about: model, GPU, engine, parallelism, precision, workload, objectives, and of a plan its search.
/// The keys are those of scenario files (docs/serving.md). A copy is cheap; it shares what it does not change.
class Scenario {
 public:
  /// Empty: every key is set below.
  Scenario();
  /// A YAML file, or the name of one in configs/scenarios.
  static Scenario from_file(const std::string& path_or_name);
  /// The same for a plan: configs/plans.
  static Scenario from_plan(const std::string& path_or_name);
  /// YAML text; `name` stands for its path in messages.
  static Scenario from_text(std::string_view yaml, const std::string& name = "scenario");

  /// Sets a dotted key, as `--set KEY=VALUE` does: set("parallelism.tp", 4), set("gpu", "h100-sxm"),
  /// set("workload.arrivals.rate", "6 /s"). `value` is YAML text; units are written out. Names are checked when the
  /// scenario is used.
  Scenario& set(std::string_view key, std::string_view value);
  Scenario& set(std::string_view key, double value);
  Scenario& set(std::string_view key, std::same_as<bool> auto value) { return set(key, value ? "true" : "false"); }

  /// The whole as YAML text, which from_text() reads.
  std::string yaml() const;

  const ScenarioTree& tree() const { return *tree_; }  ///< for the library itself

 private:
  explicit Scenario(std::shared_ptr<const ScenarioTree> tree);
  std::shared_ptr<const ScenarioTree> tree_;
};

/// ideal: the datasheet's roofline. calibrated: fitted to measurements.
enum class Fidelity { ideal, calibrated };

}  // namespace v0
}  // namespace roofcast
