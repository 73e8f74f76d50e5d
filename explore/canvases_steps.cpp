// What happens step by step: speculation, its rounds, the KV cache, batching over time.

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/random.h"
#include "explore/canvases.h"
#include "sim/plan/speculation.h"
#include "sim/serve/simulation.h"
#include "sim/step/deployment.h"

namespace roofcast::explore {
namespace {

constexpr int kMostDrafts = 8;

/// The requested speculation, or EAGLE by default.
SpeculationSpec speculation_of(const Setup& setup) {
  if (setup.request.speculation.active()) return setup.request.speculation;
  return parse_speculation(ConfigReader(parse_config_text("{method: eagle}", "speculation")), setup.deployment());
}

int context_of(const Setup& setup) {
  return setup.request.context.value_or(setup.request.prompt_tokens + setup.request.output_tokens / 2);
}

/// Cost and yield of a model drafter or n-gram lookup at this acceptance.
double speedup(const SpeculationEstimate& round, SpeculationSpec spec, double acceptance) {
  spec.acceptance = {acceptance};
  return AcceptanceLaw(spec).mean_tokens() * (round.plain_step / round.step());
}

Json drafts_of_round(int drafts, int accepted) {
  Json out = Json::array();
  for (int i = 0; i < drafts; ++i) out.push_back(i < accepted ? "accepted" : i == accepted ? "rejected" : "discarded");
  return out;
}

/// Requests as they ended.
class Ended final : public Observer {
 public:
  void on_request(const RequestRecord& request) override { records.push_back(request); }
  std::vector<RequestRecord> records;
};

/// Puts each request on the first of `slots` rows that is free when it starts; a client sees the end of a request
/// slightly after its row is free.
Json rows_of(std::vector<RequestRecord> records, int slots) {
  const auto start = [](const RequestRecord& r) { return r.arrival + r.queue; };
  std::sort(records.begin(), records.end(), [&](const RequestRecord& a, const RequestRecord& b) {
    return std::pair(start(a), a.id) < std::pair(start(b), b.id);
  });
  std::vector<Seconds> free;
  Json out = Json::array();
  for (const RequestRecord& r : records) {
    auto row = std::find_if(free.begin(), free.end(), [&](Seconds t) { return t <= start(r); });
    if (row == free.end() && free.size() < static_cast<std::size_t>(slots)) row = free.insert(row, Seconds(0));
    if (row == free.end()) row = std::min_element(free.begin(), free.end());
    const std::size_t at = static_cast<std::size_t>(row - free.begin());
    free[at] = r.arrival + r.e2el;
    out.push_back({{"id", r.id},
                   {"slot", at},
                   {"start_ms", start(r).in(kMillisecond)},
                   {"first_token_ms", (r.arrival + r.ttft).in(kMillisecond)},
                   {"end_ms", (r.arrival + r.e2el).in(kMillisecond)},
                   {"output_tokens", r.output_tokens}});
  }
  return out;
}

Json batching_run(const Setup& setup, const WorkloadSpec& workload, const std::string& scheduler, int slots) {
  auto deployment = std::make_shared<Deployment>(setup.deployment());
  deployment->engine.scheduler = scheduler;
  deployment->engine.max_num_seqs = slots;
  deployment->engine.prefix_caching = false;
  // All requests are in the queue from the start, so the front end is left out.
  HostCosts& host = deployment->engine.host;
  host.request_time = host.request_latency = host.token_time = host.prompt_token_time = Seconds(0);
  ServingOptions options;
  options.seed = 1;
  options.speculation = setup.request.speculation;
  Ended ended;
  const ServingMetrics m = simulate(deployment, workload, options, &ended);
  double used = 0;
  for (const RequestRecord& r : ended.records) used += (r.e2el - r.queue).base();
  if (m.computed_tokens > 0) used *= 1 - m.padding_tokens / m.computed_tokens;  // padding uses no slot
  const double seconds = m.duration.base();
  return {{"scheduler", scheduler},
          {"duration_ms", m.duration.in(kMillisecond)},
          {"completed", m.completed},
          {"failed", m.failed},
          {"output_tokens_per_s", seconds > 0 ? m.output_tokens / seconds : 0.0},
          {"mean_latency_ms", m.e2el_ms.mean()},
          {"slot_use", seconds > 0 ? used / (slots * seconds) : 0.0},
          {"requests", rows_of(std::move(ended.records), slots)}};
}

/// FLOPs and time of one step, with the cache and with recomputation of the whole sequence.
Json cache_step(StepModel& model, const CacheLayout& layout, int prompt, int step, StepCost& with, StepCost& without) {
  const int tokens = prompt + step;
  const std::vector<PrefillChunk> whole{PrefillChunk{tokens, 0, true}};
  const StepCost again = model.cost({.decodes = 0, .decode_context = 0, .prefills = whole});
  const StepCost one =
      step == 0 ? again : model.cost({.decodes = 1, .decode_context = static_cast<double>(tokens), .prefills = {}});
  with.flops += one.flops, without.flops += again.flops;
  with.time += one.time, without.time += again.time;
  return {{"step", step},
          {"cached_tokens", tokens},
          {"kv_cache_bytes", layout.sequence_bytes(tokens).base()},
          {"tokens_with", step == 0 ? tokens : 1},
          {"tokens_without", tokens},
          {"step_ms_with", one.time.in(kMillisecond)},
          {"step_ms_without", again.time.in(kMillisecond)},
          {"total_flops_with", with.flops.base()},
          {"total_flops_without", without.flops.base()},
          {"total_ms_with", with.time.in(kMillisecond)},
          {"total_ms_without", without.time.in(kMillisecond)},
          {"saved_flops", (without.flops - with.flops).base()},
          {"saved_ms", (without.time - with.time).in(kMillisecond)},
          {"saved_share", 1.0 - with.flops / without.flops}};
}

}  // namespace

const std::vector<QueryKey>& rounds_keys() {
  static const std::vector<QueryKey> kKeys{{"rounds", "rounds drawn, 1 to 64 (8)"},
                                           {"seed", "of the draws, 0 to 1000000 (1)"}};
  return kKeys;
}
const std::vector<QueryKey>& cache_steps_keys() {
  static const std::vector<QueryKey> kKeys{{"steps", "decode steps, 1 to 64 (32)"}};
  return kKeys;
}
const std::vector<QueryKey>& batching_keys() {
  static const std::vector<QueryKey> kKeys{{"slots", "sequences at a time, 1 to 16 (4)"},
                                           {"requests", "requests, 1 to 64 (16)"}};
  return kKeys;
}

const std::vector<QueryKey>& speculation_keys() {
  static const std::vector<QueryKey> kKeys{
      {"draft_cost", "one draft's time as a share of a decode step, 0 to 1 (what the method costs on this machine)"}};
  return kKeys;
}

Json speculation_json(const Setup& setup, const Query& query) {
  const SpeculationSpec spec = speculation_of(setup);
  const std::optional<double> draft_cost = fraction_of(query, "draft_cost");
  const double own = spec.acceptance.empty() ? 0.0 : spec.acceptance.front();
  std::vector<double> acceptances{0.5, 0.6, 0.7, 0.8, 0.9};
  if (std::find(acceptances.begin(), acceptances.end(), own) == acceptances.end()) acceptances.push_back(own);
  std::sort(acceptances.begin(), acceptances.end());
  StepModel target(setup.scenario.deployment);
  Json points = Json::array();
  SpeculationEstimate round;
  double best_gain = 1;
  int best_drafts = 0;
  for (int k = 1; k <= std::max(kMostDrafts, spec.num_speculative_tokens); ++k) {
    SpeculationSpec other = spec;
    other.num_speculative_tokens = k;
    round = speculate(target, other, setup.request.batch, context_of(setup));
    if (draft_cost) round.draft_time = round.plain_step * (*draft_cost * k);
    const double gain = draft_cost ? speedup(round, other, own) : round.speedup;
    if (draft_cost && gain > best_gain) best_gain = gain, best_drafts = k;
    Json speedups = Json::array();
    for (const double a : acceptances) speedups.push_back(speedup(round, other, a));
    points.push_back({{"num_speculative_tokens", k},
                      {"draft_ms", round.draft_time.in(kMillisecond)},
                      {"verify_ms", round.verify_time.in(kMillisecond)},
                      {"tokens_per_step", round.tokens_per_step},
                      {"speedup", gain},
                      {"speedup_by_acceptance", std::move(speedups)}});
  }
  return {{"method", name_of(spec.method)},
          {"assumed", !setup.request.speculation.active()},
          {"num_speculative_tokens", spec.num_speculative_tokens},
          {"acceptance", own},
          {"acceptances", acceptances},
          {"plain_step_ms", round.plain_step.in(kMillisecond)},
          {"draft_cost", (round.draft_time / round.plain_step) / std::max(1, round.drafts)},
          {"best_num_speculative_tokens", draft_cost ? best_drafts : round.best_drafts},
          {"best_speedup", draft_cost ? best_gain : round.best_speedup},
          {"points", std::move(points)}};
}

Json rounds_json(const Setup& setup, const Query& query) {
  const int rounds = integer_of(query, "rounds", 8, 1, 64);
  Random random(static_cast<std::uint64_t>(integer_of(query, "seed", 1, 0, 1000000)));
  const SpeculationSpec spec = speculation_of(setup);
  StepModel target(setup.scenario.deployment);
  const SpeculationEstimate one = speculate(target, spec, setup.request.batch, context_of(setup));
  const AcceptanceLaw law(spec);
  Json list = Json::array();
  int tokens = 0;
  for (int i = 0; i < rounds; ++i) {
    const int accepted = law.draw(random);
    tokens += accepted + 1;
    list.push_back({{"drafts", drafts_of_round(one.drafts, accepted)},
                    {"tokens", accepted + 1},
                    {"total_tokens", tokens},
                    {"start_ms", (one.step() * static_cast<double>(i)).in(kMillisecond)},
                    {"draft_ms", one.draft_time.in(kMillisecond)},
                    {"verify_ms", one.verify_time.in(kMillisecond)},
                    {"end_ms", (one.step() * static_cast<double>(i + 1)).in(kMillisecond)},
                    {"plain_ms", (one.plain_step * static_cast<double>(tokens)).in(kMillisecond)}});
  }
  return {{"method", name_of(spec.method)},
          {"assumed", !setup.request.speculation.active()},
          {"num_speculative_tokens", one.drafts},
          {"acceptance", spec.acceptance.empty() ? 0.0 : spec.acceptance.front()},
          {"tokens_per_step", one.tokens_per_step},
          {"plain_step_ms", one.plain_step.in(kMillisecond)},
          {"rounds", std::move(list)}};
}

Json cache_steps_json(const Setup& setup, const Query& query) {
  const int steps = std::min(integer_of(query, "steps", 32, 1, 64), setup.request.output_tokens);
  const Deployment& d = setup.deployment();
  const int prompt = setup.request.prompt_tokens, output = setup.request.output_tokens;
  StepModel model(setup.scenario.deployment);
  StepCost with, without;
  Json points = Json::array();
  for (int step = 0; step < steps; ++step)
    points.push_back(cache_step(model, d.memory.layout, prompt, step, with, without));
  return {{"prompt_tokens", prompt},
          {"output_tokens", output},
          {"kv_cache_bytes_per_token", d.memory.layout.bytes_per_token().base()},
          {"state_bytes_per_sequence", d.memory.layout.state_per_sequence.base()},
          {"processed_tokens_with", processed_tokens(prompt, output, true)},
          {"processed_tokens_without", processed_tokens(prompt, output, false)},
          {"points", std::move(points)}};
}

Json batching_json(const Setup& setup, const Query& query) {
  const int slots = integer_of(query, "slots", 4, 1, 16), requests = integer_of(query, "requests", 16, 1, 64);
  if (const auto& infeasible = setup.deployment().memory.infeasible)
    return {{"slots", slots}, {"gain", nullptr}, {"reason", infeasible->reason}, {"runs", Json::array()}};
  EstimateRequest all = setup.request;
  all.batch = requests;
  if (prefill_steps(setup.deployment(), all) > kMostPrefillSteps)
    throw ConfigError(
        fmt::format("requests: {} prompts of {} tokens are too much to simulate here", requests, all.prompt_tokens));
  const bool by_steps = setup.request.speculation.active() || !setup.deployment().engine.kv_cache;
  if (by_steps && static_cast<double>(requests) * all.output_tokens > kMostSteppedTokens)
    throw ConfigError(fmt::format("requests: {} outputs of {} tokens are too much to simulate step by step here",
                                  requests, all.output_tokens));
  WorkloadSpec workload;
  workload.name = "explorer";
  workload.requests = requests;
  workload.prompt_tokens.law = LengthSpec::Fixed{setup.request.prompt_tokens};
  const int mean = setup.request.output_tokens;
  workload.output_tokens.law = LengthSpec::Uniform{std::max(1, mean / 8), std::max(1, 2 * mean - mean / 8)};
  const std::string own = setup.deployment().engine.scheduler;
  Json runs = Json::array();
  for (const std::string& scheduler : {std::string("static"), continuous_scheduler(own)})
    runs.push_back(batching_run(setup, workload, scheduler, slots));
  const double first = runs[0]["output_tokens_per_s"].get<double>();
  const double second = runs[1]["output_tokens_per_s"].get<double>();
  return {{"slots", slots}, {"gain", first > 0 ? Json(second / first) : Json(nullptr)}, {"runs", std::move(runs)}};
}

}  // namespace roofcast::explore
