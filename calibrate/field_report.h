#pragma once
// What a fit reports about a constant.

#include <string_view>

namespace roofcast::calibrate {

enum class FieldState { kFitted, kFixed, kAtBound, kNotIdentified, kPooled };
std::string_view name_of(FieldState state);

struct FieldReport {
  std::string_view name;
  double value = 0, standard_error = 0;
  FieldState state = FieldState::kFitted;
  /// Whether the rows determined it. Else it is assumed, or inherited from another block.
  bool is_determined() const { return state == FieldState::kFitted || state == FieldState::kAtBound; }
};

}  // namespace roofcast::calibrate
