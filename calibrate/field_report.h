#pragma once
// What a fit says of a constant.

#include <string_view>

namespace roofcast::calibrate {

enum class FieldState { kFitted, kFixed, kAtBound, kNotIdentified, kPooled };
std::string_view name_of(FieldState state);

struct FieldReport {
  std::string_view name;
  double value = 0, standard_error = 0;
  FieldState state = FieldState::kFitted;
  /// Was it told by the rows? Else it is assumed, or another block's.
  bool told() const { return state == FieldState::kFitted || state == FieldState::kAtBound; }
};

}  // namespace roofcast::calibrate
