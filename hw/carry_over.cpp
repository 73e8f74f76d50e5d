#include "hw/carry_over.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <type_traits>

#include "base/error.h"
#include "hw/kernels/attention_math.h"
#include "hw/kernels/gemm_tiles.h"
#include "hw/kernels/moe_facts.h"
#include "hw/unexplained.h"

namespace roofcast {
namespace {

/// New over old.
struct Ratios {
  double time = 1.0;          ///< of a cycle
  double l2 = 1.0;            ///< L2 bandwidth, SMs x clock
  double memory = 1.0;        ///< DRAM bandwidth
  double operations = 1.0;    ///< of the matrix units, a cycle and SM, in the format of the block
  double intensity = 1.0;     ///< `operations` where the tile that feeds these units grows with them, else 1
  double instructions = 1.0;  ///< `operations` where both GPUs run the same kernels of attention, else 1
  double exponential = 1.0;   ///< time of one on an SM
  double host = 1.0;          ///< time of a launch from the host
  double power = 1.0;         ///< watts an operation a second, in the format of the block
  bool other_memory = false;  ///< of another kind maybe, whose own share is not known
};

/// The most of its datasheet bandwidth that a memory gives, whatever reads it.
constexpr double kMemoryGives = 0.93;

/// Share of the bandwidth. What a kernel loses beyond that of the memory itself, it loses on the SMs (bytes in flight,
/// instructions): that time goes with SMs x clock. On another generation's memory shares do not rise: it may give less
/// (an L40S's GDDR6 does, which carries its check bits in band), unless it runs without ECC.
///   1 / share' = 1 / 0.93 + (1 / share - 1 / 0.93) memory / (SMs x clock), ratios of new to old
double share_of_memory(double share, const Ratios& r) {
  const double lost = std::max(0.0, 1.0 / share - 1.0 / kMemoryGives), longer = r.memory / r.l2 - 1.0;
  return 1.0 / (1.0 / share + lost * (r.other_memory ? std::max(0.0, longer) : longer));
}

/// Attention was timed as a lone kernel in a graph of its own: the gap between two graphs does not follow the SMs'
/// clock.
double transferred(double value, Transfer transfer, const Ratios& r) {
  switch (transfer) {
    case Transfer::kKept:
      return value;
    case Transfer::kCycles:
      return value > 0.0 ? value * r.time : value;  // gemv_us may be negative: it stays as it is
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

template <class P>
constexpr bool kIsAttention = std::is_same_v<P, PrefillParameters> || std::is_same_v<P, DecodeParameters> ||
                              std::is_same_v<P, LatentPrefillParameters> || std::is_same_v<P, LatentDecodeParameters>;

constexpr double kLeastClock = 0.7;  ///< bound of GemmParameters::sustained_clock

/// Matrix units so much slower than their peak want operands from L2 so much later, which feeds them as before.
void slow_matrix_units(GemmParameters& p, double factor) {
  p.compute_efficiency *= factor;
  p.tile_intensity *= factor;
}

/// A chip at the limit of its power gives up half of what it lacks in watts an operation in rate (clock and voltage
/// fall together); the rest it saves. More watts than before raise the clock to the cool one at most.
void follow_power(GemmParameters& p, double watts) {
  const double root = std::sqrt(watts);
  if (root > 1.0) {
    p.sustained_clock = std::min(1.0, p.sustained_clock * root);
    return;
  }
  const double sustained = std::max(kLeastClock, p.sustained_clock * root);
  slow_matrix_units(p, p.sustained_clock * root / sustained);
  p.sustained_clock = sustained;
}
template <class P>
void follow_power(P&, double) {}

/// Blackwell's DeepGEMM wants scales packed to their exponents. Of fp32 ones the host launches five kernels more a call
/// (the weights': arange, divide, select, pack; the activations': pack), and where rows are no multiple of four, five
/// of PyTorch's for the activations' one, where Hopper's copies once: the unit of what a launch takes the host.
/// Benchmarks alone. Source: deepseek-ai/DeepGEMM, csrc/apis/layout.hpp and csrc/jit_kernels/impls/smxx_layout.hpp.
constexpr double kPackingLaunches = 5.0, kOddLaunches = 4.0;
void follow_scales(GemmParameters& p, const GpuSpec& from, const GpuSpec& to) {
  if (from.architecture == Architecture::kHopper && to.architecture == Architecture::kBlackwell) {
    p.host_floor_deep_gemm_us += kPackingLaunches * p.host_odd_rows_us;
    p.host_odd_rows_us *= kOddLaunches;
  } else if (from.architecture == Architecture::kBlackwell && to.architecture == Architecture::kHopper) {
    p.host_odd_rows_us /= kOddLaunches;
    p.host_floor_deep_gemm_us = std::max(0.0, p.host_floor_deep_gemm_us - kPackingLaunches * p.host_odd_rows_us);
  }
}
template <class P>
void follow_scales(P&, const GpuSpec&, const GpuSpec&) {}

/// XQA on Hopper cuts a context of L at most sqrt(L / 16) times, so a cut has 16 keys for each cut there is, and what
/// is fitted as a time a cut (`split_ns`) is a time a key: with it, keys take as long as their bytes do. Elsewhere the
/// cuts are many times as many (TensorRT-LLM before 1.1), and merging one takes next to nothing on an A100.
constexpr double kKeysPerCut = 16.0;
void follow_cuts(DecodeParameters& p, const GpuSpec& from, const GpuSpec& to) {
  if (from.architecture != Architecture::kHopper || to.architecture == Architecture::kHopper) return;
  const double row_ns = p.row_ns + p.split_ns / kKeysPerCut;
  if (row_ns <= 0.0) return;
  p.row_growth *= p.row_ns / row_ns;
  p.row_ns = row_ns;
  p.split_ns = 0.0;
}
template <class P>
void follow_cuts(P&, const GpuSpec&, const GpuSpec&) {}

/// What the products of attention lose of the peak they lose to the SM's other work, so many cycles a product whatever
/// the matrix units do:  1 / share' = 1 + (1 / share - 1) operations a cycle and SM, new over old.
/// FlashAttention-2 shows it: 0.73 of an A100's peak (arXiv:2307.08691), nearly all of an RTX 4090's, whose matrix
/// units have a quarter of that rate (arXiv:2410.02367). Latent prefill has one head dimension, so the share stands for
/// exponentials too, `slower` times.
template <class P>
void follow_instructions(P& p, const Ratios& r, double slower) {
  constexpr bool kLatentPrefill = std::is_same_v<P, LatentPrefillParameters>;
  if constexpr (kIsAttention<P>) {
    const double longer = r.instructions * (kLatentPrefill ? slower : 1.0);
    p.compute_fraction = 1.0 / (1.0 + (1.0 / p.compute_fraction - 1.0) * longer);
  }
}

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
  const Dtype known = from.peak(dtype).base() > 0.0 ? dtype : Dtype::kBf16;  // whose constants a new format takes
  const FlopsPerSecond peak = from.peak(known), next = to.peak(known);
  if (peak.base() > 0.0 && next.base() > 0.0 && from.board_power.value > 0.0 && to.board_power.value > 0.0)
    r.power = to.board_power.value / from.board_power.value / (next / peak);
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

template <class P>
void widen(FitRecord& record, bool another_generation) {
  const double added = another_generation ? kUnexplained<P>.other_generation : kUnexplained<P>.same_generation;
  record.discrepancy = std::hypot(record.discrepancy, added);
  if (record.discrepancy_elsewhere > 0.0)
    record.discrepancy_elsewhere = std::hypot(record.discrepancy_elsewhere, added);
}

/// Matrix units at the limit of the board's power run no faster, cool or under load, whatever a kernel reached
/// elsewhere.
void limit(GemmParameters& p, double most) {
  const double under_load = std::min(most, p.compute_efficiency * p.sustained_clock);
  p.compute_efficiency = std::min(most, p.compute_efficiency);
  p.sustained_clock = under_load / p.compute_efficiency;
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
    Ratios ratios = ratios_of(from, to, dtype);
    ratios.other_memory = how.another_generation && how.memory_ecc;
    for (const Parameter<P>& field : P::fields()) {
      double& value = fitted.value.*field.member;
      value = std::clamp(transferred(value, field.transfer, ratios), field.low, field.high);
    }
    follow_instructions(fitted.value, ratios, from.exponentials_per_clock / to.exponentials_per_clock);
    follow_operations(fitted.value, ratios.operations);
    follow_power(fitted.value, ratios.power);
    follow_scales(fitted.value, from, to);
    follow_cuts(fitted.value, from, to);
    limit(fitted.value, how.matrix_limit);
    for (const Parameter<P>& field : P::fields()) {
      double& value = fitted.value.*field.member;
      value = std::clamp(value, field.low, field.high);
    }
    fitted.record.standing = Standing::kCarriedOver;
    widen<P>(fitted.record, how.another_generation);
    blocks.put(dtype, std::move(fitted));
  }
}

/// Grouped products of another architecture are other kernels, where it is known which.
void take_own_tiles(Efficiency& mine, const GpuSpec& to) {
  if (to.architecture != Architecture::kAmpere && to.architecture != Architecture::kHopper &&
      to.architecture != Architecture::kBlackwell)
    return;
  for (std::size_t variant = 0; variant < kMoeVariantCount; ++variant) {
    ByDtype<MoeParameters>& blocks = variant == 0 ? mine.moe : mine.moe_variants[variant];
    for (std::size_t i = 0; i < kDtypeCount; ++i) {
      const auto dtype = static_cast<Dtype>(i);
      const Fitted<MoeParameters>* old = blocks.find(dtype);
      if (old == nullptr) continue;
      Fitted<MoeParameters> fitted = *old;
      put_moe_facts(fitted.value, static_cast<MoeVariant>(variant), dtype, to, mine.family);
      blocks.put(dtype, std::move(fitted));
    }
  }
}

}  // namespace

Efficiency carry_over(Efficiency measured, const GpuSpec& from, const GpuSpec& to, const CarryOver& how) {
  for_each_family(measured, [&](auto& blocks) { convert(blocks, from, to, how); });
  if (from.architecture != to.architecture) take_own_tiles(measured, to);
  if (measured.carried_over_from.empty()) measured.carried_over_from = from.name;
  return measured;
}

}  // namespace roofcast
