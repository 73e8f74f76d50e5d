#pragma once
// A grid of estimates as columns, for callers that use arrays.

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sim/plan/search/sweep.h"

namespace roofcast::library {

/// NaN, false or an empty text if a point lacks the value.
using Column = std::variant<std::vector<double>, std::vector<std::uint8_t>, std::vector<std::string>>;

struct Grid {
  std::vector<std::vector<std::uint32_t>> positions;  ///< per point, the index of each axis in its values
  std::vector<std::pair<std::string, Column>> columns;
};

/// Estimates the points of the grid that satisfy `where`; the last axis varies fastest. Returns the metrics of a
/// sweep's points under their names, then "error" (text) if a combination is impossible. Throws the first error if all
/// are.
Grid estimate_grid(const SweepSpec& sweep, bool ideal,
                   const std::function<void(std::uint64_t done, std::uint64_t of)>& progress = {});

}  // namespace roofcast::library
