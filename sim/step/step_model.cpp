#include "sim/step/step_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/model/mixer_model.h"
#include "sim/step/step_state.h"

namespace roofcast {
namespace {

/// Attention of decoded tokens in one launch with prefill chunks, by FlashAttention-2 over a paged cache: queries are
/// cut into tiles of 64 rows of one head (flash_fwd_launch_template.h, run_mha_fwd_splitkv_dispatch), where a lone
/// query fills a tile for each of its heads. Without prefill the heads of a group are the rows of one.
///   flops = 2 ceil(q / 64) 64 batch heads visible (head_dim + value_dim), every layer
/// The rate is what steps of 128 sequences with a chunk beside them took on an RTX PRO 6000 under vLLM 0.19.
Seconds tile_time(const Deployment& d, const std::vector<TiledHeads>& layers, double decodes, double mean_context,
                  int query_len) {
  constexpr double kRows = 64, kShareOfPeak = 0.45;
  double flops = 0;
  for (const TiledHeads& a : layers) {
    const double visible = a.window > 0 ? std::min<double>(a.window, mean_context) : mean_context;
    flops += 2.0 * a.layers * a.heads * visible * a.width;
  }
  const double rows = std::ceil(query_len / kRows) * kRows;
  return Flops(flops * rows * decodes) / (d.gpu.peak(Dtype::kBf16) * kShareOfPeak);
}

/// vLLM runs FlashAttention-2 where a GPU has the kernels of an Ampere one, but over caches of 8 bits FlashInfer, which
/// decodes in a launch of its own.
bool runs_flash_attention_2(const Deployment& d) {
  return element_bits(d.precision.kv_cache) > 8 && d.engine.attention_kernel == "flash" &&
         d.engine.kernels != KernelFamily::kTrtllm &&
         (d.gpu.architecture == Architecture::kAmpere || d.efficiency.ampere_kernels);
}

/// Heads of one GPU whose decode is priced by tile_time beside prefill.
std::vector<TiledHeads> tiled_heads(const Deployment& d) {
  if (d.fidelity == Fidelity::kIdeal || !runs_flash_attention_2(d)) return {};
  std::vector<TiledHeads> out;
  for (const LayerKind& kind : d.model.layers) {
    if (const auto a = model_of(kind.mixer)->cached_heads())
      out.push_back(
          {static_cast<double>(kind.count), heads_of(a->heads, d.sharding), a->head_dim + a->value_dim, a->window});
  }
  return out;
}

/// Sum of i * slope + first over i in [0, n).
double series(double first, double slope, double n) { return n * first + slope * n * (n - 1.0) / 2.0; }

/// Sum over i in [0, n) of max(first + slope i, floor), slope >= 0.
double floored_series(double first, double slope, double n, double floor) {
  if (first >= floor) return series(first, slope, n);
  if (slope <= 0.0) return n * floor;
  const double below = std::min(n, std::ceil((floor - first) / slope));
  return below * floor + series(first + slope * below, slope, n - below);
}

}  // namespace

StepModel::State::State(std::shared_ptr<const Deployment> d)
    : deployment(std::move(d)), host(*deployment), parts(*deployment), tiles(tiled_heads(*deployment)) {}

StepModel::StepModel(std::shared_ptr<const Deployment> deployment)
    : state_(std::make_unique<State>(std::move(deployment))) {}
StepModel::~StepModel() = default;
StepModel::StepModel(StepModel&&) noexcept = default;

const Deployment& StepModel::deployment() const { return *state_->deployment; }

StepTotal StepModel::State::without_mixers(const StepBatch& batch) {
  StepTotal total;
  total.rank = rank_batch(batch, deployment->sharding);
  total.host = host.time(batch, total.rank);
  total.mixers = slowest_mixers(batch, total.host.gap);
  const double tokens = host.padded_tokens(batch, total.rank);
  total.sum.add(parts.sum(TokenPart{tokens, total.rank.group_tokens, !batch.prefills.empty()}));
  total.sum.add(parts.sum(HeadPart{batch.prefills.empty() ? tokens : total.rank.logit_rows}));
  total.sum.seconds += host.rank_skew() * total.sum.collectives;
  if (!total.host.eager) total.sum.seconds += total.host.pieces + total.host.gap * total.sum.kernels;
  return total;
}

StepTotal StepModel::State::total(const StepBatch& batch) {
  StepTotal total = without_mixers(batch);
  for_each_mixer_part(
      total.mixers, batch.query_len, total.host.gap,
      [&](const auto& part, double share, double starts) { total.sum.add(parts.sum(part), share, starts); });
  return total;
}

OperatorSum StepModel::State::mixers_sum(const RankMixers& of, int query_len, double gap) {
  OperatorSum sum{.seconds = 0};
  for_each_mixer_part(of, query_len, gap,
                      [&](const auto& part, double share, double starts) { sum.add(parts.sum(part), share, starts); });
  return sum;
}

/// A rank without prompts is the slowest of its kind when its caches are the largest; those with prompts are compared.
RankMixers StepModel::State::slowest_mixers(const StepBatch& batch, double gap) {
  const Sharding& sharding = deployment->sharding;
  if (batch.ranks.empty()) return even_mixers(batch, sharding);
  const std::size_t fullest = fullest_cache(batch.ranks);
  std::size_t first = 0;
  RankMixers slowest;
  double longest = -1;
  for (std::size_t i = 0; i < batch.ranks.size(); ++i) {
    const int prefills = batch.ranks[i].prefills;
    if (prefills > 0 || i == fullest) {
      const RankMixers of = rank_mixers(batch, i, first, sharding);
      if (batch.prefills.empty()) return of;
      if (const double seconds = mixers_sum(of, batch.query_len, gap).seconds; seconds > longest)
        longest = seconds, slowest = of;
    }
    first += static_cast<std::size_t>(prefills);
  }
  return slowest;
}

double StepModel::State::least_decode_seconds(const RankMixers& of, int query_len) const {
  if (tiles.empty() || of.prefills.empty()) return 0.0;
  return tile_time(*deployment, tiles, of.decodes, of.mean_context, query_len).base();
}

StepCost StepModel::cost(const StepBatch& batch) {
  SIM_CHECK(batch.decodes > 0 || !batch.prefills.empty(), "a step has work");
  const StepTotal total = state_->total(batch);
  return {.time = total.time(),
          .flops = Flops(total.sum.flops),
          .bytes = Bytes(total.sum.bytes),
          .launched = total.host.launched(total.sum.launches)};
}

/// Segment by segment: within a segment of the curve the step time is linear in the step's number.
StepCost StepModel::decode_run(const StepBatch& first_step, std::int64_t steps) {
  State& s = *state_;
  const int query_len = first_step.query_len;
  const StepTotal fixed = s.without_mixers(first_step);
  DecodePart part{.sequences = fixed.mixers.decodes,
                  .query_len = query_len,
                  .mean_context = fixed.mixers.mean_context,
                  .gap = fixed.host.gap};
  double left = static_cast<double>(steps), seconds = 0, flops = 0, bytes = 0, launches = 0;
  while (left > 0) {
    const DecodeLine line = s.parts.line(part);
    OperatorSum first = fixed.sum;
    first.add(line.here);
    const double n = std::min(left, std::max(1.0, std::ceil((line.segment.high - part.mean_context) / query_len)));
    const double dt = query_len / (line.segment.high - line.segment.low);
    seconds +=
        floored_series(first.seconds, dt * (line.high.seconds - line.low.seconds), n, fixed.host.least(first.launches));
    flops += series(first.flops, dt * (line.high.flops - line.low.flops), n);
    bytes += series(first.bytes, dt * (line.high.bytes - line.low.bytes), n);
    launches = first.launches;
    left -= n;
    part.mean_context += n * query_len;
  }
  return {.time = Seconds(seconds + fixed.host.before * static_cast<double>(steps)),
          .flops = Flops(flops),
          .bytes = Bytes(bytes),
          .launched = fixed.host.launched(launches)};
}

/// Bisection on the closed form; the time of a run grows with its steps.
std::int64_t StepModel::steps_within(const StepBatch& first, Seconds budget, std::int64_t limit) {
  if (limit <= 1 || budget <= Seconds(0)) return std::min<std::int64_t>(limit, 1);
  const auto ends_before = [&](std::int64_t steps) { return decode_run(first, steps).time < budget; };
  // A first guess from the first step's time makes the bracket small.
  const double one = decode_run(first, 1).time.base();
  std::int64_t high = std::min(limit, static_cast<std::int64_t>(std::min(budget.base() / one, 1e12)) + 2), low = 0;
  if (ends_before(high - 1)) return high == limit ? limit : high;
  high -= 1;  // ends_before(low) holds (0 steps), ends_before(high) does not
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (ends_before(middle) ? low : high) = middle;
  }
  return std::min(limit, low + 1);
}

}  // namespace roofcast
