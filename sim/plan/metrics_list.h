#pragma once
// The result of a sweep point as names and values, and its text form in a store.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "sim/plan/estimate.h"
#include "sim/plan/scenario.h"

namespace roofcast {

using MetricValue = std::variant<double, bool, std::string>;
using MetricsList = std::vector<std::pair<std::string, MetricValue>>;

/// Names as in the JSON of `estimate` and `simulate`, flattened.
MetricsList metrics_of(const Estimate& estimate, const Deployment& deployment);
MetricsList metrics_of(const ServingMetrics& metrics, const Scenario& scenario);

/// One `name=value` per line; numbers are exact. from_text throws ConfigError for anything else.
std::string to_text(const MetricsList& metrics);
MetricsList metrics_from_text(std::string_view text);

/// Takes the first line off `text`: a name, and its value as to_text() writes it. Empty at the end.
std::optional<std::pair<std::string_view, std::string_view>> next_metric(std::string_view& text);
/// A number of such a value. Throws ConfigError if it is none.
double metric_number(std::string_view value);

}  // namespace roofcast
