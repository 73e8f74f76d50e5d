#pragma once
#include <pybind11/pybind11.h>
#include <nlohmann/json.hpp>

namespace roofcast::python {

/// dict, list, str, bool, int, float, None. What JSON cannot hold (NaN, infinities) is None, as json.loads() of the
/// text would say.
pybind11::object object_of(const nlohmann::ordered_json& json);

}  // namespace roofcast::python
