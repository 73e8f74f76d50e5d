#pragma once
#include <pybind11/pybind11.h>
#include <nlohmann/json.hpp>

namespace roofcast::python {

/// Returns dict, list, str, bool, int, float or None. What JSON cannot represent (NaN, infinities) becomes None, as in
/// json.loads() of the text.
pybind11::object object_of(const nlohmann::ordered_json& json);

}  // namespace roofcast::python
