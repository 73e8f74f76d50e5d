#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "roofcast/units.h"

namespace roofcast {
inline namespace v0 {

/// An answer: named numbers and texts under dotted keys such as "memory.weight_bytes" or "operators.0.time_us". They
/// are those of `roofcast ... --format json`, which docs/metrics.md explains.
class Result {
 public:
  /// "estimate", "simulation", "plan" or, of several services, "services_plan".
  const std::string& kind() const;
  /// Version of the keys of this kind: it grows when a key is renamed or dropped.
  int schema() const;

  /// False when no answer exists: the model does not fit, nothing meets the objectives. reason() then says why. An
  /// estimate has its numbers all the same, and a plan the nearest deployment.
  bool answered() const;
  const std::string& reason() const;
  /// What the program says beside an answer: settings without an effect, why the launch may fail, assumptions. A line
  /// each.
  const std::vector<std::string>& notes() const;

  /// Each throws Error where the key is missing, is of another type, or ends in another unit.
  double number(std::string_view key) const;
  Seconds time(std::string_view key) const;  ///< of a key in _s, _ms or _us, or "duration"
  Bytes bytes(std::string_view key) const;   ///< of a key in bytes
  bool flag(std::string_view key) const;
  std::string text(std::string_view key) const;
  std::size_t size(std::string_view key) const;  ///< entries of a list
  bool has(std::string_view key) const;
  /// The names in a map; without a key, those of the whole result.
  std::vector<std::string> keys(std::string_view key = {}) const;

  /// Everything, as the program prints it; empty when there are no numbers at all.
  const std::string& json() const;

  struct State;
  explicit Result(std::shared_ptr<const State> state);  ///< for the library itself

 private:
  std::shared_ptr<const State> state_;
};

}  // namespace v0
}  // namespace roofcast
