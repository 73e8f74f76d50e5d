#include "hw/cost.h"

#include <algorithm>

#include "base/error.h"

namespace roofcast {

std::string_view name_of(Bound bound) {
  switch (bound) {
    case Bound::kCompute:
      return "compute";
    case Bound::kMemory:
      return "memory";
    case Bound::kLatency:
      return "latency";
    case Bound::kNetwork:
      return "network";
    case Bound::kHost:
      return "host";
  }
  fail_check("bound", __FILE__, __LINE__, "no such bound");
}

/// time = max(flops / peak, bytes / bandwidth): compute and memory traffic overlap perfectly. Source: Williams,
/// Waterman, Patterson, "Roofline", CACM 52(4), 2009. An operator without FLOPs needs no peak, so that copies can be
/// priced on a GPU without a unit for their format.
Cost roofline(Flops flops, Bytes bytes, FlopsPerSecond peak, BytesPerSecond bandwidth) {
  SIM_CHECK(flops.base() >= 0.0 && bytes.base() >= 0.0, "work and traffic must not be negative");
  SIM_CHECK(flops.base() == 0.0 || peak.base() > 0.0, "the GPU has no unit for this format");
  SIM_CHECK(bytes.base() == 0.0 || bandwidth.base() > 0.0, "a GPU without memory bandwidth");
  const Seconds compute = flops.base() > 0.0 ? flops / peak : Seconds{};
  const Seconds memory = bytes.base() > 0.0 ? bytes / bandwidth : Seconds{};
  return Cost{.time = std::max(compute, memory),
              .flops = flops,
              .bytes = bytes,
              .bound = compute > memory ? Bound::kCompute : Bound::kMemory};
}

}  // namespace roofcast
