#include "sim/plan/kernel_release.h"

#include <vector>

#include "base/config_release.h"
#include "hw/parameters.h"
#include "sim/step/deployment.h"
#include "sim/step/operator_error.h"

namespace roofcast {

std::optional<KernelRelease> kernel_release(const Deployment& d) {
  if (d.fidelity == Fidelity::kIdeal || d.roofline() != nullptr) return std::nullopt;
  const FitRecord* record = record_of(GemmShape{.weights = d.precision.weights}, *d.efficiency, d.gpu);
  if (record == nullptr) return std::nullopt;
  const std::size_t comma = record->source.rfind(", ");
  const std::string last = comma == std::string::npos ? record->source : record->source.substr(comma + 2);
  const std::size_t dash = last.find('-');
  if (dash == std::string::npos || version_numbers(last.substr(dash + 1)).size() < 2) return std::nullopt;
  return KernelRelease{last.substr(0, dash), last.substr(dash + 1)};
}

bool has_kernels_of_another_engine(const Deployment& d) {
  const std::optional<KernelRelease> measured = kernel_release(d);
  return measured && measured->engine != d.engine.name;
}

bool has_kernels_of_another_release(const Deployment& d) {
  const std::optional<KernelRelease> measured = kernel_release(d);
  if (!measured) return false;
  std::vector<int> theirs = version_numbers(measured->version), ours = version_numbers(d.engine.version);
  theirs.resize(2, 0), ours.resize(2, 0);
  return measured->engine != d.engine.name || theirs != ours;
}

}  // namespace roofcast
