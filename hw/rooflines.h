#pragma once
// Shares of the roofline that a library reaches, for kernels without models of their own.

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/config_reader.h"
#include "hw/cost.h"
#include "hw/gpu_spec.h"

namespace roofcast {

/// The shares that kernels reach which read weights of one format. The defaults apply to processors without kernel
/// models: llama.cpp on Apple's M1 Max and M2 Ultra reaches about 0.7 of both roofs in 16 bit, and half of the memory
/// bandwidth in 4 bit (github.com/ggml-org/llama.cpp/discussions/4167).
struct RooflineShares {
  double memory = 0.65;        ///< of the bandwidth
  double compute = 0.65;       ///< of the dense peak in the compute format
  double flops_per_cycle = 0;  ///< most operations of an SM per cycle of its boost clock; 0: no limit
};

/// How fast an SM unpacks weights and multiplies them, per cycle of its boost clock; 0: no limit.
struct UnpackRates {
  double values_per_cycle = 0;  ///< weights
  double flops_per_cycle = 0;
};

/// The weights of an operator.
struct WeightWork {
  Dtype format = Dtype::kBf16;
  double values = 0;  ///< weights that are read
  double tokens = 0;  ///< inputs of the operator
};

/// One library on one kind of processor.
struct RooflineBackend {
  std::string name = "roofline";
  std::vector<Architecture> architectures;
  std::string source;                  ///< source of the measurements; empty: none
  bool by_hand = false;                ///< chosen by hand to match a few speeds, not fitted
  Seconds operator_time{5e-6};         ///< fixed time per operator: launch, start and end
  double discrepancy = 0.35;           ///< relative standard deviation of predicted times
  std::array<RooflineShares, 3> wide;  ///< for weights of 16 bits or more, of 8, of 4 or fewer
  double few_tokens = 0;               ///< up to so many tokens, a vector kernel multiplies weights below 16 bits
  double pass_tokens = 0;              ///< a prompt passes the layers in parts of so many tokens; 0: at once
  UnpackRates few, many;               ///< of the vector kernel, and of the kernel for more tokens

  const RooflineShares& shares(Dtype weights) const {
    const double bits = element_bits(weights);
    return wide[bits > 8.0 ? 0 : bits > 4.0 ? 1 : 2];
  }
  /// Whether a model with these weights, whose attention reads 16 bits, meets a limit in cycles.
  bool counts_cycles(Dtype weights) const {
    return wide[0].flops_per_cycle > 0 || shares(weights).flops_per_cycle > 0 || few.values_per_cycle > 0 ||
           few.flops_per_cycle > 0 || many.values_per_cycle > 0 || many.flops_per_cycle > 0;
  }
};

/// The shares of one engine's library, by architecture: configs/rooflines/NAME.yaml.
struct Rooflines {
  std::string name;
  std::vector<RooflineBackend> backends;

  /// The backend of an architecture; assumed_roofline() if the library has none.
  const RooflineBackend& on(Architecture architecture) const;
};

/// {name, backends: [{name, architectures, source, by_hand, operator_time, discrepancy, few_tokens, pass_tokens, few,
/// many: {values_per_cycle, flops_per_cycle}, formats: {w16, w8, w4: {memory, compute, flops_per_cycle}}}]}
Rooflines parse_rooflines(ConfigReader in);
/// Cached. Throws ConfigError at `location`.
std::shared_ptr<const Rooflines> load_rooflines(const std::string& name, const SourceLocation& location);

/// Shares for a processor on which no library was measured.
const RooflineBackend& assumed_roofline();

/// The slowest of memory, matrix units and the limits of the SMs, plus the fixed time per operator:
///   t = max(bytes / (memory BW), t_peak / compute, flops / (flops_per_cycle SMs clock), t_unpack)
///       + operators x operator_time
///   t_unpack SMs clock = values / few.values_per_cycle + flops / few.flops_per_cycle     up to few_tokens
///                      = passes values / many.values_per_cycle + flops / many.flops_per_cycle, and no less than for
///                        few_tokens                                                       beyond
///                      = 0 for one token, passes values / many.values_per_cycle beyond    weights of 16 bits
///   passes = max(1, tokens / pass_tokens); 1 without pass_tokens
/// t_peak is the time of the work at the dense peak; `ideal` is the operator's datasheet roofline. The limits of an SM
/// apply only if the GPU's file gives the number of SMs.
Cost roofline_cost(const Cost& ideal, double operators, const WeightWork& weights, const GpuSpec& gpu,
                   const RooflineBackend& backend);

}  // namespace roofcast
