#include "sim/step/step_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <unordered_map>
#include <utility>
#include <variant>

#include <boost/container_hash/hash.hpp>

#include "sim/model/mixer_model.h"
#include "sim/step/decode_curve.h"
#include "sim/step/operator_cost.h"

namespace roofcast {
namespace {

/// GEMMs are priced exactly up to here (in block fp8 a product of 4,103 rows takes a twentieth more than one of 4,096),
/// and linearly between multiples of 64 from here on, where a wave of tiles is a small part of the whole.
constexpr int kExactTokens = 16384;
constexpr int kTokenKnot = 64;
/// A step of more is priced every time: the memory of knots grows with the largest.
constexpr double kRememberedTokens = 1 << 24;

/// Operators of one kind of work, summed.
struct Sum {
  double seconds = std::numeric_limits<double>::quiet_NaN();
  double flops = 0, bytes = 0, launches = 0, kernels = 0, collectives = 0;
  bool known() const { return !std::isnan(seconds); }
};

Sum sum_of(const std::vector<Operator>& operators, const Machine& machine) {
  Sum sum{.seconds = 0};
  for (const Operator& op : operators) {
    const Cost cost = cost_of(op.work, machine);
    sum.seconds += op.count * cost.time.base();
    sum.flops += op.count * cost.flops.base();
    sum.bytes += op.count * cost.bytes.base();
    const Launches launches = launches_of(op.work, machine);
    sum.launches += op.count * launches.eager;
    sum.kernels += op.count * launches.replayed;
    sum.collectives += launches.collective ? op.count : 0.0;
  }
  return sum;
}

Sum between(const Sum& a, const Sum& b, double t) {
  return {.seconds = a.seconds + t * (b.seconds - a.seconds),
          .flops = a.flops + t * (b.flops - a.flops),
          .bytes = a.bytes + t * (b.bytes - a.bytes),
          .launches = a.launches,
          .kernels = a.kernels,
          .collectives = a.collectives};
}

/// How a pipeline of pp stages cuts a batch: k micro-batches keep k stages busy.
int micro_batches(const Sharding& sharding, int parts) { return std::max(1, std::min(sharding.pp, parts)); }

/// What the fullest of the attention-DP ranks holds in one micro-batch.
struct RankBatch {
  double decodes = 0, mean_context = 0;
  double prefill_tokens = 0, logit_rows = 0;
  double group_tokens = 0;  ///< of all ranks together, in the micro-batch
  double tokens(int query_len) const { return decodes * query_len + prefill_tokens; }
};

RankBatch rank_batch(const StepBatch& batch, const Sharding& sharding) {
  const double ranks = sharding.attention_dp;
  const int parts = static_cast<int>(std::ceil(batch.decodes / ranks)) + static_cast<int>(batch.prefills.size());
  const double micro = micro_batches(sharding, parts);
  RankBatch rank;
  rank.decodes = std::ceil(std::ceil(batch.decodes / ranks) / micro);
  rank.mean_context = batch.decodes > 0 ? batch.decode_context / batch.decodes : 0.0;
  double total = 0, longest = 0, rows = 0;
  for (const PrefillChunk& chunk : batch.prefills) {
    total += chunk.tokens;
    longest = std::max<double>(longest, chunk.tokens);
    rows += chunk.last ? 1 : 0;
  }
  // A prompt stays on one rank; a pipeline can cut it into chunks.
  const double even = std::max(ranks > 1 ? longest : 0.0, total / ranks);
  rank.prefill_tokens = std::max(even, batch.rank_prefill_tokens) / micro;
  rank.group_tokens = (static_cast<double>(batch.decodes) * batch.query_len + total) / micro;
  rank.logit_rows = rank.decodes * batch.query_len + std::ceil(rows / ranks / micro);
  return rank;
}

/// Attention of decoded tokens in one launch with prefill chunks, by FlashAttention-2 over a paged cache: queries are
/// cut into tiles of 64 rows of one head (flash_fwd_launch_template.h, run_mha_fwd_splitkv_dispatch), where a lone
/// query fills a tile for each of its heads. Without prefill the heads of a group are the rows of one.
///   flops = 2 ceil(q / 64) 64 batch heads visible (head_dim + value_dim), every layer
/// The rate is what steps of 128 sequences with a chunk beside them took on an RTX PRO 6000 under vLLM 0.19.
Seconds tile_time(const Deployment& d, double decodes, double mean_context, int query_len) {
  constexpr double kRows = 64, kShareOfPeak = 0.45;
  double flops = 0;
  for (const LayerKind& kind : d.model.layers) {
    const auto a = model_of(kind.mixer)->cached_heads();
    if (!a) continue;
    const double visible = a->window > 0 ? std::min<double>(a->window, mean_context) : mean_context;
    flops += 2.0 * kind.count * heads_of(a->heads, d.sharding) * visible * (a->head_dim + a->value_dim);
  }
  const double rows = std::ceil(query_len / kRows) * kRows;
  return Flops(flops * rows * decodes) / (d.gpu.peak(Dtype::kBf16) * kShareOfPeak);
}

/// vLLM runs FlashAttention-2 where a GPU has the kernels of an Ampere one, but over caches of 8 bits FlashInfer, which
/// decodes in a launch of its own.
bool runs_flash_attention_2(const Deployment& d) {
  return element_bits(d.precision.kv_cache) > 8 && d.engine.kernels == KernelFamily::kVllm &&
         (d.gpu.architecture == Architecture::kAmpere || d.efficiency.ampere_kernels);
}

/// Largest step with prefill that is replayed. Graphs of plain_prefill leave out what SGLang's piecewise ones do
/// (server_args.py, _handle_piecewise_cuda_graph, and the architectures listed in configs/model_config.py, 0.5.10):
/// multimodal models, copies of the attention, and layers of linear attention or with an indexer; and latent attention,
/// whose graphs end at 2048 tokens there and are off in later releases.
int prefill_graph_tokens(const Deployment& d) {
  if (!d.engine.graphs.plain_prefill) return d.engine.graphs.prefill_tokens;
  const auto plain = [](const LayerKind& kind) { return facts_of(kind.mixer).captured_prefill; };
  const bool captured = !d.model.multimodal && d.sharding.attention_dp == 1 &&
                        std::all_of(d.model.layers.begin(), d.model.layers.end(), plain);
  return captured ? d.engine.graphs.prefill_tokens : 0;
}

/// A launch of equal prefill chunks.
struct PrefillKey {
  std::size_t chunks;
  double tokens, context_before;
  bool operator==(const PrefillKey&) const = default;
};
struct PrefillHash {
  std::size_t operator()(const PrefillKey& key) const {
    std::size_t seed = key.chunks;
    boost::hash_combine(seed, static_cast<std::uint64_t>(key.tokens));
    boost::hash_combine(seed, static_cast<std::uint64_t>(key.context_before));
    return seed;
  }
};

/// Sums by a whole number, priced once. A number makes room for the 64 about it, not for all below.
class RememberedSums {
 public:
  const Sum& at(std::size_t i, const auto& price) {
    if (pages_.size() <= i / kPage) pages_.resize(i / kPage + 1);
    auto& page = pages_[i / kPage];
    if (!page) page = std::make_unique<Page>();
    Sum& sum = (*page)[i % kPage];
    if (!sum.known()) sum = price();
    return sum;
  }

 private:
  static constexpr std::size_t kPage = 64;
  using Page = std::array<Sum, kPage>;
  std::vector<std::unique_ptr<Page>> pages_;
};

/// The part of the launch over all chunks that one chunk takes on the fullest rank.
double prefill_share(const StepBatch& batch, const RankBatch& rank) {
  double tokens = 0;
  for (const PrefillChunk& chunk : batch.prefills) tokens += chunk.tokens;
  return tokens > 0 ? rank.prefill_tokens / tokens / static_cast<double>(batch.prefills.size()) : 0.0;
}

}  // namespace

struct StepModel::State {
  std::shared_ptr<const Deployment> deployment;
  OperatorContext context;
  Machine machine;
  bool ideal = false;
  bool tiles = false;  ///< decode beside prefill takes tile_time
  int prefill_graph_tokens = 0;
  RememberedSums tokens_exact, tokens_knots, head;
  std::unordered_map<std::uint64_t, DecodeCurve> curves;  ///< by batch and query length
  std::vector<DecodeCurve*> plain_curves;  ///< by batch, one query token: the common case without hashing
  std::unordered_map<PrefillKey, Sum, PrefillHash> prefills;
  using GroupKey = std::pair<double, double>;  ///< tokens of the fullest rank and of the group
  std::unordered_map<GroupKey, Sum, boost::hash<GroupKey>> groups;

  Sum token_sum(double tokens) {
    const auto price = [&](double m) { return sum_of(token_operators(context, m), machine); };
    if (tokens <= 0) return {.seconds = 0};
    const double whole = std::ceil(tokens);
    if (whole <= kExactTokens) {
      return tokens_exact.at(static_cast<std::size_t>(whole), [&] { return price(whole); });
    }
    if (whole > kRememberedTokens) return price(whole);
    const double knot = std::floor(whole / kTokenKnot);
    const auto at = [&](double k) {
      return tokens_knots.at(static_cast<std::size_t>(k), [&] { return price(k * kTokenKnot); });
    };
    return between(at(knot), at(knot + 1), whole / kTokenKnot - knot);
  }

  /// Of ranks that share the experts: by the fullest rank's tokens and the group's, both rounded up to at most 1/16.
  Sum group_sum(double tokens, double group_tokens) {
    const double mine = rounded(tokens), all = std::max(mine, rounded(group_tokens));
    auto [slot, fresh] = groups.try_emplace({mine, all});
    if (fresh) slot->second = sum_of(token_operators(context, mine, all), machine);
    return slot->second;
  }
  static double rounded(double tokens) {
    const double whole = std::ceil(tokens);
    if (whole <= 64) return whole;
    const double width = std::ldexp(1.0, std::ilogb(whole) - 4);
    return std::ceil(whole / width) * width;
  }

  Sum head_sum(double rows) {
    if (rows <= 0) return {.seconds = 0};
    const double whole = std::ceil(rows);
    return head.at(static_cast<std::size_t>(whole), [&] { return sum_of(head_operators(context, whole), machine); });
  }

  std::vector<Operator> decode_operators(double decodes, int query_len, double context_tokens) const {
    const double mean_context =
        std::max<double>(context_tokens, query_len);  // the step's own tokens are cached before they attend
    return decode_mixing(context, {.batch = decodes,
                                   .mean_context = mean_context,
                                   .max_context = mean_context,
                                   .query_len = static_cast<double>(query_len)});
  }
  Sum decode_sum_at(double decodes, int query_len, double context_tokens) const {
    return sum_of(decode_operators(decodes, query_len, context_tokens), machine);
  }
  /// Of decode's mixers that take `alone` seconds without prefill.
  double beside_prefill(double alone, const StepBatch& batch, const RankBatch& rank) const {
    if (!tiles || batch.prefills.empty()) return alone;
    return std::max(alone, tile_time(*deployment, rank.decodes, rank.mean_context, batch.query_len).base());
  }

  DecodeCurve& curve(int decodes, int query_len) {
    if (query_len == 1) {
      const auto i = static_cast<std::size_t>(decodes);
      if (plain_curves.size() <= i) plain_curves.resize(i + 1 + i / 2, nullptr);
      if (plain_curves[i] == nullptr) plain_curves[i] = &make_curve(decodes, query_len);
      return *plain_curves[i];
    }
    return make_curve(decodes, query_len);
  }
  DecodeCurve& make_curve(int decodes, int query_len) {
    const std::uint64_t key = (static_cast<std::uint64_t>(decodes) << 32) | static_cast<std::uint64_t>(query_len);
    return curves.try_emplace(key).first->second;
  }

  DecodeKnot knot(DecodeCurve& curve, int decodes, int query_len, double context_knot) {
    return curve.at(context_knot, [&](double context) {
      const Sum sum = decode_sum_at(decodes, query_len, context);
      return DecodeKnot{sum.seconds, sum.flops, sum.bytes, sum.launches};
    });
  }

  static PrefillShape prefill_shape(std::size_t chunks, double tokens, double context_before) {
    return {.batch = static_cast<double>(chunks), .query_len = tokens, .context_before = context_before};
  }
  /// All chunks of a step run in one launch: each is priced as one of `chunks` equal ones.
  Sum prefill_sum(std::size_t chunks, double tokens, double context_before) {
    if (prefills.size() > (1U << 18)) prefills.clear();
    auto [slot, fresh] = prefills.try_emplace({chunks, tokens, context_before});
    if (fresh) {
      slot->second = sum_of(prefill_mixing(context, prefill_shape(chunks, tokens, context_before)), machine);
    }
    return slot->second;
  }

  /// Graphs are captured at 1, 2, 4 and multiples of 8 (or the engine's own sizes): a smaller size is padded up.
  double padded(double tokens, int largest) const {
    const GraphSettings& graphs = deployment->engine.graphs;
    if (ideal || !graphs.enabled || tokens > largest) return tokens;
    if (!graphs.padded_sizes.empty()) {
      const auto at = std::lower_bound(graphs.padded_sizes.begin(), graphs.padded_sizes.end(), tokens);
      return at == graphs.padded_sizes.end() ? tokens : *at;
    }
    if (tokens <= 2) return std::ceil(tokens);
    if (tokens <= 4) return 4;
    return std::min<double>(std::ceil(tokens / 8) * 8, std::max<double>(largest, tokens));
  }
  /// Decode is captured by sequences (one that verifies drafts has query_len tokens of each), prefill by tokens.
  double padded_tokens(const StepBatch& batch, const RankBatch& rank) const {
    const GraphSettings& graphs = deployment->engine.graphs;
    return batch.prefills.empty() ? padded(rank.decodes, graphs.max_batch) * batch.query_len
                                  : padded(rank.tokens(batch.query_len), prefill_graph_tokens);
  }
  bool eager(const StepBatch& batch, const RankBatch& rank) const {
    const GraphSettings& graphs = deployment->engine.graphs;
    const bool fits = batch.prefills.empty() ? rank.decodes <= graphs.max_batch
                                             : rank.tokens(batch.query_len) <= prefill_graph_tokens;
    return !ideal && (!graphs.enabled || !fits);
  }
  double rank_skew() const { return ideal ? 0.0 : deployment->engine.host.rank_skew.base(); }
  double launch_speed() const { return deployment->gpu.node.launch_speed * deployment->engine.launch_speed; }
  double launching_pace() const { return deployment->gpu.node.host_speed * launch_speed(); }
  /// Of the pieces that a replayed step is launched in.
  double piece_seconds() const {
    const double doublings = std::log2(static_cast<double>(deployment->sharding.tp));
    return deployment->engine.host.piece_time.base() * deployment->model.layer_count() * (1.0 + doublings) /
           launching_pace();
  }
  /// The scheduler's own work for a step.
  double scheduler_seconds(double sequences) const {
    if (ideal) return 0.0;
    const HostCosts& host = deployment->engine.host;
    return (host.scheduler_time + host.scheduler_sequence_time * sequences).base() / deployment->gpu.node.host_speed;
  }
  /// A thread that both schedules and launches prepares eager prefill at the pace of its launches.
  double host_seconds(double sequences, bool prefill, bool launching) const {
    if (ideal) return 0.0;
    const HostCosts& host = deployment->engine.host;
    const NodeSpec& node = deployment->gpu.node;
    const double pace = launching && deployment->engine.scheduler_launches ? launch_speed() : 1.0;
    const double workers = deployment->sharding.gpus() > 1 ? host.worker_time.base() : 0.0;
    return (host.step_time.base() + workers + host.sequence_time.base() * sequences +
            (prefill ? host.prefill_step_time.base() / pace : 0.0)) /
           node.host_speed;
  }

  /// The parts of a step that do not depend on contexts.
  struct Fixed {
    Sum sum;
    bool eager = false;                         ///< launched kernel by kernel
    double step_launch = 0, kernel_launch = 0;  ///< seconds; 0 under CUDA graphs
    double host = 0;
    double scheduling = 0;  ///< seconds that the host takes while the GPU works; no step is faster
    double gap = 0;         ///< seconds between two kernels
    RankBatch rank;
    double launching(double launches) const { return step_launch + kernel_launch * launches; }
    double least(double launches) const { return std::max(scheduling, launching(launches)); }
    Seconds launched(double launches) const { return Seconds(eager ? host + launching(launches) : 0.0); }
  };
  Fixed fixed(const StepBatch& batch) {
    Fixed f;
    f.rank = rank_batch(batch, deployment->sharding);
    const double tokens = padded_tokens(batch, f.rank);
    const Sum body = deployment->sharding.attention_dp > 1 ? group_sum(tokens, f.rank.group_tokens) : token_sum(tokens);
    const Sum top = head_sum(batch.prefills.empty() ? tokens : f.rank.logit_rows);
    f.sum = {.seconds = body.seconds + top.seconds + rank_skew() * (body.collectives + top.collectives),
             .flops = body.flops + top.flops,
             .bytes = body.bytes + top.bytes,
             .launches = body.launches + top.launches};
    f.eager = eager(batch, f.rank);
    if (f.eager) {
      const HostCosts& host = deployment->engine.host;
      const double prompts = std::ceil(static_cast<double>(batch.prefills.size()) / deployment->sharding.attention_dp);
      f.step_launch = (host.eager_step_time + host.eager_prompt_time * prompts).base() / launching_pace();
      f.kernel_launch = host.launch_time.base() / launching_pace();
    } else if (!ideal) {
      if (!deployment->engine.graphs.dependent_launch) f.gap = deployment->engine.host.graph_gap.base();
      f.sum.seconds += piece_seconds() + f.gap * (body.kernels + top.kernels);
    }
    const double ranks = deployment->sharding.attention_dp;
    const double sequences = f.rank.decodes + std::ceil(static_cast<double>(batch.prefills.size()) / ranks);
    f.host = host_seconds(sequences, !batch.prefills.empty(), f.eager);
    (deployment->engine.async_scheduling ? f.scheduling : f.host) += scheduler_seconds(sequences);
    return f;
  }
};

StepModel::StepModel(std::shared_ptr<const Deployment> deployment) : state_(std::make_unique<State>()) {
  state_->deployment = std::move(deployment);
  state_->context = state_->deployment->operator_context();
  state_->machine = state_->deployment->machine();
  state_->ideal = state_->deployment->fidelity == Fidelity::kIdeal;
  state_->prefill_graph_tokens = prefill_graph_tokens(*state_->deployment);
  state_->tiles = !state_->ideal && runs_flash_attention_2(*state_->deployment);
}
StepModel::~StepModel() = default;
StepModel::StepModel(StepModel&&) noexcept = default;

const Deployment& StepModel::deployment() const { return *state_->deployment; }

StepCost StepModel::cost(const StepBatch& batch) {
  SIM_CHECK(batch.decodes > 0 || !batch.prefills.empty(), "a step has work");
  State& s = *state_;
  const State::Fixed fixed = s.fixed(batch);
  Sum sum = fixed.sum;
  const auto add = [&](const Sum& more, double share, double launches) {
    sum.seconds += more.seconds * share;
    sum.flops += more.flops * share;
    sum.bytes += more.bytes * share;
    sum.launches += more.launches * launches;
  };
  if (batch.decodes > 0) {
    const int rank_decodes = static_cast<int>(fixed.rank.decodes);
    DecodeCurve& curve = s.curve(rank_decodes, batch.query_len);
    const DecodeKnot k = curve.interpolate(
        fixed.rank.mean_context, [&](double context) { return s.knot(curve, rank_decodes, batch.query_len, context); });
    add({s.beside_prefill(k.seconds, batch, fixed.rank) + fixed.gap * k.launches, k.flops, k.bytes, k.launches}, 1.0,
        1.0);
  }
  // The attention of every chunk, by the share of the prompts that the fullest rank holds; they start together.
  const double share = prefill_share(batch, fixed.rank), start = 1.0 / static_cast<double>(batch.prefills.size());
  for (const PrefillChunk& chunk : batch.prefills) {
    add(s.prefill_sum(batch.prefills.size(), chunk.tokens, chunk.context_before), share, start);
  }
  const double gpu = std::max(sum.seconds, fixed.least(sum.launches));
  return {.time = Seconds(gpu + fixed.host),
          .flops = Flops(sum.flops),
          .bytes = Bytes(sum.bytes),
          .launched = fixed.launched(sum.launches)};
}

namespace {

/// Calls of one name are one line; its bound is that of the slowest.
void add_operator(std::vector<OperatorTime>& lines, const Operator& op, const Cost& cost, double count,
                  const Deployment& d) {
  if (count <= 0) return;
  auto line = std::find_if(lines.begin(), lines.end(), [&](const OperatorTime& l) { return l.name == op.name; });
  if (line == lines.end())
    line = lines.insert(lines.end(), OperatorTime{.name = op.name,
                                                  .cost = {.bound = cost.bound},
                                                  .family = family_of(op.work),
                                                  .discrepancy = discrepancy_of(op.work, d.efficiency, d.gpu)});
  if (cost.time * count > line->cost.time) line->cost.bound = cost.bound;
  line->count += count;
  line->cost.time += cost.time * count;
  line->cost.flops += cost.flops * count;
  line->cost.bytes += cost.bytes * count;
}

/// The bound under which most of the time is spent.
Bound slowest_bound(const std::vector<OperatorTime>& lines) {
  std::array<double, 5> seconds{};
  for (const OperatorTime& line : lines) seconds[static_cast<std::size_t>(line.cost.bound)] += line.cost.time.base();
  return static_cast<Bound>(std::max_element(seconds.begin(), seconds.end()) - seconds.begin());
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

/// Segment by segment: within a segment of the curve the step time is linear in the step's number.
StepCost StepModel::decode_run(int decodes, double context, int query_len, std::int64_t steps) {
  State& s = *state_;
  const State::Fixed fixed =
      s.fixed({.decodes = decodes, .decode_context = context, .query_len = query_len, .prefills = {}});
  const int rank_decodes = static_cast<int>(fixed.rank.decodes);
  DecodeCurve& curve = s.curve(rank_decodes, query_len);
  const auto knot = [&](double c) { return s.knot(curve, rank_decodes, query_len, c); };
  double mean = fixed.rank.mean_context, left = static_cast<double>(steps), seconds = 0, flops = 0, bytes = 0,
         launches = 0;
  while (left > 0) {
    const DecodeSegment segment = decode_segment(mean);
    const double n = std::min(left, std::max(1.0, std::ceil((segment.high - mean) / query_len)));
    const DecodeKnot low = knot(segment.low), high = knot(segment.high);
    const double width = segment.high - segment.low, t = (mean - segment.low) / width, dt = query_len / width;
    const auto first = [&](double a, double b) { return a + t * (b - a); };
    launches = fixed.sum.launches + low.launches;
    const double floor = fixed.least(launches);
    seconds += floored_series(fixed.sum.seconds + fixed.gap * low.launches + first(low.seconds, high.seconds),
                              dt * (high.seconds - low.seconds), n, floor);
    flops += series(fixed.sum.flops + first(low.flops, high.flops), dt * (high.flops - low.flops), n);
    bytes += series(fixed.sum.bytes + first(low.bytes, high.bytes), dt * (high.bytes - low.bytes), n);
    left -= n;
    mean += n * query_len;
  }
  return {.time = Seconds(seconds + fixed.host * static_cast<double>(steps)),
          .flops = Flops(flops),
          .bytes = Bytes(bytes),
          .launched = fixed.launched(launches)};
}

namespace {

void add_totals(StepBreakdown& out) {
  for (const OperatorTime& op : out.operators) {
    out.gpu_time += op.cost.time;
    out.flops += op.cost.flops;
    out.bytes += op.cost.bytes;
  }
}

}  // namespace

StepBreakdown StepModel::breakdown(const StepBatch& batch) {
  State& s = *state_;
  const State::Fixed fixed = s.fixed(batch);
  StepBreakdown out;
  double launches = 0;
  const auto add = [&](const std::vector<Operator>& operators, double share, double starts = 1.0, double slower = 1.0) {
    for (const Operator& op : operators) {
      Cost cost = cost_of(op.work, s.machine);
      cost.time *= slower;
      const Launches started = launches_of(op.work, s.machine);
      if (started.collective) cost.time += Seconds(s.rank_skew());
      add_operator(out.operators, op, cost, op.count * share, *s.deployment);
      launches += op.count * starts * started.eager;
    }
  };
  const double tokens = s.padded_tokens(batch, fixed.rank);
  if (s.deployment->sharding.attention_dp > 1) {
    const double mine = State::rounded(tokens);
    add(token_operators(s.context, mine, std::max(mine, State::rounded(fixed.rank.group_tokens))), 1.0);
  } else {
    add(token_operators(s.context, tokens), 1.0);
  }
  add(head_operators(s.context, std::max(1.0, fixed.rank.logit_rows)), fixed.rank.logit_rows > 0 ? 1.0 : 0.0);
  if (batch.decodes > 0) {
    const std::vector<Operator> mixing =
        s.decode_operators(fixed.rank.decodes, batch.query_len, fixed.rank.mean_context);
    const double alone = sum_of(mixing, s.machine).seconds;
    add(mixing, 1.0, 1.0, s.beside_prefill(alone, batch, fixed.rank) / alone);
  }
  const double share = prefill_share(batch, fixed.rank);
  for (const PrefillChunk& chunk : batch.prefills) {
    add(prefill_mixing(s.context, State::prefill_shape(batch.prefills.size(), chunk.tokens, chunk.context_before)),
        share, 1.0 / static_cast<double>(batch.prefills.size()));
  }
  add_totals(out);
  const Seconds launch_time(fixed.least(launches));
  out.time = cost(batch).time;
  out.host_time = std::max(Seconds(0), out.time - out.gpu_time);  // time runs linearly between knots: it may be less
  out.bound = launch_time + Seconds(fixed.host) > out.gpu_time ? Bound::kHost : slowest_bound(out.operators);
  return out;
}

/// Bisection on the closed form; the time of a run grows with its steps.
std::int64_t StepModel::steps_within(int decodes, double context, int query_len, Seconds budget, std::int64_t limit) {
  if (limit <= 1 || budget <= Seconds(0)) return std::min<std::int64_t>(limit, 1);
  const auto ends_before = [&](std::int64_t steps) {
    return decode_run(decodes, context, query_len, steps).time < budget;
  };
  // A first guess from the first step's time makes the bracket small.
  const double one = decode_run(decodes, context, query_len, 1).time.base();
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
