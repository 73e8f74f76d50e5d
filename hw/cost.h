#pragma once
#include <memory>
#include <string_view>

#include "base/units.h"

namespace roofcast {

struct GpuSpec;
struct RooflineBackend;
class Efficiency;

/// The resource that limits an operator.
enum class Bound { kCompute, kMemory, kLatency, kNetwork, kHost };
std::string_view name_of(Bound bound);

/// Time, work and traffic of an operator on one GPU.
struct Cost {
  Seconds time{};
  Flops flops{};
  Bytes bytes{};
  Bound bound = Bound::kMemory;
};

/// kIdeal: the datasheet roofline, without launches and efficiencies.
enum class Fidelity { kIdeal, kCalibrated };

/// The hardware that an operator runs on. `efficiency` may be null if fidelity is kIdeal.
struct Machine {
  const GpuSpec* gpu = nullptr;
  const Efficiency* efficiency = nullptr;
  Fidelity fidelity = Fidelity::kCalibrated;
  /// Prices the engine's kernels by shares of the roofline (hw/rooflines.h); null: each kernel by its own model.
  const RooflineBackend* roofline = nullptr;
  bool aiter = true;  ///< whether AMD's AITER kernels run; else Triton's (Efficiency::without_aiter)
};

/// The constants of a GPU on which no kernel was measured: priors price the default set of kernels.
std::shared_ptr<const Efficiency> nothing_measured();

/// max(flops / peak, bytes / bandwidth) at datasheet peaks: the ideal time of any operator.
Cost roofline(Flops flops, Bytes bytes, FlopsPerSecond peak, BytesPerSecond bandwidth);

}  // namespace roofcast
