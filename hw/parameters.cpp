#include "hw/parameters.h"

#include <algorithm>

namespace roofcast {
namespace {

constexpr std::array<std::string_view, 3> kProvenanceNames{"measured", "carried_over", "datasheet"};

/// A list in the order of the fields, or a map by name; a field that the map lacks was fixed: 0.
std::vector<double> read_standard_errors(ConfigReader& fit, std::span<const std::string_view> parameter_names) {
  constexpr std::string_view kKey = "standard_errors";
  if (!fit.has(kKey)) {
    fit.ignore(kKey);
    return {};
  }
  if (fit.whole()->find(kKey)->get()->kind == ConfigNode::Kind::kList) {
    std::vector<double> listed = fit.numbers(kKey, kAtLeastZero);
    if (!listed.empty() && listed.size() != parameter_names.size()) {
      fit.fail(kKey, "must have one value per parameter, " + std::to_string(parameter_names.size()) + ", not " +
                         std::to_string(listed.size()));
    }
    return listed;
  }
  ConfigReader named = fit.child(kKey);
  std::vector<double> errors;
  for (const std::string_view name : parameter_names) errors.push_back(named.number(name, 0.0, kAtLeastZero));
  named.finish();
  return errors;
}

}  // namespace

std::string_view name_of(Transfer transfer) {
  switch (transfer) {
    case Transfer::kKept:
      return "kept";
    case Transfer::kCycles:
      return "cycles";
    case Transfer::kLaunch:
      return "cycles, except for the gap between graphs";
    case Transfer::kHost:
      return "host";
    case Transfer::kMemoryShare:
      return "memory share";
    case Transfer::kExponential:
      return "exponentials";
    case Transfer::kL2Rate:
      return "L2 rate";
    case Transfer::kL2OverMemory:
      return "L2 over memory";
    case Transfer::kTileIntensity:
      return "matrix units";
  }
  fail_check("transfer", __FILE__, __LINE__, "no such transfer");
}

std::string_view name_of(Provenance provenance) {
  const auto index = static_cast<std::size_t>(provenance);
  SIM_CHECK(index < kProvenanceNames.size(), "no such standing");
  return kProvenanceNames[index];
}

FitRecord read_fit_record(ConfigReader& in, std::span<const std::string_view> parameter_names) {
  FitRecord record;
  std::optional<ConfigReader> fit = in.optional_child("fit");
  if (!fit) return record;
  record.provenance = static_cast<Provenance>(
      fit->choice("standing", kProvenanceNames, static_cast<std::size_t>(Provenance::kMeasured)));
  record.source = fit->text("source", "");
  record.rows = static_cast<int>(fit->integer("rows", 0, Range{0, 1e9}));
  record.mape = fit->number("mape", 0.0, kAtLeastZero);
  record.discrepancy = fit->number("discrepancy", record.discrepancy, kAtLeastZero);
  record.discrepancy_elsewhere = fit->number("discrepancy_elsewhere", 0.0, kAtLeastZero);
  record.standard_errors = read_standard_errors(*fit, parameter_names);
  fit->finish();
  return record;
}

}  // namespace roofcast
