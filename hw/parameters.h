#pragma once
// Calibrated constants: named, bounded, with their provenance. A parameter struct P lists its fields once; reading,
// writing, fitting, printing and transferring constants use that list.

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_reader.h"

namespace roofcast {

/// How a constant is transferred to an unmeasured GPU: docs/equations.md#gpus-without-measurements.
enum class Transfer {
  kKept,           ///< unchanged: a share of a peak, a count, or a time of the network or the memory
  kCycles,         ///< a time on the SMs: scales with the clock
  kLaunch,         ///< as kCycles, for a kernel alone in a graph: the gap between two graphs is unchanged
  kHost,           ///< a time on the host: scales with its speed and its launches
  kMemoryShare,    ///< a share of the memory bandwidth: the missing part is lost on the SMs
  kExponential,    ///< a time of the special function units
  kL2Rate,         ///< a rate of L2: scales with SMs x clock
  kL2OverMemory,   ///< a rate of L2 over that of the memory
  kTileIntensity,  ///< elements that saturate the matrix units: operations per cycle and SM
};

std::string_view name_of(Transfer transfer);

/// One calibrated constant of P. The member's default is its prior, which applies without a measurement.
template <class P>
struct Parameter {
  std::string_view name;  ///< the YAML key, ending in the unit: launch_us, bandwidth_fraction
  double P::*member = nullptr;
  double low = 0, high = 0;  ///< physical bounds
  Transfer transfer = Transfer::kKept;
  std::string_view meaning;  ///< one line
  bool fixed = false;        ///< fixed: fits leave it at its prior
};

/// Concatenates lists.
template <class T, std::size_t... N>
constexpr auto joined(const std::array<T, N>&... lists) {
  std::array<T, (N + ...)> all{};
  std::size_t at = 0;
  const auto append = [&](const auto& list) {
    for (const T& item : list) all[at++] = item;
  };
  (append(lists), ...);
  return all;
}

/// The provenance of a set of constants.
enum class Provenance { kMeasured, kCarriedOver, kDatasheet };
std::string_view name_of(Provenance provenance);

/// Relative standard deviation where a kernel has no constants.
inline constexpr double kDiscrepancyOfPriors = 0.3;

struct FitRecord {
  Provenance provenance = Provenance::kDatasheet;
  std::string source;  ///< data set, engine version, date
  int rows = 0;
  double mape = 0.0;                    ///< of the fit on its own rows, as a fraction
  double discrepancy = 0.15;            ///< residual relative standard deviation of the model on left-out shapes
  double discrepancy_elsewhere = 0;     ///< the same for work of another kernel or tactic; 0: as `discrepancy`
  std::vector<double> standard_errors;  ///< in the order of the fields; empty = unknown

  double discrepancy_of(bool other_kernel) const {
    return other_kernel && discrepancy_elsewhere > 0.0 ? discrepancy_elsewhere : discrepancy;
  }
};

template <class P>
struct Fitted {
  P value;
  FitRecord record;
};

FitRecord read_fit_record(ConfigReader& in, std::span<const std::string_view> parameter_names);

/// {parameter: value, ..., fit: {standing, source, rows, mape, discrepancy, discrepancy_elsewhere, standard_errors}}
template <class P>
Fitted<P> read_fitted(ConfigReader in) {
  Fitted<P> fitted;
  std::vector<std::string_view> names;
  for (const Parameter<P>& field : P::fields()) {
    fitted.value.*field.member = in.number(field.name, fitted.value.*field.member, Range{field.low, field.high});
    names.push_back(field.name);
  }
  fitted.record = read_fit_record(in, names);
  in.finish();
  return fitted;
}

}  // namespace roofcast
