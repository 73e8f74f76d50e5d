#include "hw/carry_over.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <type_traits>

#include "hw/kernels/attention_math.h"
#include "hw/kernels/gemm_tiles.h"

namespace roofcast {
namespace {

/// New over old.
struct Ratios {
  double time = 1.0;         ///< of a cycle
  double l2 = 1.0;           ///< L2 bandwidth, SMs x clock
  double memory = 1.0;       ///< DRAM bandwidth
  double operations = 1.0;   ///< a cycle and SM, in the format of the block
  double intensity = 1.0;    ///< the same, where the tile that feeds the matrix units grows with them
  double exponential = 1.0;  ///< time of one on an SM
  double host = 1.0;         ///< time of a launch from the host
};

bool is_of_host(std::string_view name) { return name.starts_with("eager_") || name.starts_with("host_"); }

/// Is it a time that the GPU takes? The unit stands in the name: launch_us, us_per_expert, token_ns, issue_ns_per_kb.
bool in_cycles(std::string_view name) {
  if (name.starts_with("network_")) return false;
  for (std::size_t from = 0; from < name.size();) {
    const std::size_t end = std::min(name.find('_', from), name.size());
    const std::string_view word = name.substr(from, end - from);
    if (word == "us" || word == "ns") return true;
    from = end + 1;
  }
  return false;
}

double factor_of(std::string_view name, const Ratios& r) {
  if (is_of_host(name)) return in_cycles(name) ? r.host : 1.0;
  if (name == "score_ns") return r.exponential;
  if (name == "memory_step_us") return 1.0;  // waits for the memory
  if (in_cycles(name)) return r.time;
  if (name == "l2_bandwidth_tb_per_s") return r.l2;
  if (name == "l2_bandwidth_ratio" || name == "quantization_l2_ratio") return r.l2 / r.memory;  // held over DRAM's
  if (name == "tile_intensity") return r.intensity;
  return 1.0;
}

/// Attention was timed as a lone kernel in a graph of its own: the gap between two graphs does not follow the SMs'
/// clock.
template <class P>
double staying_us(std::string_view name) {
  constexpr bool kAttention = std::is_same_v<P, PrefillParameters> || std::is_same_v<P, DecodeParameters> ||
                              std::is_same_v<P, LatentPrefillParameters> || std::is_same_v<P, LatentDecodeParameters>;
  return kAttention && name.ends_with("launch_us") ? attention::kLoneGraphGap.in(kMicrosecond) : 0.0;
}

/// Latent prefill has one head dimension, so one share of the peak stands for products and exponentials: what it is
/// below 1 goes with the exponentials, per operation of the products.
void follow_exponentials(LatentPrefillParameters& p, double slower) {
  p.compute_fraction = 1.0 / (1.0 + (1.0 / p.compute_fraction - 1.0) * slower);
}
template <class P>
void follow_exponentials(P&, double) {}

/// Triton's loads of single elements take instructions, as many a cycle everywhere: the faster the matrix units, the
/// more it loses by them. 1: a kernel without them.
void follow_operations(MoeParameters& p, double faster) {
  if (p.unaligned_slowdown > 1.0) p.unaligned_slowdown = std::clamp(p.unaligned_slowdown * faster, 1.0, 10.0);
}
template <class P>
void follow_operations(P&, double) {}

double operations_per_cycle(const GpuSpec& gpu, Dtype dtype) {
  return gpu.peak(dtype).base() / gpu.sm_count / gpu.boost_clock.base();
}

/// Does the tile that feeds the matrix units grow with their rate? From Hopper on, clusters load a tile's operands once
/// for several SMs, and between two such generations it follows no rule.
bool feeds_alike(const GpuSpec& from, const GpuSpec& to) {
  return has_mma_sync_only(to) || from.architecture == to.architecture;
}

Ratios ratios_of(const GpuSpec& from, const GpuSpec& to, Dtype dtype) {
  Ratios r{.memory = to.memory_bandwidth / from.memory_bandwidth,
           .exponential = from.exponentials_per_clock / to.exponentials_per_clock,
           .host = from.node.host_speed * from.node.launch_speed / (to.node.host_speed * to.node.launch_speed)};
  if (from.boost_clock.base() <= 0.0 || to.boost_clock.base() <= 0.0) return r;
  r.time = from.boost_clock / to.boost_clock;
  r.exponential *= r.time;
  r.l2 = static_cast<double>(to.sm_count) / from.sm_count / r.time;
  const double before = operations_per_cycle(from, dtype), now = operations_per_cycle(to, dtype);
  if (before > 0.0 && now > 0.0) r.operations = now / before;
  if (feeds_alike(from, to)) r.intensity = r.operations;
  return r;
}

/// What carrying over adds to the relative standard deviation of a time, within a generation and from one to another:
/// about what brings nine of ten rows within the interval where H100 and H200 are predicted from each other, A100 and
/// H100 from each other and B200 from H100. How many are: docs/equations.md#gpus-without-measurements.
struct Transfer {
  double same, other;
};
template <class P>
constexpr Transfer kTransfer{0.05, 0.25};
template <>
constexpr Transfer kTransfer<GemmParameters>{0.05, 0.18};
template <>
constexpr Transfer kTransfer<LatentDecodeParameters>{0.1, 0.45};
template <>
constexpr Transfer kTransfer<MoeParameters>{0.05, 0.35};
template <>
constexpr Transfer kTransfer<StateParameters>{0.1, 0.25};
template <>
constexpr Transfer kTransfer<CustomAllReduceParameters>{0.05, 0.35};

template <class P>
void widen(FitRecord& record, bool another_generation) {
  const double added = another_generation ? kTransfer<P>.other : kTransfer<P>.same;
  record.discrepancy = std::hypot(record.discrepancy, added);
  if (record.discrepancy_elsewhere > 0.0)
    record.discrepancy_elsewhere = std::hypot(record.discrepancy_elsewhere, added);
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
      const double stays = std::min(value, staying_us<P>(field.name));
      value = std::clamp(stays + (value - stays) * factor_of(field.name, ratios), field.low, field.high);
    }
    follow_exponentials(fitted.value, from.exponentials_per_clock / to.exponentials_per_clock);
    follow_operations(fitted.value, ratios.operations);
    limit(fitted.value, how.matrix_limit);
    fitted.record.standing = Standing::kCarriedOver;
    widen<P>(fitted.record, how.another_generation);
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
