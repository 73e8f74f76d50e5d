#include "hw/kernels/gemm.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/error.h"
#include "hw/efficiency.h"
#include "hw/gpu_spec.h"
#include "hw/kernels/gemm_tiles.h"

namespace roofcast {
namespace {

/// An SM draws at most this from L2 and DRAM together, so few thread blocks cannot pull the full bandwidth.
constexpr BytesPerSecond kDrawOfOneSm{400e9};
/// Time under load after which the power limit has brought the clock down to 1 - 1/e of the way.
constexpr Seconds kThrottleTime{5e-3};
/// Bytes of the operand along k that one step of the main loop takes.
constexpr double kStepBytes = 128;
/// Elements of a row that a thread block of the quantization takes at once: 256 threads, 8 each.
constexpr double kQuantizedAtOnce = 2048;
constexpr double kHeldWhileSweeping = 0.5;  ///< part of L2 that holds operands while tiles stream through
constexpr Seconds kEmptyStep{0.5e-6};       ///< a k-step of a tile whose rows lie beyond the matrix
constexpr double kEmptyRows = 40;           ///< so many of them make it wait 1 - 1/e of that
constexpr double kGemvRows = 8;             ///< of a weight-only GEMV
constexpr double kSplits[] = {1, 2, 3, 4, 6, 8, 12, 16};
constexpr double kServedCopies = 1e9;  ///< a served model's weights are cold: other layers' came between

/// std::ceil for 0 <= x < 2^63; without SSE4.1 that one is a call.
double ceiling(double x) {
  const auto whole = static_cast<double>(static_cast<std::int64_t>(x));
  return whole < x ? whole + 1.0 : whole;
}

/// x^3 by hand: pow is slow.
double cube(double x) { return x * x * x; }

/// Overlap of work and traffic, (a^3 + b^3)^(1/3): between max (perfect) and sum (none), and smooth where they meet.
/// The root of 1..2 by two of Halley's steps, exact to the last bits and several times faster than cbrt.
Seconds overlap(Seconds a, Seconds b) {
  const double high = std::max(a.base(), b.base());
  if (high <= 0.0) return Seconds{};
  const double target = 1.0 + cube(std::min(a.base(), b.base()) / high);
  double root = 0.74 + 0.26 * target;
  for (int step = 0; step < 2; ++step) root *= (cube(root) + 2.0 * target) / (2.0 * cube(root) + target);
  return Seconds(high * root);
}

/// Part of a working set that a cache still holds when it comes round again, linear between full and double
/// the capacity, as random replacement does.
double hit_rate(Bytes working_set, Bytes capacity) { return std::clamp(2.0 - working_set / capacity, 0.0, 1.0); }

struct Traffic {
  Bytes weights, activations, output;
  Bytes total() const { return weights + activations + output; }
};

Traffic traffic_of(const GemmShape& s) {
  const double weight =
      s.weight_scales.group_size > 0 ? bytes_per_element(s.weights, s.weight_scales) : bytes_per_element(s.weights);
  return {Bytes(s.n * s.k * weight), Bytes(s.m * s.k * bytes_per_element(s.activations)),
          Bytes(s.m * s.n * s.output_bytes)};
}

/// Sets of weights that the benchmark's loop goes round, from the collectors of the data: vLLM's take 6 (1 for
/// fp8_block and nvfp4); TensorRT-LLM 1.3's as many as fill the L2, at most 5; its older one for Ampere 5.
double benchmark_copies(const GemmShape& s, Dtype block, const GpuSpec& gpu, KernelFamily family) {
  if (family != KernelFamily::kTrtllm) return block == Dtype::kFp8Block || block == Dtype::kNvfp4 ? 1 : 6;
  if (gpu.architecture == Architecture::kAmpere) return 5;
  const Bytes weights(s.n * s.k * element_bits(s.weights) / 8.0);
  return std::clamp(ceiling(gpu.l2_cache / weights), 1.0, 5.0);
}

/// What stays the same whatever the tile.
struct Problem {
  const GemmShape& shape;
  const GemmParameters& p;
  const GpuSpec& gpu;
  Traffic traffic;
  Seconds stream;      ///< traffic at the bandwidth of where it lies
  Bytes cached_bytes;  ///< usable L2
  double sms;
  double k_step;  ///< elements of k in one step
  double k_steps;
  Seconds square_step;   ///< one k-step of a 128 x 128 tile on one SM
  Seconds step_latency;  ///< the least any k-step takes
  BytesPerSecond l2_rate;
  double wave_us;   ///< weight-only kernels of few rows are GEMVs without the pipeline that has a prologue
  double copies;    ///< sets of weights between two uses of the same
  bool cool;        ///< the clock is not pulled down yet
  bool shares_sms;  ///< two thread blocks of smaller tiles run on an SM at once
};

/// One way to run a problem.
struct Plan {
  Seconds compute{}, memory{};
  Seconds exposed{};  ///< overlaps with nothing: first prologue, last epilogue, the reduction after a split
  Seconds time() const { return overlap(compute, memory) + exposed; }
};

/// The power limit: matrix units at work pull the clock down to `sustained_clock` within kThrottleTime; a served
/// model has been under load for long.
///   compute' = compute (1 + heated x busy x (1 / sustained_clock - 1)),  heated = 1 - exp(-time copies /
///   kThrottleTime)
/// With sustained_clock >= 0.7 less memory time never makes the sum longer.
Plan throttled(Plan plan, const Problem& x) {
  if (x.cool) return plan;
  const Seconds time = plan.time();
  const double heated = x.copies >= kServedCopies ? 1.0 : 1.0 - std::exp(-(time * x.copies / kThrottleTime));
  const double busy = std::min(1.0, plan.compute / time);
  plan.compute *= 1.0 + heated * busy * (1.0 / x.p.sustained_clock - 1.0);
  return plan;
}

/// Turns of the thread blocks on the SMs. Ampere's smaller tiles run two to an SM at once; a last round of single
/// ones reaches only `lone_block_rate` of the pairs' rate.
double turns_of(double blocks, double area, const Problem& x) {
  if (!x.shares_sms || area > 1.0 || blocks <= x.sms) return ceiling(blocks / x.sms);
  const double full = std::floor(blocks / (2.0 * x.sms));
  const double rest = blocks - full * 2.0 * x.sms;
  if (rest <= 0.0) return 2.0 * full;
  return 2.0 * full + (rest <= x.sms ? std::min(2.0, 1.0 / x.p.lone_block_rate) : 2.0);
}

/// Bytes that come from DRAM more than once where tiles are walked in lines, as CUTLASS does by default: lines lie
/// along the shorter side of the grid, so the operand along it (S bytes) is swept for every line of the other, once for
/// the few lines that run at once as long as their blocks keep pace. They drift apart as a random walk, by `tile.drift`
/// of a turn every turn; what one of them read is then gone from L2 (of which C holds operands) before the others come.
///   lines = blocks at once / short side;  W = S + lines x (a line's other operand), read every turn
///   together = min(1, (C / (drift W))^2 / turns);  sweeps = long side (together / lines + 1 - together)
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
  const double turns = std::max(1.0, shorter * longer / at_once);
  const double in_step = held / ((swept + other * (lines / longer)) * tile.drift);
  const double together = std::min(1.0, in_step * in_step / turns);
  const double sweeps = longer * (together / lines + 1.0 - together);
  if (sweeps <= 1.0) return Seconds{};
  return (swept - held) * (sweeps - 1.0) / (x.gpu.memory_bandwidth * x.p.bandwidth_efficiency);
}

/// A k-step of tiles that reach beyond the last row: TMA fills the rows that are not there no faster than about
/// kEmptyStep a step once all SMs do, and half of that where some 30 of 128 rows are empty.
Seconds stalled(Seconds step, double empty_rows, double blocks_per_sm) {
  return overlap(step, kEmptyStep * std::min(1.0, blocks_per_sm) * (1.0 - std::exp(-empty_rows / kEmptyRows)));
}

/// One tile and split:
///   blocks  = ceil(m / tm) ceil(n / tn) s      thread blocks, up to whole clusters, in turns over the SMs
///   step    = 2 tm tn k_step / SM rate x max(1, tile_intensity / (tm tn / (tm + tn)))
///   between = wave_us min(1, steps / ramp_k_steps) + epilogue_us tm tn / 128^2
///   compute = turns ceil(k_steps / s) max(step, k_step_us) + (turns - 1) between, steps of stalled turns longer
///   memory  = max(stream, bytes / (min(blocks, SMs) 400 GB/s)), stream with what is swept again
///   time    = (compute^3 + memory^3)^(1/3) + between + [s > 1: split_k_us + 8 s m n / L2 rate]
void try_tile(const Problem& x, const GemmTile& tile, const GemmTiling& tiling, double most_splits, Plan& best,
              Seconds& best_time) {
  const GemmParameters& p = x.p;
  const double down = ceiling(x.shape.m / (tile.rows * tile.cluster_rows)) * tile.cluster_rows;
  const double across = ceiling(x.shape.n / (tile.columns * tile.cluster_columns)) * tile.cluster_columns;
  const double grid = down * across * tile.halves;
  const double starved = std::max(1.0, p.tile_intensity / tile.intensity);
  const Seconds step = std::max(x.square_step * (tile.area * starved / tile.rate), x.step_latency);
  const double empty = std::max(0.0, tile.rows * down - x.shape.m);
  const bool stalls = tiling.empty_rows_stall && empty > 0.0;
  const Seconds late = stalls ? stalled(step, empty, grid / x.sms) - step : Seconds{};
  const Seconds stream = x.stream + (tiling.linear ? again_from_dram(x, tile, down, across) : Seconds{});
  const Seconds full_turns = std::max(stream, x.k_steps * (grid / x.sms) * step);  // none is faster, however cut
  for (const double split : kSplits) {
    const double blocks = grid * split;
    const Seconds reduction =
        split > 1 ? p.split_k_us * kMicrosecond + Bytes(8.0 * split * x.shape.m * x.shape.n) / x.l2_rate : Seconds{};
    if (split > most_splits || full_turns + reduction >= best_time) break;
    const double turns = turns_of(blocks, tile.area, x);
    const double steps = split > 1 ? ceiling(x.k_steps / split) : x.k_steps;
    Plan plan{.compute = steps * (turns * step + std::clamp(2.0 * turns / down, 1.0, turns) * late), .memory = stream};
    if (std::max(plan.compute, plan.memory) >= best_time) continue;
    const Seconds between =
        (x.wave_us * std::min(1.0, steps / p.ramp_k_steps) + p.epilogue_us * tile.area) * kMicrosecond;
    plan.compute += (turns - 1.0) * between;
    if (blocks < x.sms) plan.memory = std::max(stream, x.traffic.total() / (blocks * kDrawOfOneSm));
    plan.exposed = between + reduction;
    if (std::max(plan.compute, plan.memory) + plan.exposed >= best_time) continue;
    const Plan hot = throttled(plan, x);
    const Seconds time = hot.time();
    if (time >= best_time) continue;
    best = hot;
    best_time = time;
  }
}

/// A tile twice the matrix's side is never built for it, nor a swapped one where the library does not swap.
bool unsuited(const GemmTile& tile, const GemmShape& s, const GemmTiling& tiling) {
  if (s.m > tiling.swapped_up_to && tile.rows != 64 && tile.rows != 128) return true;
  return (tile.rows > 64 && tile.rows >= 2.0 * s.m) || (tile.columns > 64 && tile.columns >= 2.0 * s.n);
}

Plan fastest(const Problem& x, const GemmTiling& tiling) {
  Plan best;
  Seconds best_time(1e30);
  const double most_splits = tiling.split_k ? std::max(1.0, x.k_steps / 2.0) : 1.0;
  // The largest first: they win most often, and the rest then falls early.
  for (std::size_t i = tiling.tiles.size(); i-- > 0;) {
    if (tiling.tiles.size() == 1 || !unsuited(tiling.tiles[i], x.shape, tiling))
      try_tile(x, tiling.tiles[i], tiling, most_splits, best, best_time);
  }
  return best;
}

/// A separate kernel that reads the activations, `passes` times, and writes them narrow; in benchmarks only.
///   bytes = m k (2 passes + b);  time = bytes at DRAM or L2 rate + ceil(m / SMs) quantization_row_us
Seconds quantization(const Problem& x, double passes) {
  const Bytes moved = Bytes(x.shape.m * x.shape.k * 2.0 * passes) + x.traffic.activations;
  const double hit = hit_rate(x.traffic.total() + Bytes(2.0 * x.shape.m * x.shape.k), x.cached_bytes);
  const BytesPerSecond dram = x.gpu.memory_bandwidth * x.p.quantization_memory_ratio;
  const BytesPerSecond l2 = x.gpu.memory_bandwidth * x.p.quantization_l2_ratio;
  const double row = x.p.quantization_row_us + x.p.quantization_step_us * ceiling(x.shape.k / kQuantizedAtOnce);
  return std::max(moved * (1.0 - hit) / dram + moved * hit / l2, ceiling(x.shape.m / x.sms) * row * kMicrosecond);
}

Seconds host_floor(const GemmShape& s, const GemmParameters& p) {
  switch (s.kernel) {
    case GemmKernel::kDeepGemm:
      return (p.host_floor_deep_gemm_us + (std::fmod(s.m, 4.0) != 0.0 ? p.host_odd_rows_us : 0.0)) * kMicrosecond;
    case GemmKernel::kFlashInfer:
      return p.host_floor_flash_infer_us * kMicrosecond;
    case GemmKernel::kDefault:
      return p.host_floor_us * kMicrosecond;
  }
  return Seconds{};
}

/// What a benchmark's row holds beside the GEMM itself.
Seconds as_benchmarked(Seconds time, const Problem& x, Dtype block) {
  Seconds out = time + x.p.benchmark_us * kMicrosecond;
  const bool quantized = block == Dtype::kFp8 || block == Dtype::kFp8Block || block == Dtype::kNvfp4;
  // TensorRT-LLM's dynamic fp8 and vLLM's per-token fp8 read the activations for their maximum, then again.
  if (quantized) out += quantization(x, block == Dtype::kFp8 ? 2.0 : 1.0);
  return overlap(out, host_floor(x.shape, x.p));  // the host runs ahead or waits, unevenly
}

/// Bytes of the operand that feeds the matrix units: the weights unpacked where they are.
double operand_bytes(Dtype compute) { return std::max(0.5, element_bits(compute) / 8.0); }

/// Weights are found again in L2 by a benchmark's loop; activations and outputs also when served.
Seconds streaming_time(const Problem& x) {
  const double again =
      hit_rate(x.traffic.weights * x.copies + x.traffic.activations + x.traffic.output, x.cached_bytes);
  const double recent = hit_rate(x.traffic.total(), x.cached_bytes);
  const Bytes dram = x.traffic.weights * (1.0 - again) + (x.traffic.activations + x.traffic.output) * (1.0 - recent);
  const Bytes cached = x.traffic.total() - dram;
  return dram / (x.gpu.memory_bandwidth * x.p.bandwidth_efficiency) + cached / x.l2_rate;
}

Bound bound_of(const Plan& plan, Seconds total) {
  const Seconds longer = std::max(plan.compute, plan.memory);
  if (longer * 2.0 < total) return Bound::kLatency;
  return plan.compute > plan.memory ? Bound::kCompute : Bound::kMemory;
}

/// The datasheet roofline: 2 m n k operations at the peak of the format they run in, each matrix moved once.
Cost ideal_gemm(const GemmShape& shape, const GpuSpec& gpu) {
  SIM_CHECK(shape.m >= 1 && shape.n >= 1 && shape.k >= 1, "a GEMM needs at least one row, column and term");
  const auto compute = gpu.compute_dtype(shape.weights, shape.activations);
  SIM_CHECK(compute.has_value(), "the GPU cannot compute with this format");
  return roofline(Flops(2.0 * shape.m * shape.n * shape.k), traffic_of(shape).total(), gpu.peak(*compute),
                  gpu.memory_bandwidth);
}

/// Scales by blocks are applied to partial sums in registers. By mma.sync that costs as much as the products save over
/// 16 bit: an L40S reaches 228-280 of its 733 TFLOP/s in the 95th percentile of such products (aiconfigurator tables).
FlopsPerSecond matrix_rate(const GpuSpec& gpu, Dtype compute) {
  const bool scaled_in_registers = compute == Dtype::kFp8Block && has_mma_sync_only(gpu);
  return scaled_in_registers ? std::min(gpu.peak(compute), gpu.peak(Dtype::kBf16)) : gpu.peak(compute);
}

Problem problem_of(const GemmShape& shape, const GemmParameters& p, const GpuSpec& gpu, Dtype compute, double copies,
                   bool cool) {
  const bool odd = shape.row_scales && shape.m > 16 && std::fmod(shape.m, 4.0) != 0.0;
  const double sms = gpu.sm_count, k_step = kStepBytes / operand_bytes(compute);
  const FlopsPerSecond sm_rate = matrix_rate(gpu, compute) / sms * p.compute_efficiency * (odd ? p.odd_rows : 1.0);
  const bool unpacks = gemm_block(shape.weights, shape.activations) == Dtype::kInt4;
  Problem x{.shape = shape,
            .p = p,
            .gpu = gpu,
            .traffic = traffic_of(shape),
            .stream = {},
            .cached_bytes = gpu.l2_cache * p.l2_usable,
            .sms = sms,
            .k_step = k_step,
            .k_steps = ceiling(shape.k / k_step),
            .square_step = Flops(2.0 * 128.0 * 128.0 * k_step) / sm_rate,
            .step_latency = p.k_step_us * kMicrosecond,
            .l2_rate = gpu.memory_bandwidth * p.l2_bandwidth_ratio,
            .wave_us = unpacks && shape.m <= kGemvRows ? 0.0 : p.wave_us,
            .copies = copies,
            .cool = cool,
            .shares_sms = has_mma_sync_only(gpu)};
  x.stream = streaming_time(x);
  return x;
}

/// The constants measured for this block; where there are none, its prior beside what bf16 shows of the machine.
GemmParameters constants_of(Dtype block, const Machine& machine) {
  const Fitted<GemmParameters>* tuned = machine.efficiency->find(gemm_tuned_kernel(), block);
  if (tuned != nullptr && machine.timing != Timing::kBenchmark) return tuned->value;
  if (const auto* fitted = machine.efficiency->find(gemm_kernel(), block)) return fitted->value;
  const auto* wide = machine.efficiency->find(gemm_kernel(), Dtype::kBf16);
  return gemm_prior(block, *machine.gpu, machine.efficiency->family(), wide ? &wide->value : nullptr);
}

/// FlashInfer's product in block fp8 on Blackwell walks the rows in short tiles, each of which takes the same: of
/// 24576 x 7168 on a B200 0.79 us a row (github.com/sgl-project/sglang/pull/13528), a tenth of the peak.
constexpr double kLowLatencyShare = 0.1;
bool runs_low_latency(const GemmShape& shape, const Machine& machine) {
  return shape.kernel == GemmKernel::kFlashInfer && shape.weights == Dtype::kFp8Block &&
         machine.gpu->architecture == Architecture::kBlackwell && machine.timing != Timing::kBenchmark;
}

}  // namespace

Cost gemm_with(const GemmShape& shape, const GemmParameters& constants, const GpuSpec& gpu, KernelFamily family,
               Timing timing) {
  const Cost ideal = ideal_gemm(shape, gpu);
  const Dtype compute = *gpu.compute_dtype(shape.weights, shape.activations);
  const Dtype block = gemm_block(shape.weights, shape.activations);
  const bool served = timing != Timing::kBenchmark;
  const double copies = served ? kServedCopies : benchmark_copies(shape, block, gpu, family);
  const Problem x = problem_of(shape, constants, gpu, compute, copies, timing == Timing::kCool);
  // SmoothQuant's kernel for up to four rows works without tiles.
  const bool without_tiles = block == Dtype::kInt8 && shape.m <= 4;
  const Plan plan =
      without_tiles ? Plan{.memory = x.stream} : fastest(x, gemm_tiling(block, gpu, family, shape.m, shape.n, shape.k));
  Seconds time = plan.time() + constants.launch_us * kMicrosecond;
  // What one row loses, it loses to the quantization beside it, which is not part of a served GEMM.
  if (shape.m <= 1) time -= (served ? std::max(0.0, constants.gemv_us) : constants.gemv_us) * kMicrosecond;
  time = served ? std::max(time, ideal.time) : as_benchmarked(time, x, block);
  return {.time = time, .flops = ideal.flops, .bytes = ideal.bytes, .bound = bound_of(plan, time)};
}

Cost gemm(const GemmShape& shape, const Machine& machine) {
  SIM_CHECK(machine.gpu != nullptr, "a GEMM runs on a GPU");
  if (machine.fidelity == Fidelity::kIdeal) return ideal_gemm(shape, *machine.gpu);
  SIM_CHECK(machine.efficiency != nullptr, "a calibrated time needs constants");
  const Dtype block = gemm_block(shape.weights, shape.activations);
  Cost cost =
      gemm_with(shape, constants_of(block, machine), *machine.gpu, machine.efficiency->family(), machine.timing);
  if (runs_low_latency(shape, machine)) {
    const Seconds tiles = cost.flops / (machine.gpu->peak(Dtype::kFp8Block) * kLowLatencyShare);
    if (tiles > cost.time) cost.bound = Bound::kCompute;
    cost.time = std::max(cost.time, tiles);
  }
  return cost;
}

}  // namespace roofcast
