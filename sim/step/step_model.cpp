#include "sim/step/step_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "hw/efficiency.h"
#include "hw/kernel_rules.h"
#include "sim/model/feed_forward_model.h"
#include "sim/model/mixer_model.h"
#include "sim/step/step_state.h"

namespace roofcast {
namespace {

/// Attention of decoded tokens in one launch with prefill chunks, by FlashAttention-2 over a paged cache. Queries are
/// split into tiles of 64 rows of one head (flash_fwd_launch_template.h, run_mha_fwd_splitkv_dispatch), so a single
/// query fills a whole tile per head. Without prefill the heads of a group are the rows of one tile.
///   flops = 2 ceil(q / 64) 64 batch heads visible (head_dim + value_dim), every layer
/// The rate was measured in steps of 128 sequences with a chunk, on an RTX PRO 6000 under vLLM 0.19.
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

/// vLLM uses FlashAttention-2 on GPUs with Ampere's kernels; with 8-bit caches it uses FlashInfer, which decodes in a
/// separate launch.
bool runs_flash_attention_2(const Deployment& d) {
  return element_bits(d.precision.kv_cache) > 8 && d.engine.attention_kernel == "flash" &&
         d.kernel_rules().engine().flash_attention_2 &&
         (d.gpu.architecture == Architecture::kAmpere || d.efficiency->ampere_kernels);
}

/// Heads on one GPU whose decode in a step with prefill is priced by tile_time.
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

/// LLM.int8() needs the number of outlier columns before it can start the rest of a product (bitsandbytes,
/// MatMul8bitLt.forward): host and GPU wait for each other once per product.
bool waits_in_products(const Deployment& d) { return d.precision.outlier_fraction > 0; }

/// Fraction of the layers with attention that have routed experts.
double routed_share(const ModelSpec& model) {
  double all = 0, routed = 0;
  for (const LayerKind& kind : model.layers) {
    if (!facts_of(kind.mixer).present) continue;
    all += kind.count;
    if (facts_of(kind.feed_forward).experts > 0) routed += kind.count;
  }
  return all > 0 ? routed / all : 0.0;
}

}  // namespace

StepModel::State::State(std::shared_ptr<const Deployment> d)
    : deployment(std::move(d)),
      host(*deployment),
      parts(*deployment),
      encoding(*deployment, parts),
      tiles(tiled_heads(*deployment)),
      routed_share(roofcast::routed_share(deployment->model)) {
  if (deployment->adapters) adapters.emplace(*deployment->adapters);
}

StepModel::StepModel(std::shared_ptr<const Deployment> deployment)
    : state_(std::make_unique<State>(std::move(deployment))) {}
StepModel::~StepModel() = default;
StepModel::StepModel(StepModel&&) noexcept = default;

const Deployment& StepModel::deployment() const { return *state_->deployment; }

std::optional<AdapterPart> StepModel::State::adapter_part(const StepBatch& batch, double tokens,
                                                          const RankBatch& rank) const {
  if (!adapters) return std::nullopt;
  const double sequences = rank.decodes + rank.prompts;
  const double hit = batch.adapters >= 0 ? std::min(batch.adapters, sequences) : adapters->of(sequences);
  return AdapterPart{tokens, hit};
}

/// Steps that only decode dominate a simulation and differ only in their contexts.
bool StepModel::State::alike(const StepBatch& batch) const {
  return batch.prefills.empty() && batch.ranks.empty() && batch.query_len == 1 && batch.decodes > 0 && !adapters;
}

const StepTotal& StepModel::State::without_mixers(const StepBatch& batch) {
  if (!alike(batch)) return other_ = priced_without_mixers(batch);
  const auto decodes = static_cast<std::size_t>(batch.decodes);
  StepTotal& total = decodes_.at(decodes, [&] { return priced_without_mixers(batch); });
  total.mixers.mean_context = batch.decode_context / batch.decodes;
  return total;
}

StepTotal StepModel::State::priced_without_mixers(const StepBatch& batch) {
  StepTotal total{.sum = {.seconds = 0}, .host = {}, .rank = {}, .mixers = {}, .overlap = std::nullopt};
  total.rank = rank_batch(batch, deployment->sharding);
  total.host = host.time(batch, total.rank);
  total.mixers = slowest_mixers(batch, total.rank, total.host.gap);
  const double tokens = host.padded_tokens(batch, total.rank);
  const TokenPart all{tokens, total.rank.group_tokens, !batch.prefills.empty()};
  if (const int batches = overlapped_batches(batch, *deployment); batches > 0) {
    overlap(total, all, batches);
  } else {
    total.sum.add(parts.sum(all));
  }
  if (const auto added = adapter_part(batch, tokens, total.rank)) {
    const double batches = total.mixers.batches;
    total.sum.add(parts.sum(added->in_batches(batches)), batches, batches);
  }
  total.sum.add(parts.sum(HeadPart{batch.prefills.empty() ? tokens : total.rank.logit_rows}));
  total.sum.seconds += host.rank_skew() * total.sum.collectives;
  if (!total.host.eager) total.sum.seconds += total.host.gap * total.sum.kernels;
  if (waits_in_products(*deployment)) total.sum.seconds += total.host.launching(total.sum.launches);
  return total;
}

/// Layers with routed experts run in batches; other layers, and operators outside layers, run on all tokens at once.
void StepModel::State::overlap(StepTotal& total, const TokenPart& tokens, int batches) {
  const StagedSum& one = parts.staged(piece(tokens, batches));
  total.sum.add(parts.staged(tokens).outside);
  total.overlap = overlapped_layers(one.seconds, tokens.prompts, *deployment);
  total.overlap->attend_also_outside(routed_share);
  OperatorSum routed = one.routed;
  routed.seconds = 0;
  total.sum.add(routed, batches, batches);
  total.mixers.batches = batches;
}

StepTotal StepModel::State::total(const StepBatch& whole) {
  const StepBatch batch = encoding.of_decoder(whole);
  StepTotal total = alike(batch) ? without_mixers(batch) : priced_without_mixers(batch);
  const double without = total.sum.seconds;
  for_each_mixer_part(
      total.mixers, batch.query_len, total.host.gap,
      [&](const auto& part, double share, double starts) { total.sum.add(parts.sum(part), share, starts); });
  total.attention = total.sum.seconds - without;
  if (total.overlap) total.sum.seconds = without + total.overlap->seconds(total.attention);
  if (!batch.encodes.empty()) add_encoders(batch, total);
  OperatorSum before{.seconds = 0};
  encoding.for_each_part(whole.prefills, [&](StepParts& of, const auto& part, double share, double starts) {
    before.add(of.sum(part), share, starts);
  });
  if (before.bytes > 0) add_before(before, total);
  return total;
}

/// Encoders run before the language model in the same step, kernel by kernel (vllm/v1/worker/gpu_model_runner.py,
/// _execute_mm_encoder; sglang/srt/managers/mm_utils.py, general_mm_embed_routine).
void StepModel::State::add_encoders(const StepBatch& batch, StepTotal& total) {
  for (const EncoderWork& work : batch.encodes) add_before(parts.sum(EncoderPart{work}), total);
}

void StepModel::State::add_before(const OperatorSum& sum, StepTotal& total) const {
  total.encoding += std::max(sum.seconds + host.rank_skew() * sum.collectives, host.eager_seconds(sum.launches));
  total.sum.flops += sum.flops;
  total.sum.bytes += sum.bytes;
}

OperatorSum StepModel::State::mixers_sum(const RankMixers& of, int query_len, double gap) {
  OperatorSum sum{.seconds = 0};
  for_each_mixer_part(of, query_len, gap,
                      [&](const auto& part, double share, double starts) { sum.add(parts.sum(part), share, starts); });
  return sum;
}

/// Among ranks without prompts the one with the largest caches is the slowest; ranks with prompts are compared by
/// price.
RankMixers StepModel::State::slowest_mixers(const StepBatch& batch, const RankBatch& even, double gap) {
  const Sharding& sharding = deployment->sharding;
  if (batch.ranks.empty()) return even_mixers(batch, even, sharding);
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
          .launched = total.host.launched(total.sum.launches),
          .host = Seconds(total.host.before)};
}

/// Prices a run segment by segment: within a segment of the curve the step time is linear in the step number. Calls
/// add(place, n, batches, growth of the place's share per step) for each segment and returns the seconds.
template <class Add>
double StepModel::State::decode_seconds(const StepBatch& batch, const StepTotal& fixed, double steps, const Add& add) {
  const int query_len = batch.query_len;
  const double batches = fixed.mixers.batches;
  DecodePart part{.sequences = std::ceil(fixed.mixers.decodes / batches),
                  .query_len = query_len,
                  .mean_context = fixed.mixers.mean_context,
                  .gap = fixed.host.gap};
  if (steps == 1 && !fixed.overlap) {  // the most common case
    const DecodePlace at = parts.place(part);
    add(at, 1.0, batches, 0.0);
    const double least = fixed.host.least(fixed.sum.launches + batches * at.low.launches);
    return std::max(fixed.sum.seconds + batches * at.seconds(part), least) + fixed.host.before;
  }
  double seconds = 0;
  for (double left = steps; left > 0;) {
    const DecodePlace at = parts.place(part);
    const double n =
        left <= 1 ? left : std::min(left, std::max(1.0, std::ceil((at.segment.high - part.mean_context) / query_len)));
    const double grows = batches * (query_len / (at.segment.high - at.segment.low));
    const double attention = batches * at.seconds(part), slope = grows * (at.high.seconds - at.low.seconds);
    const double least = fixed.host.least(fixed.sum.launches + batches * at.low.launches);
    seconds += fixed.overlap ? fixed.overlap->series(fixed.sum.seconds, attention, slope, n, least)
                             : floored_series(fixed.sum.seconds + attention, slope, n, least);
    add(at, n, batches, grows);
    left -= n;
    part.mean_context += n * query_len;
  }
  return seconds + fixed.host.before * steps;
}

StepCost StepModel::State::decode_run(const StepBatch& batch, const StepTotal& fixed, std::int64_t steps) {
  double flops = 0, bytes = 0, launches = 0;
  const auto add = [&](const DecodePlace& at, double n, double batches, double grows) {
    launches = fixed.sum.launches + batches * at.low.launches;
    flops +=
        series(fixed.sum.flops + batches * at.between(&DecodeKnot::flops), grows * (at.high.flops - at.low.flops), n);
    bytes +=
        series(fixed.sum.bytes + batches * at.between(&DecodeKnot::bytes), grows * (at.high.bytes - at.low.bytes), n);
  };
  const double seconds = decode_seconds(batch, fixed, static_cast<double>(steps), add);
  return {.time = Seconds(seconds),
          .flops = Flops(flops),
          .bytes = Bytes(bytes),
          .launched = fixed.host.launched(launches),
          .host = Seconds(fixed.host.before * static_cast<double>(steps))};
}

StepCost StepModel::decode_run(const StepBatch& first, std::int64_t steps) {
  return state_->decode_run(first, state_->without_mixers(first), steps);
}

Seconds StepModel::run_time(const StepBatch& first, std::int64_t steps) {
  const StepTotal& fixed = state_->without_mixers(first);
  return Seconds(state_->decode_seconds(first, fixed, static_cast<double>(steps), [](const auto&...) {}));
}

/// The time of a run grows nearly in proportion to its steps. The next guess is where the line through the bracket's
/// ends meets the budget, or the middle if the last guess did not halve the bracket.
std::int64_t StepModel::steps_within(const StepBatch& first, Seconds budget, std::int64_t limit) {
  if (limit <= 1 || budget <= Seconds(0)) return std::min<std::int64_t>(limit, 1);
  const StepTotal& fixed = state_->without_mixers(first);
  const auto time_of = [&](std::int64_t steps) {
    return state_->decode_seconds(first, fixed, static_cast<double>(steps), [](const auto&...) {});
  };
  const double end = budget.base(), one = time_of(1);
  // Guess from the first step's time; steps slow down, so the run of the previous steps covers most of the budget.
  const std::int64_t most = std::min(limit, static_cast<std::int64_t>(std::min(end / one, 1e12)) + 2);
  std::int64_t low = 0, high = most - 1;
  double low_time = 0, high_time = time_of(high);
  if (high_time < end) return most;
  bool halve =
      false;  // invariant: the run of `low` steps ends before the budget does, the run of `high` steps does not
  while (high - low > 1) {
    const std::int64_t width = high - low;
    const double share = halve ? 0.5 : (end - low_time) / (high_time - low_time);
    const std::int64_t guess =
        std::clamp(low + static_cast<std::int64_t>(share * static_cast<double>(width)), low + 1, high - 1);
    const double time = time_of(guess);
    (time < end ? low : high) = guess;
    (time < end ? low_time : high_time) = time;
    halve = 2 * (high - low) > width;
  }
  return std::min(limit, low + 1);
}

}  // namespace roofcast
