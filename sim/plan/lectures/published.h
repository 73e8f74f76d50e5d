#pragma once
// Figures from publications: configs/published.

#include <string>
#include <vector>

namespace roofcast {

struct Published {
  std::string of, format, model, measure, source;
  double plain = 0, changed = 0;
  double change() const { return changed / plain - 1; }
};

/// The rows of configs/published/NAME.yaml. Throws ConfigError.
std::vector<Published> published(const std::string& name);

}  // namespace roofcast
