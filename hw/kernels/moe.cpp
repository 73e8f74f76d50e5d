#include "hw/kernels/moe.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/choice.h"
#include "base/error.h"
#include "base/root_sum.h"
#include "hw/efficiency.h"
#include "hw/gpu_spec.h"
#include "hw/kernel_rules.h"
#include "hw/kernels/elementwise.h"
#include "hw/kernels/expert_load.h"
#include "hw/kernels/experts/experts_kernel.h"
#include "hw/kernels/idle_sms.h"
#include "hw/kernels/l2.h"

namespace roofcast {
namespace {

constexpr double kTileColumns = 128.0, kDefaultTileColumns = 64.0;
constexpr double kTileDepth = 64.0;  ///< the GEMMs' inner dimension is padded to a multiple of this
/// Depth of a tile in vLLM's default configuration, in elements of the inner dimension, for tiles of 16 and of 64 rows.
constexpr double kSmallTileStep = 64.0, kLargeTileStep = 32.0;
/// Triton reads vectors along dimensions that are multiples of 16, else single elements.
constexpr double kAlignment = 16.0;

/// One GPU's part of the layer.
struct LocalExperts {
  ExpertLoad load;
  double hidden = 0, inter = 0, gates = 2;  ///< gates: columns of the first GEMM, in multiples of inter
  double held = 0;                          ///< tokens on the rank
  double choices = 0;                       ///< choices that the kernel receives, including those for other ranks
  double experts = 0;
  double idle_tiles = 0;                              ///< tiles without a row, which run all the same
  double weight_element = 0, activation_element = 0;  ///< bytes

  double values() const { return load.hits * hidden * inter * (gates + 1.0); }
  double weights() const { return values() * weight_element; }
  /// Bytes of both GEMMs: A read, C written in 16 bit.
  double operands() const {
    return load.assignments *
           (hidden * activation_element + 2.0 * gates * inter + inter * activation_element + 2.0 * hidden);
  }
  double flops() const { return 2.0 * load.assignments * hidden * inter * (gates + 1.0); }
};

/// fp8_block: activations have an fp32 scale per 128 values of a row, weights one per 128 x 128 block.
double activation_bytes(Dtype dtype) {
  return dtype == Dtype::kFp8Block ? 1.0 + 4.0 / 128.0 : bytes_per_element(dtype);
}

/// Expected number of the `tokens` tokens with a choice on the rank, if each of their k choices is there with
/// probability a / (T k).
double expected_tokens(const MoeShape& shape, double assignments) {
  const double chance = std::min(1.0, assignments / (shape.tokens * shape.top_k));
  return shape.tokens * (1.0 - std::pow(1.0 - chance, shape.top_k));
}

/// For received tokens, the choices are scaled up from the expected ones, to at least one per token.
ExpertLoad load_of(const MoeShape& shape) {
  ExpertLoad load = expert_load(shape.tokens, shape.top_k, shape.experts, shape.ep, shape.routing);
  if (shape.layout != ExpertLayout::kReceived || shape.received <= 0.0) return load;
  const double local = std::max(1.0, shape.experts / shape.ep);
  const double most = shape.received * std::min(shape.top_k, local);
  const double known = std::clamp(load.assignments * shape.received / expected_tokens(shape, load.assignments),
                                  std::min(shape.received, most), most);
  const double more = known / load.assignments;
  load.assignments = known;
  load.hits = std::min(load.hits, known);
  for (double& tiles : load.tiles) tiles = std::max(load.hits, std::min(tiles * more, known));
  return load;
}

/// Whether the kernel gets only the tokens of its own experts.
bool comes_by_expert(const MoeShape& shape) {
  return shape.layout == ExpertLayout::kMasked || shape.layout == ExpertLayout::kContiguous;
}

double tokens_held(const MoeShape& shape, const ExpertLoad& load) {
  return shape.received > 0.0 ? shape.received : expected_tokens(shape, load.assignments);
}

LocalExperts local_part(const MoeShape& shape) {
  SIM_CHECK(shape.hidden >= 1.0 && shape.inter >= 1.0 && shape.tp >= 1.0, "experts without weights");
  const ExpertLoad load = load_of(shape);
  const double held = shape.layout == ExpertLayout::kWhole ? shape.tokens : tokens_held(shape, load);
  return {
      .load = load,
      .hidden = shape.hidden,
      .inter = std::ceil(shape.inter / shape.tp),
      .gates = shape.gated ? 2.0 : 1.0,
      .held = held,
      .choices = comes_by_expert(shape) ? load.assignments : held * shape.top_k,
      .experts = std::max(1.0, std::floor(std::max(shape.slots, shape.experts + shape.routing.redundant) / shape.ep)),
      .weight_element = shape.weight_scales.group_size > 0.0 ? bytes_per_element(shape.weights, shape.weight_scales)
                                                             : bytes_per_element(shape.weights),
      .activation_element = activation_bytes(shape.activations)};
}

double power_of_two_at_least(double x) { return std::exp2(std::ceil(std::log2(std::max(x, 1.0)) - 1e-9)); }

std::size_t tile_index(double rows) {
  return static_cast<std::size_t>(std::clamp(std::lround(std::log2(rows)), 3l, 2l + static_cast<long>(kTileHeights))) -
         3;
}

/// Of a kernel that does not know the loads: it has rows for every choice, and for each local expert all but one of a
/// tile's rows. Source: vllm/model_executor/layers/fused_moe/deep_gemm_utils.py (compute_aligned_M).
double idle_tiles(const LocalExperts& part, const ExpertTraits& t) {
  if (t.rows != ExpertRows::kReserved) return 0.0;
  const double all = std::ceil((part.choices + part.experts * (t.rows_high - 1.0)) / t.rows_high - 1e-9);
  return std::max(0.0, all - part.load.tiles[tile_index(t.rows_high)]);
}

/// Experts per rank and inner dimensions for which vLLM ships tuned tiles for the A100-SXM4-80GB. Source: the file
/// names in vllm-project/vllm (Apache-2.0), vllm/model_executor/layers/fused_moe/configs.
bool has_shipped_table(double experts, double inter) {
  static constexpr std::array<std::pair<double, double>, 19> kTables{{{1, 1792},
                                                                      {1, 3584},
                                                                      {1, 7168},
                                                                      {1, 14336},
                                                                      {8, 1792},
                                                                      {8, 2048},
                                                                      {8, 3584},
                                                                      {8, 4096},
                                                                      {8, 7168},
                                                                      {16, 1344},
                                                                      {16, 1792},
                                                                      {16, 2688},
                                                                      {16, 3584},
                                                                      {16, 7168},
                                                                      {16, 14336},
                                                                      {64, 640},
                                                                      {64, 1280},
                                                                      {64, 1408},
                                                                      {128, 192}}};
  return std::find(kTables.begin(), kTables.end(), std::pair(experts, inter)) != kTables.end();
}

/// Smallest and largest tile height that the kernel may use for this shape; equal if a rule decides.
struct TileChoice {
  std::size_t first, last;
  double columns = kTileColumns;
  double step = 0.0;  ///< in elements of the inner dimension; 0: deep enough to hide the memory latency
};
/// vLLM's default since 0.16, which depends on the tokens of a step (github.com/vllm-project/vllm/pull/34846). The
/// tables for Ampere were measured with the earlier default.
TileChoice later_default(double tokens) {
  const double rows = tokens <= 32.0 ? 16.0 : tokens <= 96.0 ? 32.0 : tokens <= 512.0 ? 64.0 : 128.0;
  const std::size_t index = tile_index(rows);
  return {index, index, tokens <= 64.0 ? kDefaultTileColumns : kTileColumns, kSmallTileStep};
}

TileChoice tiles_allowed(const MoeShape& shape, const LocalExperts& part, const ExpertTraits& t, const GpuSpec& gpu) {
  const double local = part.experts;
  const TileChoice any{tile_index(t.rows_low), tile_index(t.rows_high)};
  double rows = t.rows_high, columns = kTileColumns, step = 0.0;
  switch (t.rule) {
    case TileRule::kTuned:
      return any;
    case TileRule::kLocalMean:
      rows = power_of_two_at_least(t.fill * part.choices / local);
      break;
    case TileRule::kGlobalMean:
      rows = power_of_two_at_least(t.fill * part.choices / (comes_by_expert(shape) ? local : shape.experts));
      break;
    case TileRule::kShipped:
      if (gpu.architecture != Architecture::kAmpere) return later_default(part.held);
      if (has_shipped_table(local, part.inter)) return any;
      columns = kDefaultTileColumns;
      rows = part.held <= local ? t.rows_low : 4.0 * t.rows_low;
      step = part.held <= local ? kSmallTileStep : kLargeTileStep;
      break;
    case TileRule::kTwoSizes:
      rows = part.held <= local ? t.rows_low : t.rows_high;
      break;
  }
  const std::size_t index = tile_index(std::clamp(rows, t.rows_low, t.rows_high));
  return {index, index, columns, step};
}

/// Inputs of the two GEMMs beside the tile height, in seconds and bytes.
struct ProductRates {
  double flops_per_sm = 0, sms = 0;
  double weights_per_second = 0, operands_per_second = 0;
  double kept_bytes = 0;    ///< bytes of an expert's weights that stay in L2 for its next tile of rows
  double step_seconds = 0;  ///< latency of one step of a tile's inner dimension
};
/// C[rows, n] = A[rows, k] B[k, n] for every expert with tokens.
struct GroupedProduct {
  double n = 0, k = 0;
  double a_bytes = 0;
  double stall = 0;  ///< relative to the time of its tiles
};
struct ProductTime {
  double total = 0, compute = 0, memory = 0;
};

/// One grouped GEMM with n columns and inner dimension k over the experts with tokens, in tiles of `rows` x `columns`:
///   compute = waves x (2 columns ceil64(k) (rows + overhead + empty_row_loss empty rows) / rate of an SM + start of a
///   tile)
/// Tiles narrower than 128 columns also lose overhead along their columns: overhead (1 / columns - 1 / 128) more.
///   memory  = weights of these experts, read again for further tiles of rows unless L2 kept them,
///             + A and C of the assignments; in quadrature with the latency of a tile's consecutive steps
///   time    = sqrt(compute^2 + memory^2): the closer the two are, the less they overlap
/// Tiles without a row come last, where no weights are left to read: their compute is added.
/// Tiles run in waves over the SMs. Experts with few tokens fill their tiles poorly, which is the main loss of a MoE.
ProductTime grouped_product(const GroupedProduct& product, std::size_t tile, const TileChoice& choice,
                            const LocalExperts& part, const ProductRates& rates, const MoeParameters& p) {
  const auto [n, k, a_bytes, stall] = product;
  const double columns = choice.columns;
  const double blocks = part.load.tiles[tile] * std::ceil(n / columns);
  const double waves = std::max(1.0, std::ceil(blocks / rates.sms - 1e-9));
  const double depth = std::ceil(k / kTileDepth) * kTileDepth;
  const double narrow = 1.0 + p.tile_overhead_rows * (1.0 / columns - 1.0 / kTileColumns);
  const double filled = part.load.tiles[tile] > 0.0 ? part.load.assignments / part.load.tiles[tile] : 0.0;
  const double empty = std::max(0.0, tile_rows(tile) - filled);
  const double height = tile_rows(tile) + p.tile_overhead_rows + p.empty_row_loss * empty;
  const double one = 2.0 * columns * narrow * depth * height / rates.flops_per_sm;
  ProductTime time;
  const double turn = one * (1.0 + stall) + p.tile_us * 1e-6;
  const double idle = std::ceil((blocks + part.idle_tiles * std::ceil(n / columns)) / rates.sms - 1e-9) - waves;
  time.compute = waves * turn;
  const double weights = n * k * part.weight_element;
  const double again = std::max(0.0, weights - rates.kept_bytes) * (part.load.tiles[tile] - part.load.hits);
  time.memory = part.load.hits * weights / rates.weights_per_second +
                (again + a_bytes + part.load.assignments * 2.0 * n) / rates.operands_per_second;
  if (choice.step > 0.0) time.memory = root_sum_of_squares(time.memory, depth / choice.step * rates.step_seconds);
  const double slow = std::fmod(k, kAlignment) == 0.0 ? 1.0 : p.unaligned_slowdown;
  time.compute *= slow;
  time.memory *= slow;
  time.total = std::sqrt(time.compute * time.compute + time.memory * time.memory);
  if (part.idle_tiles > 0.0) {
    const double more = std::max(0.0, idle) * turn * slow;
    time.compute += more;
    time.total += more;
  }
  return time;
}

ProductTime both_products(const GroupedProduct& up, std::size_t tile, const TileChoice& choice,
                          const LocalExperts& part, const ProductRates& rates, const MoeParameters& p) {
  const GroupedProduct down{part.hidden, part.inter, part.load.assignments * part.inter * part.activation_element};
  ProductTime time = grouped_product(up, tile, choice, part, rates, p);
  const ProductTime second = grouped_product(down, tile, choice, part, rates, p);
  time.total += second.total;
  time.compute += second.compute;
  time.memory += second.memory;
  return time;
}

ProductTime fastest_tile(const TileChoice& choice, const GroupedProduct& up, const LocalExperts& part,
                         const ProductRates& rates, const MoeParameters& p) {
  ProductTime best = both_products(up, choice.first, choice, part, rates, p);
  for (std::size_t tile = choice.first + 1; tile <= choice.last; ++tile) {
    const ProductTime other = both_products(up, tile, choice, part, rates, p);
    if (other.total < best.total) best = other;
  }
  return best;
}

double fixed_seconds(const MoeShape& shape, const LocalExperts& part, const MoeParameters& p) {
  const double mapping = shape.ep > 1.0 ? p.expert_map_us : 0.0;
  return 1e-6 * (p.launch_us + p.launch_us_per_expert * part.experts + mapping + p.router_us_per_choice * shape.top_k) +
         1e-9 * p.ns_per_assignment * part.choices;
}

/// Bytes of the shuffling: gather tokens to the experts (and quantize them), activate, and sum the experts' outputs.
/// Rows and tokens are read and written. If the GEMM gathers, only the tokens are quantized. Kernels that process all
/// rows may first write zeros in both GEMMs for the rows of other ranks (ExpertRows::kZeroed). After DeepEP, tokens
/// arrive quantized: in place in the low-latency mode; in the normal mode they are copied to padded rows, and their
/// results are summed back to the rank's tokens.
double shuffle_bytes(const LocalExperts& part, const ExpertTraits& t) {
  const double element = part.activation_element;
  const double between = part.inter * (2.0 * part.gates + element);
  if (t.rows == ExpertRows::kPlaced) return part.load.assignments * between;
  if (t.rows == ExpertRows::kPadded || t.rows == ExpertRows::kReserved) {
    const double padded = (part.load.tiles[tile_index(t.rows_high)] + part.idle_tiles) * t.rows_high;
    return padded * between + part.load.assignments * part.hidden * (element + 2.0) +
           part.held * part.hidden * (element + 2.0);
  }
  const double all = part.choices, rows = t.rows != ExpertRows::kLocal ? all : part.load.assignments;
  const double zeroed = t.rows == ExpertRows::kZeroed ? std::max(0.0, all - part.load.assignments) : 0.0;
  const double moved = t.gathers ? 0.0 : part.hidden * (2.0 + element);
  return rows * (moved + part.inter * (2.0 * part.gates + element) + 2.0 * part.hidden) +
         zeroed * 2.0 * (part.inter * part.gates + part.hidden) + 4.0 * part.held * part.hidden;
}

/// The first GEMM. Gathered rows are read from memory once and, for a token's other experts, from L2 as far as the
/// tokens fit. The tiles stall on the other rows.
GroupedProduct first_product(const LocalExperts& part, const ExpertTraits& t, const MoeParameters& p,
                             const GpuSpec& gpu) {
  const double row = part.hidden * part.activation_element, all = part.load.assignments * row;
  GroupedProduct up{part.gates * part.inter, part.hidden, all};
  if (!t.gathers) return up;
  const double once = std::min(part.held * row, all);
  const double missed = 1.0 - std::min(1.0, kL2Usable * gpu.l2_cache.base() / once);
  up.a_bytes = once + (all - once) * missed;
  up.stall = p.gather_loss * missed;
  return up;
}

/// Kernels that choose their tiles by the mean load process all columns of one tile of rows before the next. They read
/// an expert's weights again for each tile, except for what L2 kept. Other kernels process several tiles of rows at a
/// time.
double kept_bytes(const ExpertTraits& t, const GpuSpec& gpu) {
  const bool one_by_one = t.rule == TileRule::kLocalMean && !t.gathers;
  return one_by_one ? kL2Usable * gpu.l2_cache.base() : std::numeric_limits<double>::infinity();
}

FlopsPerSecond peak_of(const MoeShape& shape, const GpuSpec& gpu) {
  const std::optional<Dtype> compute = gpu.compute_dtype(shape.weights, shape.activations);
  SIM_CHECK(compute && gpu.peak(*compute).base() > 0.0, "the GPU has no unit for the experts' format");
  return gpu.peak(*compute);
}

/// Weights in L2 are read at its rate and latency. Rows of 64 bytes are slower to read from memory.
ProductRates product_rates(const MoeShape& shape, const LocalExperts& part, const TileChoice& tiles,
                           const ExpertTraits& t, const MoeParameters& p, const GpuSpec& gpu, bool repeated) {
  const double bandwidth = gpu.memory_bandwidth.base() * p.bandwidth_fraction;
  const double cached = repeated ? rate_with_l2(gpu, Bytes{part.weights()}, bandwidth) : bandwidth;
  const bool short_rows = tiles.step == kLargeTileStep;
  return {.flops_per_sm = peak_of(shape, gpu).base() / gpu.sm_count * p.compute_fraction,
          .sms = static_cast<double>(gpu.sm_count),
          .weights_per_second = cached > bandwidth || !short_rows ? cached : bandwidth * p.short_row_bandwidth,
          .operands_per_second = bandwidth,
          .kept_bytes = kept_bytes(t, gpu),
          .step_seconds = p.memory_step_us * 1e-6 * bandwidth / cached};
}

/// The roofline of the two GEMMs, with the activation's traffic between them. Dense layers count that traffic too, so
/// one expert used by every token costs as much as a dense layer.
Cost ideal_experts(const LocalExperts& part, FlopsPerSecond peak, BytesPerSecond bandwidth) {
  Cost cost = roofline(Flops{part.flops()}, Bytes{part.weights() + part.operands()}, peak, bandwidth);
  const Bytes activation{part.load.assignments * part.inter * (part.gates + 1.0) * 2.0};
  cost.bytes += activation;
  cost.time += activation / bandwidth;
  return cost;
}

CallTraits traits_of(const MoeShape& shape, const GpuSpec& gpu) {
  CallTraits traits(gpu);
  traits.weights = shape.weights;
  traits.activation_bits = element_bits(shape.activations);
  traits.gated = shape.gated;
  traits.expert_ranks = shape.ep;
  traits.asked = shape.asked;
  traits.layout = shape.layout;
  return traits;
}

/// Whether a rule applied because the engine is configured to use this kernel.
bool is_asked(const KernelRule& rule) {
  return std::any_of(rule.when.begin(), rule.when.end(), [](const CallCondition& condition) {
    return std::holds_alternative<OneOf<RequestedExperts>>(condition);
  });
}

/// The first measured kernel that the rules allow. `lent` is set if the rules name another one before it or, if one was
/// requested, if this is another kind.
ExpertsChoice first_measured(const MoeShape& shape, const GpuSpec& gpu, const Efficiency& efficiency) {
  const CallTraits traits = traits_of(shape, gpu);
  const bool asked = shape.asked != RequestedExperts::kDefault && shape.asked != RequestedExperts::kUntuned;
  const Kernel* named = nullptr;
  for (const KernelRule& rule : efficiency.rules().of(KernelKind::kExperts)) {
    if (!rule.applies(traits)) continue;
    if (named == nullptr) named = rule.kernel;
    if (const ConstantsBlock& block = efficiency.block(*rule.kernel, shape.weights))
      return {static_cast<const ExpertsKernel*>(rule.kernel), &block, asked ? !is_asked(rule) : rule.kernel != named};
  }
  return {};
}

}  // namespace

const ExpertsKernel& named_experts(const MoeShape& shape, const GpuSpec& gpu, const KernelRules& rules) {
  return static_cast<const ExpertsKernel&>(rules.pick(KernelKind::kExperts, traits_of(shape, gpu)));
}

ExpertsChoice choose_experts(const MoeShape& shape, const Machine& machine) {
  const Efficiency& efficiency = efficiency_of(machine);
  const ExpertsChoice own = first_measured(shape, *machine.gpu, efficiency);
  const bool untuned = shape.asked == RequestedExperts::kUntuned;  // says nothing about tuned kernels, and vice versa
  if (own.kernel != nullptr && !(own.lent && untuned)) return own;
  if (untuned) return {&named_experts(shape, *machine.gpu, efficiency.rules()), nullptr, false};
  MoeShape plain = shape;  // only the default kernel stands in for other formats
  plain.asked = RequestedExperts::kDefault, plain.gated = true, plain.ep = 1, plain.activations = Dtype::kBf16;
  for (const Dtype near : {Dtype::kFp8, Dtype::kMxfp4, Dtype::kInt4, Dtype::kBf16}) {
    const double gap = element_bits(near) - element_bits(shape.weights);
    if (gap < 0.0 || (gap > 4.0 && near != Dtype::kBf16)) continue;
    plain.weights = near;
    if (ExpertsChoice other = first_measured(plain, *machine.gpu, efficiency); other.kernel != nullptr) {
      other.lent = true;
      return other;
    }
  }
  return {&named_experts(shape, *machine.gpu, efficiency.rules()), nullptr, false};
}

Evidence experts_evidence(const MoeShape& shape, const Machine& machine) {
  const ExpertsChoice choice = choose_experts(shape, machine);
  const double lent = choice.kernel->facts().unexplained.lent;
  if (choice.constants == nullptr) return {nullptr, lent};  // as uncertain as another kernel's constants
  return {choice.constants->record, choice.lent ? lent : 0.0};
}

ExpertLayout parse_expert_layout(std::string_view name, const SourceLocation& location) {
  static constexpr std::array<std::string_view, 4> kNames{"whole", "received", "masked", "contiguous"};
  return static_cast<ExpertLayout>(choice_of("layout of tokens", name, kNames, location));
}

bool expands_choices(const MoeShape& shape, const GpuSpec& gpu) {
  return shape.expanded && shape.weights == Dtype::kFp8Block && gpu.architecture == Architecture::kBlackwell;
}

namespace {

/// Two more kernels over the rows of the local choices: a 16-bit copy before quantization (written and read again), and
/// a copy of the results before they are summed (docs/equations-moe.md).
Cost expansion(const MoeShape& shape, const Machine& machine) {
  constexpr double kReadAndWritten = 2.0 + 2.0, kCopies = 2.0;  // bytes per value
  const double values = local_part(shape).load.assignments * shape.hidden;
  return elementwise(Bytes(kCopies * kReadAndWritten * values), Flops(0), kCopies, machine);
}

/// Constants that stand in from another format, at the rate of the format that runs.
MoeParameters parameters_of(const ExpertsChoice& choice, const MoeShape& shape, const Machine& machine) {
  const ExpertsKernel& kernel = *choice.kernel;
  const GpuSpec& gpu = *machine.gpu;
  if (choice.constants == nullptr) return kernel.parameters(kernel.assumed(gpu, shape.weights));
  const auto compute = gpu.compute_dtype(shape.weights, shape.activations);
  for (const Dtype near : {Dtype::kFp8, Dtype::kMxfp4, Dtype::kInt4, Dtype::kBf16}) {
    const ConstantsBlock& block = machine.efficiency->block(kernel, near);
    if (near == shape.weights || !compute || block.values != choice.constants->values) continue;
    return kernel.parameters(carried_for(kernel, block, *compute, gpu));
  }
  return kernel.parameters(*choice.constants);
}

}  // namespace

Cost moe_experts(const MoeShape& shape, const Machine& machine) {
  if (machine.fidelity == Fidelity::kCalibrated) {
    const ExpertsChoice choice = choose_experts(shape, machine);
    const MoeParameters p = parameters_of(choice, shape, machine);
    static const ConstantsBlock kNone;
    const ConstantsBlock& constants = choice.constants != nullptr ? *choice.constants : kNone;
    Cost cost = with_sms_to_spare(constants, *machine.gpu, [&](const GpuSpec& used) {
      return moe_experts_with(shape, choice.kernel->traits(), p, used);
    });
    if (expands_choices(shape, *machine.gpu)) {
      const Cost copies = expansion(shape, machine);
      cost.time += copies.time;
      cost.bytes += copies.bytes;
    }
    return cost;
  }
  return ideal_experts(local_part(shape), peak_of(shape, *machine.gpu), machine.gpu->memory_bandwidth);
}

double expert_values(const MoeShape& shape) { return shape.tokens > 0.0 ? local_part(shape).values() : 0.0; }

/// time = gate+up GEMM + down GEMM + shuffling + fixed costs; see grouped_product.
///   fixed = launch + per expert x local experts + per assignment x T k + expert map (ep > 1) + per choice x k
/// A repeated layer finds its weights in L2 if they fit (hw/kernels/l2.h). A served layer does not, because the weights
/// of other layers are read in between. The layer's own output is in L2 in both cases. Source: docs/equations-moe.md.
/// Off by up to 2x where a library chose a bad tactic for some (tp, ep).
Cost moe_experts_with(const MoeShape& shape, const ExpertTraits& traits, const MoeParameters& p, const GpuSpec& gpu,
                      bool repeated) {
  if (shape.tokens <= 0.0) return {};
  LocalExperts part = local_part(shape);
  part.idle_tiles = idle_tiles(part, traits);
  const double bandwidth = gpu.memory_bandwidth.base() * p.bandwidth_fraction;
  const double shuffled = shuffle_bytes(part, traits);
  const TileChoice tiles = tiles_allowed(shape, part, traits, gpu);
  const ProductRates rates = product_rates(shape, part, tiles, traits, p, gpu, repeated);
  const ProductTime products = fastest_tile(tiles, first_product(part, traits, p, gpu), part, rates, p);
  const double shuffle = shuffled / rate_with_l2(gpu, Bytes{shuffled}, bandwidth / p.activation_passes);
  const double fixed = fixed_seconds(shape, part, p);
  const double memory = products.memory + shuffle;
  const Bound bound = fixed > std::max(memory, products.compute) ? Bound::kLatency
                      : products.compute > memory                ? Bound::kCompute
                                                                 : Bound::kMemory;
  return {.time = Seconds{products.total + shuffle + fixed},
          .flops = Flops{part.flops()},
          .bytes = Bytes{part.weights() + part.operands()},
          .bound = bound};
}

}  // namespace roofcast
