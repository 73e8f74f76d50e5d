#include "hw/carry_over.h"

#include <algorithm>
#include <string_view>

#include "hw/kernels/gemm_tiles.h"

namespace roofcast {
namespace {

/// New over old.
struct Ratios {
  double time = 1.0;       ///< of a cycle
  double l2 = 1.0;         ///< L2 bandwidth, SMs x clock
  double memory = 1.0;     ///< DRAM bandwidth
  double intensity = 1.0;  ///< operations a cycle and SM, in the format of the block
};

/// Is it a time that the GPU takes? The unit stands in the name: launch_us, us_per_expert, token_ns, issue_ns_per_kb.
bool in_cycles(std::string_view name) {
  if (name.starts_with("eager_") || name.starts_with("host_") || name.starts_with("network_")) return false;
  for (std::size_t from = 0; from < name.size();) {
    const std::size_t end = std::min(name.find('_', from), name.size());
    const std::string_view word = name.substr(from, end - from);
    if (word == "us" || word == "ns") return true;
    from = end + 1;
  }
  return false;
}

double factor_of(std::string_view name, const Ratios& r) {
  if (in_cycles(name)) return r.time;
  if (name == "l2_bandwidth_tb_per_s") return r.l2;
  if (name == "l2_bandwidth_ratio" || name == "quantization_l2_ratio") return r.l2 / r.memory;  // held over DRAM's
  if (name == "tile_intensity") return r.intensity;
  return 1.0;
}

double operations_per_cycle(const GpuSpec& gpu, Dtype dtype) {
  return gpu.peak(dtype).base() / gpu.sm_count / gpu.boost_clock.base();
}

/// From Hopper on, clusters load a tile's operands once for several SMs, and the tile that feeds them follows no rule.
bool shares_loads(const GpuSpec& gpu) { return !has_mma_sync_only(gpu); }

Ratios ratios_of(const GpuSpec& from, const GpuSpec& to, Dtype dtype) {
  Ratios r{.memory = to.memory_bandwidth / from.memory_bandwidth};
  if (from.boost_clock.base() <= 0.0 || to.boost_clock.base() <= 0.0) return r;
  r.time = from.boost_clock / to.boost_clock;
  r.l2 = static_cast<double>(to.sm_count) / from.sm_count / r.time;
  const double before = operations_per_cycle(from, dtype), now = operations_per_cycle(to, dtype);
  if (!shares_loads(to) && before > 0.0 && now > 0.0) r.intensity = now / before;
  return r;
}

/// Matrix units at the limit of the board's power run no faster, whatever a kernel reached elsewhere.
void limit(GemmParameters& p, double most) {
  p.compute_efficiency = std::min(most / p.sustained_clock, p.compute_efficiency);
}
template <class P>
void limit(P& p, double most) {
  if constexpr (requires { p.compute_fraction; }) p.compute_fraction = std::min(p.compute_fraction, most);
}

template <class P>
void convert(ByDtype<P>& blocks, const GpuSpec& from, const GpuSpec& to, const CarryOver& how) {
  for (std::size_t i = 0; i < kDtypeCount; ++i) {
    const auto dtype = static_cast<Dtype>(i);
    const Fitted<P>* old = blocks.find(dtype);
    if (old == nullptr) continue;
    Fitted<P> fitted = *old;
    const Ratios ratios = ratios_of(from, to, dtype);
    for (const Parameter<P>& field : P::fields()) {
      double& value = fitted.value.*field.member;
      value = std::clamp(value * factor_of(field.name, ratios), field.low, field.high);
    }
    limit(fitted.value, how.matrix_limit);
    fitted.record.standing = Standing::kCarriedOver;
    fitted.record.discrepancy *= how.widening;
    blocks.put(dtype, std::move(fitted));
  }
}

}  // namespace

Efficiency carry_over(Efficiency measured, const GpuSpec& from, const GpuSpec& to, const CarryOver& how) {
  for_each_family(measured, [&](auto& blocks) { convert(blocks, from, to, how); });
  if (measured.carried_over_from.empty()) measured.carried_over_from = from.name;
  return measured;
}

}  // namespace roofcast
