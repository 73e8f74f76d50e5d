#include "sim/plan/speculation.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/csv.h"
#include "sim/model/feed_forward_model.h"
#include "sim/model/recipes.h"
#include "sim/plan/acceptance.h"
#include "sim/plan/launch_limits.h"
#include "sim/plan/speculation_math.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

using Method = SpeculationSpec::Method;

constexpr int kMostDrafts = 16;  ///< maximum k tried for best_drafts
constexpr double kEagle3Words = 32000;
constexpr double kFirstLayers = 0.25;  ///< share of the layers that a self-draft runs

std::vector<double> read_acceptance(ConfigReader& in, Method method, int drafts) {
  if (!in.has("acceptance")) return usual_acceptance(method);
  const ConfigTree value = in.tree("acceptance");
  if (value->kind == ConfigNode::Kind::kScalar) return {in.number("acceptance", kFraction)};
  if (value->kind == ConfigNode::Kind::kList) {
    std::vector<double> list = in.numbers("acceptance", kFraction);
    if (list.empty()) in.fail("acceptance", "an empty list; give a number, or one of each draft's position");
    return list;
  }
  ConfigReader trace = in.child("acceptance");
  const CsvTable table = CsvTable::read_file(trace.text("file"));
  const std::size_t column = table.column(trace.text("column", "accepted_tokens"));
  trace.finish();
  std::vector<double> accepted;
  for (std::size_t row = 0; row < table.rows(); ++row) accepted.push_back(table.number(row, column));
  return acceptance_by_position(accepted, drafts);
}

/// Keeps launch costs; scheduling, sampling and the front end are the target's.
EngineSpec draft_engine(const EngineSpec& target) {
  EngineSpec engine = target;
  engine.host = {.launch_time = target.host.launch_time};
  return engine;
}

std::shared_ptr<const Deployment> read_draft_model(ConfigReader& in, const Deployment& target) {
  auto draft = std::make_shared<Deployment>(target);
  draft->engine = draft_engine(target.engine);
  draft->model = parse_model(resolve_named("models", in.tree("model")));
  check_draft(target, *draft, in.location_of("model"));
  draft->precision = draft->model.precision;
  bool asked = false;
  if (in.has("precision")) draft->precision = parse_precision(draft->model, in.tree("precision"), asked);
  draft->sharding.tp = static_cast<int>(in.integer("draft_tp", target.sharding.tp, {1, 1024}));
  draft->sharding.ep = 1;
  draft->sharding.redundant_experts = 0;
  draft->sharding.pp = 1;
  Sharding one = draft->sharding;  // each attention-DP rank drafts for its own sequences, with a copy of the model
  one.attention_dp = 1;
  check_sharding(draft->model, one, in.location_of(in.has("draft_tp") ? "draft_tp" : "model"));
  draft->memory = plan_memory(*draft);
  return draft;
}

/// The drafter that is part of the target.
std::shared_ptr<const Deployment> own_draft(const Deployment& target, Method method, double layer_share) {
  auto draft = std::make_shared<Deployment>(target);
  draft->engine = draft_engine(target.engine);
  draft->model = draft_model(target.model, method, layer_share);
  if (facts_of(method).own_format) {
    draft->precision = Precision{};
    draft->precision.kv_cache = target.precision.kv_cache;
    draft->precision.head = target.precision.head;
    draft->precision.head_scales = target.precision.head_scales;
  }
  draft->sharding.pp = 1;
  draft->memory = plan_memory(*draft);
  return draft;
}

void check_method(const ConfigReader& in, Method method, const Deployment& target) {
  if (method == Method::kMtp && target.model.mtp_layers <= 0) {
    in.fail("method", "'mtp' needs a multi-token-prediction layer; " + target.model.name + " has none; try eagle");
  }
  const bool other_model = facts_of(method).drafter == Drafter::kModel;
  if (other_model && !in.has("model")) in.fail("method", "'draft_model' needs 'model', the one that drafts");
  if (!other_model && in.has("model")) in.fail("model", "'model' goes with 'method: draft_model' alone");
}

/// The drafter as a deployment; null if nothing runs on the GPU.
std::shared_ptr<const Deployment> read_drafter(ConfigReader& in, const Deployment& target, Method method) {
  switch (facts_of(method).drafter) {
    case Drafter::kNone:
    case Drafter::kHost:
      return nullptr;
    case Drafter::kModel:
      return read_draft_model(in, target);
    case Drafter::kFirstLayers:
      return own_draft(target, method, in.number("layers", kFirstLayers, {0.01, 0.99}));
    case Drafter::kLayer:
    case Drafter::kHeads:
      return own_draft(target, method, kFirstLayers);
  }
  return nullptr;
}

/// Each of `steps` passes over a block of `block_tokens` finalizes block_tokens / steps tokens; a fraction is the
/// probability of one more.
SpeculationSpec read_diffusion(ConfigReader in) {
  SpeculationSpec spec;
  spec.method = Method::kDiffusion;
  const int block = static_cast<int>(in.integer("block_tokens", 32, {2, 1024}));
  const int steps = static_cast<int>(in.integer("steps", std::max(1, block / 2), {1, 1024}));
  if (steps > block) in.fail("steps", "more passes than tokens per block: each pass settles at least one");
  in.finish();
  spec.num_speculative_tokens = block - 1;
  const double settled = static_cast<double>(block) / steps;
  for (int i = 1; i < block; ++i) spec.acceptance.push_back(std::clamp(settled - i, 0.0, 1.0));
  return spec;
}

/// The window of N - 1 rows of W tokens contains the sequence's own token and Jacobi iterates of the next ones; G
/// n-grams found earlier are verified in parallel.
SpeculationSpec read_lookahead(ConfigReader in) {
  SpeculationSpec spec;
  spec.method = Method::kLookahead;
  const int window = static_cast<int>(in.integer("window", 15, {1, 256}));
  const int ngram = static_cast<int>(in.integer("ngram", 5, {2, 64}));
  spec.guesses = static_cast<int>(in.integer("guesses", window, {1, 256}));
  spec.num_speculative_tokens = ngram - 1;
  spec.window_positions = window * (ngram - 1);
  spec.acceptance = read_acceptance(in, spec.method, spec.num_speculative_tokens);
  in.finish();
  return spec;
}

/// Default number of drafts per step. vLLM and TensorRT-LLM draft with as many multi-token-prediction layers as the
/// checkpoint has (vllm/config/speculative.py, n_predict; MTPDecodingConfig, num_nextn_predict_layers). For a suffix
/// tree, its depth.
int usual_drafts(Method method, const Deployment& target) {
  constexpr int kSuffixDepth = 24, kUsual = 4;
  if (method == Method::kSuffix) return kSuffixDepth;
  if (method != Method::kMtp) return kUsual;
  return target.engine.mtp_drafts > 0 ? target.engine.mtp_drafts
                                      : static_cast<int>(std::clamp(std::ceil(target.model.mtp_layers), 1.0, 64.0));
}

/// Limits drafts to those with a likely path: a suffix tree knows how often each continuation occurred.
void end_unlikely_drafts(SpeculationSpec& spec, double least) {
  double path = 1;
  for (int i = 0; i < spec.num_speculative_tokens; ++i) {
    path *= spec.acceptance[std::min(static_cast<std::size_t>(i), spec.acceptance.size() - 1)];
    if (path >= least) continue;
    spec.num_speculative_tokens = std::max(1, i);
    return;
  }
}

SpeculationEstimate round_of(StepModel& target, StepModel* draft, const SpeculationSpec& spec, int batch,
                             double context) {
  SpeculationEstimate e{.method = spec.method, .drafts = spec.num_speculative_tokens, .draft = {}};
  e.tokens_per_step = AcceptanceLaw(spec).mean_tokens();
  const double first = spec.acceptance.empty() ? 0.0 : spec.acceptance.front();
  e.acceptance = first;
  const double one_of =
      spec.guesses > 1 ? 1 - std::pow(1 - first, spec.guesses) : width_acceptance(first, spec.tree_width);
  e.tokens_bound = expected_tokens_bound(one_of, e.drafts);
  const double held = context * batch;
  e.plain_step = target.time({.decodes = batch, .decode_context = held, .query_len = 1, .prefills = {}});
  if (draft != nullptr) {
    const StepBatch drafting{.decodes = batch, .decode_context = held, .prefills = {}};
    e.draft_time = draft_cost(*draft, spec, drafting).time;
  }
  e.draft_time += spec.draft_time;
  e.verify_time =
      target.time({.decodes = batch, .decode_context = held, .query_len = spec.query_len(), .prefills = {}});
  e.speedup = e.tokens_per_step * (e.plain_step / e.step());
  return e;
}

}  // namespace

std::vector<double> acceptance_by_position(std::span<const double> accepted, int drafts) {
  std::vector<double> at_least(static_cast<std::size_t>(drafts) + 1, 0.0);
  for (double n : accepted) {
    for (std::size_t i = 0; i < at_least.size(); ++i) at_least[i] += n >= static_cast<double>(i) ? 1.0 : 0.0;
  }
  std::vector<double> out;
  for (std::size_t i = 1; i < at_least.size(); ++i)
    out.push_back(at_least[i - 1] > 0 ? at_least[i] / at_least[i - 1] : 0.0);
  return out;
}

ModelSpec draft_model(const ModelSpec& target, Method method, double layer_share) {
  ModelSpec model = target;
  model.extra_parameters = model.mtp_layers = 0;
  LayerKind layer = target.layers[static_cast<std::size_t>(target.order.back())];
  layer.count = 1;
  switch (method) {
    case Method::kSelfDraft: {
      const double whole = std::max(1.0, std::round(layer_share * target.layer_count()));
      model.order.resize(static_cast<std::size_t>(whole));
      for (LayerKind& kind : model.layers) kind.count = 0;
      for (int at : model.order) ++model.layers[static_cast<std::size_t>(at)].count;
      return model;
    }
    case Method::kEagle:
    case Method::kEagle3:
      layer.feed_forward = model_of(layer.feed_forward)->dense_like(target.hidden);
      layer.extra_parameters = (method == Method::kEagle ? 2 : 3) * target.hidden * target.hidden;
      if (method == Method::kEagle3) model.vocabulary = std::min(kEagle3Words, target.vocabulary);
      break;
    case Method::kMtp:
      layer.extra_parameters = 2 * target.hidden * target.hidden;
      break;
    case Method::kMedusa:
      layer = LayerKind{.name = "medusa head",
                        .mixer = NoMixer{},
                        .feed_forward = DenseFeedForward{.inter = target.hidden / 2, .gated = false},
                        .count = 1,
                        .norms = 0};
      break;
    case Method::kNone:
    case Method::kDraftModel:
    case Method::kNgram:
    case Method::kSuffix:
    case Method::kLookahead:
    case Method::kDiffusion:
      break;
  }
  model.layers = {layer};
  model.order = {0};
  return model;
}

Bytes draft_weight_bytes(const SpeculationSpec& spec) {
  const MethodFacts method = facts_of(spec.method);
  if (!spec.draft || method.drafter == Drafter::kFirstLayers) return Bytes(0);
  const Deployment& d = *spec.draft;
  const Bytes all = weight_bytes(d.model, d.precision, d.sharding);
  if (method.drafter == Drafter::kModel) return all;
  ModelSpec body = d.model;
  body.vocabulary = 0;
  const Bytes layers = weight_bytes(body, d.precision, d.sharding);
  ModelSpec tied = d.model;
  tied.tied_embedding = true;  // one matrix for both
  const Bytes head = weight_bytes(tied, d.precision, d.sharding) - layers;
  const Bytes one = method.own_head ? layers + head : layers;
  return method.drafter == Drafter::kHeads ? one * spec.num_speculative_tokens : one;
}

void reserve_draft(Deployment& target, const SpeculationSpec& spec) {
  const MethodFacts method = facts_of(spec.method);
  if (!spec.draft || method.drafter == Drafter::kFirstLayers) return;
  MemoryPlan& plan = target.memory;
  const Bytes weights = draft_weight_bytes(spec);
  plan.weights += weights;
  plan.cache -= weights;
  if (method.own_cache) {
    for (const CacheGroup& group : spec.draft->memory.layout.groups) plan.layout.groups.push_back(group);
    plan.layout.state_per_sequence += spec.draft->memory.layout.state_per_sequence;
  }
  plan.set_states_apart(target.engine);
  if (plan.cache <= Bytes(0) && !plan.infeasible) {
    plan.infeasible = Infeasible{target.model.name + " and what drafts for it (" + std::string(method.name) +
                                 ") do not fit " + target.gpu.name};
  }
}

bool drafts_stop_async(const EngineSpec& engine, const SpeculationSpec& spec) {
  if (!spec.active() || spec.diffuses() || !engine.async_scheduling) return false;
  const bool layer = facts_of(spec.method).drafter == Drafter::kLayer;
  return engine.async_drafts == AsyncDrafts::kNone || (engine.async_drafts == AsyncDrafts::kLayers && !layer);
}

SpeculationSpec parse_speculation(ConfigReader in, const Deployment& target) {
  std::array<std::string_view, kSpeculationMethods.size()> names;
  std::transform(kSpeculationMethods.begin(), kSpeculationMethods.end(), names.begin(),
                 [](Method method) { return name_of(method); });
  SpeculationSpec spec;
  spec.method = kSpeculationMethods[in.choice("method", names)];
  if (spec.method == Method::kDiffusion) return read_diffusion(std::move(in));
  if (spec.method == Method::kLookahead) return read_lookahead(std::move(in));
  check_method(in, spec.method, target);
  const bool suffix = spec.method == Method::kSuffix;
  spec.num_speculative_tokens =
      static_cast<int>(in.integer("num_speculative_tokens", usual_drafts(spec.method, target), {1, 64}));
  if (!suffix) spec.tree_width = static_cast<int>(in.integer("tree_width", 1, {1, 64}));
  spec.acceptance = read_acceptance(in, spec.method, spec.num_speculative_tokens);
  if (suffix) end_unlikely_drafts(spec, in.number("min_probability", 0.1, kFraction));
  spec.draft_time = in.time("draft_time", Seconds(0));
  spec.draft = read_drafter(in, target, spec.method);
  const double words = spec.draft ? spec.draft->model.vocabulary : target.model.vocabulary;
  if (spec.tree_width > words)
    in.fail("tree_width", fmt::format("a tree of {} candidates per position is wider than the {:.0f} words that the "
                                      "drafter knows",
                                      spec.tree_width, words));
  in.finish();
  return spec.method == Method::kNone ? SpeculationSpec{} : spec;
}

SpeculationEstimate speculate(StepModel& target, const SpeculationSpec& spec, int batch, double context) {
  std::unique_ptr<StepModel> draft;
  if (spec.draft) draft = std::make_unique<StepModel>(spec.draft);
  SpeculationEstimate e = round_of(target, draft.get(), spec, batch, context);
  if (draft != nullptr)
    e.draft = draft_round(*draft, spec, {.decodes = batch, .decode_context = context * batch, .prefills = {}});
  const LogSpread slower = acceptance_spread(spec);
  e.speedup_low = e.speedup * std::exp(-slower.high), e.speedup_high = e.speedup * std::exp(-slower.low);
  // The block size of a diffusion model is fixed by its training.
  if (facts_of(spec.method).drafter == Drafter::kNone) {
    if (spec.diffuses()) e.tokens_bound = e.tokens_per_step;
    e.best_drafts = spec.num_speculative_tokens, e.best_speedup = e.speedup;
    return e;
  }
  for (int k = 1; k <= kMostDrafts; ++k) {
    SpeculationSpec other = spec;
    other.num_speculative_tokens = k;
    const double speedup = round_of(target, draft.get(), other, batch, context).speedup;
    if (speedup > e.best_speedup) e.best_drafts = k, e.best_speedup = speedup;
  }
  return e;
}

DraftRound draft_round(StepModel& drafter, const SpeculationSpec& spec, const StepBatch& batch) {
  DraftRound round{.cost = draft_cost(drafter, spec, batch)};
  const HostBound one = drafter.breakdown(batch).host;
  if (one.time <= Seconds(0)) return round;
  const double drafts = round.cost.time / one.time;  // they take as long as so many of the first
  round.gpu = one.gpu * drafts, round.meanwhile = one.meanwhile * drafts;
  return round;
}

void add_drafts(StepBreakdown& step, const SpeculationSpec& spec, const DraftRound& round) {
  const Seconds time = round.cost.time + spec.draft_time;  // the latter on the host
  if (facts_of(spec.method).drafter != Drafter::kNone)
    step.operators.push_back({.name = "drafts",
                              .count = static_cast<double>(spec.num_speculative_tokens),
                              .cost = {.time = time, .flops = round.cost.flops, .bytes = round.cost.bytes},
                              .discrepancy = 0.3});
  step.gpu_time += time;
  step.time += time;
  step.flops += round.cost.flops;
  step.bytes += round.cost.bytes;
  step.drafting = {round.gpu, round.meanwhile, time};
}

}  // namespace roofcast
