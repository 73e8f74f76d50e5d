#include "hw/carry_over.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/root_sum.h"
#include "hw/carried_power.h"
#include "hw/efficiency.h"
#include "hw/kernels/attention_math.h"
#include "hw/kernels/gemm/tiles.h"

namespace roofcast {
namespace {

/// Largest share of the datasheet bandwidth that a memory delivers to any kernel.
constexpr double kMemoryGives = 0.93;

/// The share of the memory bandwidth on another GPU. What a kernel loses beyond the memory's own loss is lost on the
/// SMs (bytes in flight, instructions), and that time scales with SMs x clock. On another generation's memory a share
/// does not rise, because that memory may deliver less (an L40S's GDDR6 stores its ECC bits in band), unless it runs
/// without ECC.
///   1 / share' = 1 / 0.93 + (1 / share - 1 / 0.93) memory / (SMs x clock), ratios of new to old
double share_of_memory(double share, const Ratios& r) {
  const double lost = std::max(0.0, 1.0 / share - 1.0 / kMemoryGives), longer = r.memory / r.l2 - 1.0;
  return 1.0 / (1.0 / share + lost * (r.other_memory ? std::max(0.0, longer) : longer));
}

/// With mma.sync, applying block scales costs as much as fp8 saves over 16 bit, so a higher peak does not help.
FlopsPerSecond rate_of(const GpuSpec& gpu, Dtype dtype) {
  const bool waits = dtype == Dtype::kFp8Block && has_mma_sync_only(gpu);
  return waits ? std::min(gpu.peak(dtype), 2.0 * gpu.peak(Dtype::kBf16)) : gpu.peak(dtype);
}

double operations_per_cycle(const GpuSpec& gpu, Dtype dtype) {
  return rate_of(gpu, dtype).base() / gpu.sm_count / gpu.boost_clock.base();
}

/// Whether the tile size that saturates the matrix units grows with their rate. From Hopper on, clusters load a tile's
/// operands once for several SMs. Between two such generations no rule is known.
bool feeds_alike(const GpuSpec& from, const GpuSpec& to) {
  return has_mma_sync_only(to) || from.architecture == to.architecture;
}

Ratios ratios_of(const GpuSpec& from, const GpuSpec& to, Dtype dtype) {
  Ratios r{.memory = to.memory_bandwidth / from.memory_bandwidth,
           .exponential = from.exponentials_per_clock / to.exponentials_per_clock,
           .host = from.node.host_speed * from.node.launch_speed / (to.node.host_speed * to.node.launch_speed)};
  if (dtype == Dtype::kInt4) dtype = Dtype::kBf16;  // unpacked to 16 bit, even if the units support int4
  const bool shared = from.peak(dtype).base() > 0.0;
  const Dtype known = shared ? dtype : Dtype::kBf16;  // the format whose constants a new format takes
  // Half the bits take half the energy: units at the same power do twice the operations.
  const double wider = shared || to.peak(dtype).base() <= 0.0 ? 1.0 : element_bits(dtype) / element_bits(known);
  const FlopsPerSecond peak = rate_of(from, known), next = wider * rate_of(to, shared || wider != 1.0 ? dtype : known);
  if (peak.base() > 0.0 && next.base() > 0.0 && from.board_power.value > 0.0 && to.board_power.value > 0.0)
    r.power = to.board_power.value / from.board_power.value / (next / peak);
  r.power *= to.machine.power / from.machine.power;
  if (from.boost_clock.base() <= 0.0 || to.boost_clock.base() <= 0.0) return r;
  r.time = from.boost_clock / to.boost_clock;
  r.exponential *= r.time;
  r.l2 = static_cast<double>(to.sm_count) / from.sm_count / r.time;
  const double before = operations_per_cycle(from, known), now = operations_per_cycle(to, dtype);
  if (before > 0.0 && now > 0.0) r.operations = now / before;
  if (feeds_alike(from, to)) r.intensity = r.operations;
  const bool by_mma_sync = has_mma_sync_only(from) && has_mma_sync_only(to);
  if (by_mma_sync || from.architecture == to.architecture) r.instructions = r.operations;
  return r;
}

}  // namespace

/// Attention was timed as a single kernel in its own CUDA graph. The gap between two graphs does not scale with the SM
/// clock.
double transferred(double value, Transfer transfer, const Ratios& r) {
  switch (transfer) {
    case Transfer::kKept:
      return value;
    case Transfer::kCycles:
      return value > 0.0 ? value * r.time : value;  // gemv_us may be negative and then stays unchanged
    case Transfer::kLaunch: {
      const double stays = std::min(value, attention::kLoneGraphGap.in(kMicrosecond));
      return stays + (value - stays) * r.time;
    }
    case Transfer::kHost:
      return value * r.host;
    case Transfer::kMemoryShare:
      return share_of_memory(value, r);
    case Transfer::kExponential:
      return value * r.exponential;
    case Transfer::kL2Rate:
      return value * r.l2;
    case Transfer::kL2OverMemory:
      return value * (r.l2 / r.memory);
    case Transfer::kTileIntensity:
      return value * r.intensity;
  }
  fail_check("transfer", __FILE__, __LINE__, "no such transfer");
}

void widen(FitRecord& record, double added) {
  record.discrepancy = root_sum_of_squares(record.discrepancy, added);
  if (record.discrepancy_elsewhere > 0.0)
    record.discrepancy_elsewhere = root_sum_of_squares(record.discrepancy_elsewhere, added);
}

void keep_gap(double& launch_us, double time) {
  constexpr double kBetweenKernelsUs = 1.0;
  if (time > 0.0) launch_us += std::min(launch_us / time, kBetweenKernelsUs) * (1.0 - time);
}

CarriedPower carried_power(const CarryOverCase& to) {
  const double ratio = to.ratios.power;
  if (ratio >= 1.0) return {.board = ratio};
  double watts = to.to.machine.power / to.from.machine.power;
  if (to.from.board_power.value > 0.0 && to.to.board_power.value > 0.0)
    watts *= to.to.board_power.value / to.from.board_power.value;
  const double board = std::min(1.0, std::max(ratio, watts));
  return {.board = board, .peak = ratio / board};
}

double clock_under_power(double watts) { return std::min(1.0, std::sqrt(watts)); }

int l2_partitions(const GpuSpec& gpu) {
  constexpr Bytes kOfDataCenters(164 * 1024.0);
  return has_mma_sync_only(gpu) && gpu.shared_memory_per_sm < kOfDataCenters ? 1 : 2;
}

double share_beside_instructions(double share, double longer) { return 1.0 / (1.0 + (1.0 / share - 1.0) * longer); }

CarryOverCase carry_over_case(const GpuSpec& from, const GpuSpec& to, const CarryOver& how, Dtype dtype) {
  CarryOverCase one{from, to, how, dtype, ratios_of(from, to, dtype)};
  one.ratios.other_memory = how.another_generation && how.memory_ecc;
  return one;
}

ConstantsBlock carried_for(const Kernel& kernel, const ConstantsBlock& block, Dtype runs, const GpuSpec& gpu) {
  if (!block.carried) return block;
  const CarriedFrom& from = *block.carried;
  return kernel.carried_over(carried_for(kernel, from.measured, runs, *from.gpu),
                             carry_over_case(*from.gpu, gpu, from.how, runs));
}

Efficiency carry_over(const Efficiency& measured, const GpuSpec& from, const GpuSpec& to, const CarryOver& how) {
  Efficiency out = measured;
  const auto source = std::make_shared<const GpuSpec>(from);
  for (const Kernel* kernel : kernels()) {
    for (std::size_t i = 0; i < kDtypeCount; ++i) {
      const auto dtype = static_cast<Dtype>(i);
      const ConstantsBlock& block = measured.block(*kernel, dtype);
      if (!block) continue;
      ConstantsBlock carried = kernel->carried_over(block, carry_over_case(from, to, how, dtype));
      carried.carried = std::make_shared<const CarriedFrom>(CarriedFrom{source, block, how});
      out.put_block(*kernel, dtype, std::move(carried));
    }
  }
  if (out.carried_over_from.empty() && !how.same_kind) out.carried_over_from = from.name;
  return out;
}

}  // namespace roofcast
