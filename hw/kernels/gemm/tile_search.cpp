#include "hw/kernels/gemm/tile_search.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "hw/gpu_spec.h"
#include "hw/kernels/gemm/gemm_math.h"

namespace roofcast {
namespace {

using product::ceiling;
using product::cube;
using product::hit_rate;
using product::overlap;
using product::Traffic;

/// Most that one SM reads from L2 and DRAM together: a few thread blocks cannot use the full bandwidth.
constexpr BytesPerSecond kDrawOfOneSm{400e9};
/// Time constant with which the power limit lowers the clock under load.
constexpr Seconds kThrottleTime{5e-3};
/// Bytes of the operand along k that one step of the main loop reads.
constexpr double kStepBytes = 128;
constexpr double kHeldWhileSweeping = 0.5;  ///< share of L2 that holds operands while tiles stream through
constexpr Seconds kEmptyStep{0.5e-6};       ///< a k-step of a tile with rows beyond the matrix
constexpr double kEmptyRows = 40;           ///< number of such rows with which the tile waits 1 - 1/e of kEmptyStep
constexpr double kSplits[] = {1, 2, 3, 4, 6, 8, 12, 16};
constexpr double kForEver = 1e30;  ///< seconds; longer than any real time

/// Quantities common to all tiles.
struct Problem {
  const GemmShape& shape;
  const GemmParameters& p;
  const GpuSpec& gpu;
  Traffic traffic;
  Seconds stream;      ///< traffic at the bandwidth of its source
  Bytes cached_bytes;  ///< usable L2
  double sms;
  double k_step;  ///< elements of k per step
  double k_steps;
  Seconds square_step;   ///< one k-step of a 128 x 128 tile on one SM
  Seconds step_latency;  ///< least time of any k-step
  BytesPerSecond l2_rate;
  double wave_us;   ///< 0 in a GEMV, which has no pipeline
  double copies;    ///< sets of weights between two uses of the same one
  bool cool;        ///< the clock has not been lowered yet
  bool shares_sms;  ///< two thread blocks of smaller tiles run on an SM concurrently
};

/// One tiling of a problem.
struct Plan {
  Seconds compute{}, memory{};
  Seconds exposed{};  ///< not overlapped: first prologue, last epilogue, the reduction after a split
  Seconds time() const { return overlap(compute, memory) + exposed; }
};

/// The power limit. Busy matrix units lower the clock to `sustained_clock` with the time constant kThrottleTime. In a
/// served model the matrix units have been busy for long.
///   compute' = compute (1 + heated x busy x (1 / sustained_clock - 1)),  heated = 1 - exp(-time copies /
///   kThrottleTime)
/// With sustained_clock >= 0.7, less memory time never makes the sum longer.
Plan throttled(Plan plan, const Problem& x) {
  if (x.cool) return plan;
  const Seconds time = plan.time();
  const double heated = x.copies >= kColdWeights ? 1.0 : 1.0 - std::exp(-(time * x.copies / kThrottleTime));
  const double busy = std::min(1.0, plan.compute / time);
  plan.compute *= 1.0 + heated * busy * (1.0 / x.p.sustained_clock - 1.0);
  return plan;
}

/// Waves of the thread blocks on the SMs. Ampere's smaller tiles run two per SM. If the last wave has single tiles, an
/// SM reaches only `lone_block_rate` of the rate of two.
double waves_of(double blocks, double area, const Problem& x) {
  if (!x.shares_sms || area > 1.0 || blocks <= x.sms) return ceiling(blocks / x.sms);
  const double full = std::floor(blocks / (2.0 * x.sms));
  const double rest = blocks - full * 2.0 * x.sms;
  if (rest <= 0.0) return 2.0 * full;
  return 2.0 * full + (rest <= x.sms ? std::min(2.0, 1.0 / x.p.lone_block_rate) : 2.0);
}

/// Time of repeated reads from DRAM if tiles run in linear order, CUTLASS's default. Lines lie along the shorter side
/// of the grid, so the operand along it (S bytes) is swept once for every line of the other operand. Lines that run
/// concurrently share a sweep as long as their blocks stay in step. Blocks drift apart as a random walk, by
/// `tile.drift` of a wave per wave. Data that one of them read has then left L2 (which holds C bytes of operands)
/// before the others need it.
///   lines = concurrent blocks / short side;  W = S + lines x (a line's other operand), read every wave
///   together = min(1, (C / (drift W))^2 / waves);  sweeps = long side (together / lines + 1 - together)
///   bytes = (sweeps - 1) max(0, S - C)
Seconds again_from_dram(const Problem& x, const GemmTile& tile, double down, double across) {
  const bool along_rows = across > down;
  const Bytes swept = along_rows ? x.traffic.activations : x.traffic.weights;
  const Bytes other = along_rows ? x.traffic.weights : x.traffic.activations;
  const Bytes held = x.gpu.l2_cache * kHeldWhileSweeping;
  if (swept <= held) return Seconds{};
  const double shorter = along_rows ? down : across, longer = along_rows ? across : down;
  const double at_once = x.sms / tile.halves;
  const double lines = std::clamp(at_once / shorter, 1.0, longer);
  const double waves = std::max(1.0, shorter * longer / at_once);
  const double in_step = held / ((swept + other * (lines / longer)) * tile.drift);
  const double together = std::min(1.0, in_step * in_step / waves);
  const double sweeps = longer * (together / lines + 1.0 - together);
  if (sweeps <= 1.0) return Seconds{};
  return (swept - held) * (sweeps - 1.0) / (x.gpu.memory_bandwidth * x.p.bandwidth_efficiency);
}

/// Additional time per k-step of tiles with rows beyond the matrix. TMA needs at least about
/// kEmptyStep per step to fill missing rows if all SMs do so, and half of that for about 30 empty rows of 128.
Seconds stalled(Seconds step, double empty_rows, double blocks_per_sm) {
  return overlap(step, kEmptyStep * std::min(1.0, blocks_per_sm) * (1.0 - std::exp(-empty_rows / kEmptyRows)));
}

/// The fastest plan so far and its tile. Among equals, the last one.
struct Fastest {
  Plan plan, cold;  ///< with the power limit, and without it
  Seconds time{kForEver};
  std::size_t tile = 0;

  bool beats(Seconds other, std::size_t others) const { return tile >= others ? time <= other : time < other; }
};

/// A problem with one tile, before k is split.
struct Tiled {
  double down, across, grid;  ///< tiles; thread blocks
  Seconds step;               ///< one k-step
};
Tiled tiled(const Problem& x, const GemmTile& tile) {
  const double down = ceiling(x.shape.m / (tile.rows * tile.cluster_rows)) * tile.cluster_rows;
  const double across = ceiling(x.shape.n / (tile.columns * tile.cluster_columns)) * tile.cluster_columns;
  const double starved = std::max(1.0, x.p.tile_intensity / tile.intensity);
  return {.down = down,
          .across = across,
          .grid = down * across * tile.halves,
          .step = std::max(x.square_step * (tile.area * starved / tile.rate), x.step_latency)};
}

Seconds between_waves(const Problem& x, const GemmTile& tile, double steps) {
  return (x.wave_us * std::min(1.0, steps / x.p.ramp_k_steps) + x.p.epilogue_us * tile.area) * kMicrosecond;
}

/// The reduction after a split.
Seconds reduction(const Problem& x, double split) {
  return x.p.split_k_us * kMicrosecond + Bytes(8.0 * split * x.shape.m * x.shape.n) / x.l2_rate;
}

/// The time of one tile and one split:
///   blocks  = ceil(m / tm) ceil(n / tn) s      thread blocks, padded to whole clusters, in waves
///   step    = 2 tm tn k_step / SM rate x max(1, tile_intensity / (tm tn / (tm + tn)))
///   between = wave_us min(1, steps / ramp_k_steps) + epilogue_us tm tn / 128^2
///   compute = waves ceil(k_steps / s) max(step, k_step_us) + (waves - 1) between; stalled waves have longer steps
///   memory  = max(stream, bytes / (min(blocks, SMs) 400 GB/s)), stream includes repeated reads
///   time    = (compute^3 + memory^3)^(1/3) + between + [s > 1: split_k_us + 8 s m n / L2 rate]
void try_tile(const Problem& x, const GemmTiling& tiling, std::size_t i, double most_splits, Fastest& best) {
  const GemmTile& tile = tiling.tiles[i];
  const auto [down, across, grid, step] = tiled(x, tile);
  const double empty = std::max(0.0, tile.rows * down - x.shape.m);
  const bool stalls = tiling.empty_rows_stall && empty > 0.0;
  const Seconds late = stalls ? stalled(step, empty, grid / x.sms) - step : Seconds{};
  const Seconds stream = x.stream + (tiling.linear ? again_from_dram(x, tile, down, across) : Seconds{});
  const Seconds full_waves = std::max(stream, x.k_steps * (grid / x.sms) * step);  // a lower bound for every split
  for (const double split : kSplits) {
    const double blocks = grid * split;
    const Seconds reduced = split > 1 ? reduction(x, split) : Seconds{};
    if (split > most_splits || best.beats(full_waves + reduced, i)) break;
    const double waves = waves_of(blocks, tile.area, x);
    const double steps = split > 1 ? ceiling(x.k_steps / split) : x.k_steps;
    Plan plan{.compute = steps * (waves * step + std::clamp(2.0 * waves / down, 1.0, waves) * late), .memory = stream};
    if (best.beats(std::max(plan.compute, plan.memory), i)) continue;
    const Seconds between = between_waves(x, tile, steps);
    plan.compute += (waves - 1.0) * between;
    if (blocks < x.sms) plan.memory = std::max(stream, x.traffic.total() / (blocks * kDrawOfOneSm));
    plan.exposed = between + reduced;
    // The time grows with each of these three.
    const bool slower = plan.compute >= best.cold.compute && plan.memory >= best.cold.memory &&
                        plan.exposed >= best.cold.exposed && best.time < Seconds(kForEver);
    if (slower || best.beats(std::max(plan.compute, plan.memory) + plan.exposed, i)) continue;
    const Plan hot = throttled(plan, x);
    if (const Seconds time = hot.time(); !best.beats(time, i))
      best = {.plan = hot, .cold = plan, .time = time, .tile = i};
  }
}

/// Whether a library would not use this tile: it is more than twice as long as the matrix's side, or it is swapped and
/// the matrix has more rows than the library swaps.
bool unsuited(const GemmTile& tile, const GemmShape& s, const GemmTiling& tiling) {
  if (s.m > tiling.swapped_up_to && tile.rows != 64 && tile.rows != 128) return true;
  return (tile.rows > 64 && tile.rows >= 2.0 * s.m) || (tile.columns > 64 && tile.columns >= 2.0 * s.n);
}

/// By value: the references of std::max would prevent vectorization.
float larger(float a, float b) { return a < b ? b : a; }
float smaller(float a, float b) { return b < a ? b : a; }
float cube(float x) { return x * x * x; }

/// At most std::ceil(x) for x >= 0, and close to it, in vectorizable operations. One less than std::ceil(x) if x is
/// just above an integer, which may be due to rounding.
float least_ceiling(float x) {
  constexpr float kIntegers = 8388608.0F;  // 2^23: floats from here on are integers
  const float below = x * (1.0F - 4e-6F) - 1e-6F, nearest = (below + kIntegers) - kIntegers;
  return nearest + (nearest < below ? 1.0F : 0.0F);
}

/// A lower bound of the time of each tile, unsplit or split, reduced slightly so that rounding cannot raise it:
///   unsplit >= compute' (1 + y / 3 - y^2 / 9) + between,  compute' the larger of compute and stream, y their ratio^3,
///              because this is a lower bound of (1 + y)^(1/3), as 1 + y / 3 is an upper one
///   split   >= max(stream, work of evenly filled SMs) + epilogue + the shortest reduction
void least_times(const Problem& x, const GemmTiling& tiling, double most_splits, std::span<float> least) {
  const TileBounds& tiles = *tiling.bounds;
  const auto single = [](double value) { return static_cast<float>(value); };
  const float m = single(x.shape.m), n = single(x.shape.n), per_sm = single(1.0 / x.sms);
  const float stream = single(x.stream.base()), k_steps = single(x.k_steps);
  const float square = single(x.square_step.base()), latency = single(x.step_latency.base());
  const float intensity = single(x.p.tile_intensity);
  const float prologue = single(between_waves(x, GemmTile{}, x.k_steps).base());
  const float epilogue = single((x.p.epilogue_us * kMicrosecond).base());
  const float reduced = single(most_splits >= 2.0 ? reduction(x, 2.0).base() : kForEver);
  const float partial_wave = x.shares_sms ? 0.0F : 1.0F;
  const bool heated = !x.cool && x.copies >= kColdWeights;
  const float slower_clock = single(heated ? 1.0 / x.p.sustained_clock - 1.0 : 0.0);
  for (std::size_t i = 0; i < least.size(); ++i) {
    const float rounds =
        least_ceiling(m * tiles.per_row[i]) * least_ceiling(n * tiles.per_column[i]) * tiles.halves[i] * per_sm;
    const float waves = larger(rounds, least_ceiling(rounds) * partial_wave);
    const float step = larger(square * tiles.work[i] * larger(1.0F, intensity * tiles.per_intensity[i]), latency);
    const float between = prologue + epilogue * tiles.area[i];
    const float work = k_steps * waves * step + larger(waves - 1.0F, 0.0F) * between;
    // The clock falls at least in proportion to the share of compute in the longest possible time.
    const float cold = larger(work, stream) * (1.0F + cube(smaller(work, stream) / larger(work, stream)) * (1.0F / 3));
    const float hot = work * (1.0F + (rounds >= 1.0F ? slower_clock : 0.0F) * work / (cold + between));
    const float longer = larger(hot, stream), y = cube(smaller(hot, stream) / longer);
    const float whole = longer * (1.0F + y * (1.0F / 3 - y * (1.0F / 9))) + between;
    const float split = larger(stream, k_steps * rounds * step) + reduced + epilogue * tiles.area[i];
    least[i] = smaller(whole, split) * (1.0F - 2e-5F);
  }
}

/// Tries the tile with the lowest bound first, then only tiles whose bound is below the best time so far.
Plan fastest(const Problem& x, const GemmTiling& tiling) {
  Fastest best;
  const std::size_t count = tiling.tiles.size();
  const double most_splits = tiling.split_k ? std::max(1.0, x.k_steps / 2.0) : 1.0;
  if (tiling.bounds == nullptr) {
    for (std::size_t i = count; i-- > 0;) {
      if (count == 1 || !unsuited(tiling.tiles[i], x.shape, tiling)) try_tile(x, tiling, i, most_splits, best);
    }
    return best.plan;
  }
  std::array<float, TileBounds::kMost> times;
  const std::span<float> least = std::span(times).first(count);
  least_times(x, tiling, most_splits, least);
  // Start from the last of the tiles with the lowest bound that suits the matrix. Few do not suit it.
  std::size_t first = count - 1;
  const auto smallest = [&] {
    for (std::size_t i = first = count - 1; i-- > 0;) first = least[i] < least[first] ? i : first;
  };
  smallest();
  while (unsuited(tiling.tiles[first], x.shape, tiling) && least[first] < static_cast<float>(kForEver)) {
    least[first] = static_cast<float>(kForEver);
    smallest();
  }
  try_tile(x, tiling, first, most_splits, best);
  for (std::size_t i = count; i-- > 0;) {
    if (least[i] >= best.time.base() || i == first || unsuited(tiling.tiles[i], x.shape, tiling)) continue;
    try_tile(x, tiling, i, most_splits, best);
  }
  return best.plan;
}

/// Bytes per element that feed the matrix units, after unpacking.
double operand_bytes(Dtype compute) { return std::max(0.5, element_bits(compute) / 8.0); }

/// A small number of weight sets that are read in turn stays in L2. Activations and outputs also stay there when
/// serving.
Seconds streaming_time(const Problem& x) {
  const double again =
      hit_rate(x.traffic.weights * x.copies + x.traffic.activations + x.traffic.output, x.cached_bytes);
  const double recent = hit_rate(x.traffic.total(), x.cached_bytes);
  const Bytes dram = x.traffic.weights * (1.0 - again) + (x.traffic.activations + x.traffic.output) * (1.0 - recent);
  const Bytes cached = x.traffic.total() - dram;
  return dram / (x.gpu.memory_bandwidth * x.p.bandwidth_efficiency) + cached / x.l2_rate;
}

/// Block scales are applied to partial sums in registers. With mma.sync this costs as much as fp8 saves over 16 bit: an
/// L40S reaches 228-280 of its 733 TFLOP/s at the 95th percentile of such GEMMs (aiconfigurator tables).
FlopsPerSecond matrix_rate(const GpuSpec& gpu, Dtype compute) {
  const bool scaled_in_registers = compute == Dtype::kFp8Block && has_mma_sync_only(gpu);
  return scaled_in_registers ? std::min(gpu.peak(compute), gpu.peak(Dtype::kBf16)) : gpu.peak(compute);
}

Problem problem_of(const GemmShape& shape, const MatmulKernel& kernel, const GemmParameters& p, const GpuSpec& gpu,
                   Dtype compute, const GemmRun& run) {
  const bool odd = shape.row_scales && shape.m > 16 && std::fmod(shape.m, 4.0) != 0.0;
  const double sms = gpu.sm_count, k_step = kStepBytes / operand_bytes(compute);
  const FlopsPerSecond sm_rate = matrix_rate(gpu, compute) / sms * p.compute_efficiency * (odd ? p.odd_rows : 1.0);
  Problem x{.shape = shape,
            .p = p,
            .gpu = gpu,
            .traffic = product::traffic_of(shape),
            .stream = {},
            .cached_bytes = gpu.l2_cache * p.l2_usable,
            .sms = sms,
            .k_step = k_step,
            .k_steps = ceiling(shape.k / k_step),
            .square_step = Flops(2.0 * 128.0 * 128.0 * k_step) / sm_rate,
            .step_latency = p.k_step_us * kMicrosecond,
            .l2_rate = gpu.memory_bandwidth * p.l2_bandwidth_ratio,
            .wave_us = shape.m <= kernel.gemv_rows() ? 0.0 : p.wave_us,
            .copies = run.weight_copies,
            .cool = run.cool,
            .shares_sms = has_mma_sync_only(gpu)};
  x.stream = streaming_time(x);
  return x;
}

}  // namespace

TiledProduct fastest_tiles(const GemmShape& shape, const MatmulKernel& kernel, const GemmParameters& constants,
                           const GpuSpec& gpu, Dtype compute, const GemmRun& run) {
  const Problem x = problem_of(shape, kernel, constants, gpu, compute, run);
  const bool tiled = shape.m > kernel.rows_without_tiles();
  const Plan plan = tiled ? fastest(x, kernel.tiling(gpu, shape.m, shape.n, shape.k)) : Plan{.memory = x.stream};
  return {plan.time(), plan.compute, plan.memory};
}

}  // namespace roofcast
