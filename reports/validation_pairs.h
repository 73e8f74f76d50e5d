#pragma once
// Measured and predicted values by group, from the tables of `validate --out`.

#include <string>
#include <vector>

#include "reports/result_file.h"

namespace roofcast::reports {

struct ValidationGroup {
  std::string name{};
  std::vector<double> measured{}, predicted{};
  std::vector<std::string> labels{};
  double mape = 0;  ///< percent
};

struct ValidationPairs {
  std::string id{}, name{}, unit{};  ///< "ttft", "TTFT", "ms"
  std::vector<ValidationGroup> groups{};
  std::size_t rows = 0, skipped = 0;
  double mape = 0, median = 0, within_ten = 0;  ///< percent
};

/// One entry per predicted column; rows without a positive pair are counted in `skipped`.
std::vector<ValidationPairs> validation_pairs(const Result& result);

}  // namespace roofcast::reports
