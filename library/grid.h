#pragma once
// A grid of estimates as columns, for callers that hold arrays.

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sim/plan/search/sweep.h"

namespace roofcast::library {

/// NaN, false or an empty text where a point lacks the value.
using Column = std::variant<std::vector<double>, std::vector<std::uint8_t>, std::vector<std::string>>;

struct Grid {
  std::vector<std::vector<std::uint32_t>> positions;  ///< of each axis in its values, one a point
  std::vector<std::pair<std::string, Column>> columns;
};

/// Estimates the points of the grid that `where` keeps, the last axis fastest: the metrics of a sweep's points under
/// their names, then "error" (a text) where a combination is not possible. Throws the first error when none is.
Grid estimate_grid(const SweepSpec& sweep, bool ideal,
                   const std::function<void(std::uint64_t done, std::uint64_t of)>& progress = {});

}  // namespace roofcast::library
