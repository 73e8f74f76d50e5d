#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "roofcast/units.h"

namespace roofcast {
inline namespace v0 {

/// A result: numbers and texts under dotted keys such as "memory.weight_bytes" or "operators.0.time_us". The keys are
/// those of `roofcast ... --format json`, described in docs/metrics.md.
class Result {
 public:
  /// "estimate", "simulation", "plan", or "services_plan" for a plan of several services.
  const std::string& kind() const;
  /// Version of the keys of this kind; it increases when a key is renamed or removed.
  int schema() const;

  /// False if no answer exists: the model does not fit, or nothing meets the objectives. reason() then says why. An
  /// estimate still has its numbers, and a plan the nearest deployment.
  bool answered() const;
  const std::string& reason() const;
  /// What the program says beside an answer: settings without an effect, why the launch may fail, assumptions. A line
  /// each.
  const std::vector<std::string>& notes() const;

  /// These throw Error if the key is missing, has another type, or ends in another unit.
  double number(std::string_view key) const;
  Seconds time(std::string_view key) const;  ///< for keys that end in _s, _ms or _us, and "duration"
  Bytes bytes(std::string_view key) const;   ///< for keys in bytes
  bool flag(std::string_view key) const;
  std::string text(std::string_view key) const;
  std::size_t size(std::string_view key) const;  ///< number of entries of a list
  bool has(std::string_view key) const;
  /// The names in a map; without a key, those of the whole result.
  std::vector<std::string> keys(std::string_view key = {}) const;

  /// The whole result as the program prints it; empty if there are no numbers.
  const std::string& json() const;

  struct State;
  explicit Result(std::shared_ptr<const State> state);  ///< for internal use

 private:
  std::shared_ptr<const State> state_;
};

}  // namespace v0
}  // namespace roofcast
