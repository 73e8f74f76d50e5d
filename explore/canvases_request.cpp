// One request and one batch: timeline, roofline, memory, throughput.

#include <algorithm>
#include <cmath>

#include "explore/canvases.h"
#include "reports/machine_json.h"
#include "sim/plan/what_fits.h"
#include "sim/step/deployment.h"

namespace roofcast::explore {
namespace {

constexpr int kMostBatches = 28;

/// End times of the decode steps whose tokens are shown: exact if every step is simulated, else evenly spaced by TPOT.
class TokenTimes {
 public:
  TokenTimes(const Setup& setup, const Estimate& e) : setup_(setup), e_(e), model_(setup.scenario.deployment) {}

  Seconds at(int token) {
    const int gaps = token - 1;
    const bool plain = setup_.deployment().engine.kv_cache && !e_.speculation && !e_.request.context;
    if (gaps == 0 || !plain) return e_.ttft + e_.tpot * static_cast<double>(gaps);
    const int batch = e_.request.batch;
    return e_.ttft +
           model_.decode_run({.decodes = batch, .decode_context = (e_.request.prompt_tokens + 1.0) * batch}, gaps).time;
  }

 private:
  const Setup& setup_;
  const Estimate& e_;
  StepModel model_;
};

Json step_point(const char* phase, const StepBreakdown& step) {
  return {{"phase", phase},
          {"arithmetic_intensity", step.bytes > Bytes(0) ? step.flops / step.bytes / FlopsPerByte(1) : 0.0},
          {"achieved_flop_per_s", (step.flops / step.time).base()},
          {"time_ms", step.time.in(kMillisecond)},
          {"bound", name_of(step.bound)}};
}

void operator_points(Json& out, const char* phase, const StepBreakdown& step) {
  for (const OperatorTime& op : step.operators) {
    if (op.cost.flops <= Flops(0) || op.cost.bytes <= Bytes(0) || op.cost.time <= Seconds(0)) continue;
    out.push_back({{"phase", phase},
                   {"name", op.name},
                   {"arithmetic_intensity", op.cost.flops / op.cost.bytes / FlopsPerByte(1)},
                   {"achieved_flop_per_s", (op.cost.flops / op.cost.time).base()},
                   {"time_us", op.cost.time.in(kMicrosecond)},
                   {"share", op.cost.time / step.time},
                   {"bound", name_of(op.cost.bound)}});
  }
}

/// min(peak, bandwidth x intensity), with its ridge point.
Json ceiling(const char* name, double peak, double bandwidth, double from, double to) {
  const double ridge = peak / bandwidth;
  Json points = Json::array();
  for (const double x : {std::min(from, ridge / 2), ridge, std::max(to, ridge * 2)})
    points.push_back(Json::array({x, std::min(peak, bandwidth * x)}));
  return {{"name", name}, {"points", std::move(points)}};
}

/// Datasheet and, unless ideal, calibrated ceilings as wide as the points.
Json ceilings(const Json& machine, const Json& operators) {
  double from = 0.5, to = 1;
  for (const Json& op : operators) {
    const double x = op["arithmetic_intensity"].get<double>();
    from = std::min(from, x / 2), to = std::max(to, x * 2);
  }
  Json out = Json::array();
  out.push_back(ceiling("datasheet", machine["dense_flop_per_s"].get<double>(),
                        machine["memory_bytes_per_s"].get<double>(), from, to));
  if (machine.contains("calibrated_flop_per_s"))
    out.push_back(ceiling("calibrated", machine["calibrated_flop_per_s"].get<double>(),
                          machine["calibrated_memory_bytes_per_s"].get<double>(), from, to));
  return out;
}

Json phase_parts(const char* phase, const StepBreakdown& step) {
  std::vector<std::pair<std::string, Seconds>> parts;
  for (const OperatorTime& op : step.operators) parts.emplace_back(op.name, op.cost.time);
  if (step.host_time > Seconds(0)) parts.emplace_back("host and launches", step.host_time);
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  Json out = Json::array();
  for (const auto& [name, time] : parts)
    out.push_back({{"name", name}, {"share", time / step.time}, {"time_ms", time.in(kMillisecond)}});
  return {{"phase", phase},
          {"time_ms", step.time.in(kMillisecond)},
          {"bound", name_of(step.bound)},
          {"parts", std::move(out)}};
}

/// Batches from 1 to twice what fits or is requested, roughly even on a log axis, including the requested one; none
/// exceeds max_num_seqs.
std::vector<int> batches_of(const Setup& setup, const Estimate& asked) {
  const int batch = asked.request.batch;
  double most = std::clamp(2.0 * std::max({asked.memory.max_batch, static_cast<double>(batch), 16.0}), 16.0, 4096.0);
  const Deployment& d = setup.deployment();
  if (d.fidelity != Fidelity::kIdeal) most = std::min<double>(most, std::max(1, d.max_sequences()));
  std::vector<int> batches{batch};
  for (int i = 0; i < kMostBatches; ++i)
    batches.push_back(static_cast<int>(std::lround(std::pow(most, i / (kMostBatches - 1.0)))));
  std::sort(batches.begin(), batches.end());
  batches.erase(std::unique(batches.begin(), batches.end()), batches.end());
  return batches;
}

Json throughput_point(const Estimate& e) {
  return {{"batch", e.request.batch},
          {"ttft_ms", e.ttft.in(kMillisecond)},
          {"tpot_ms", e.tpot.in(kMillisecond)},
          {"tpot_ms_low", e.tpot_interval.low.in(kMillisecond)},
          {"tpot_ms_high", e.tpot_interval.high.in(kMillisecond)},
          {"tokens_per_s_per_user", 1.0 / e.tpot.base()},
          {"output_tokens_per_s", e.output_tokens_per_s},
          {"usd_per_million_output_tokens", e.cost.usd_per_million_output_tokens},
          {"fits", e.memory.fits}};
}

}  // namespace

const std::vector<QueryKey>& timeline_keys() {
  static const std::vector<QueryKey> kKeys{{"points", "tokens shown at most, 2 to 512 (160)"}};
  return kKeys;
}

Json timeline_json(const Setup& setup, const Query& query) {
  const int most = integer_of(query, "points", 160, 2, 512);
  EstimateRequest alone = setup.request;
  alone.batch = 1;  // a single request; "Many requests" shows the effect of a batch
  const Estimate e = estimate(setup.scenario.deployment, alone);
  Json out{{"batch", e.request.batch},
           {"prompt_tokens", e.request.prompt_tokens},
           {"output_tokens", e.request.output_tokens},
           {"front_end_ms", (e.ttft - e.prefill.time).in(kMillisecond)},
           {"prefill_ms", e.prefill.time.in(kMillisecond)},
           {"prefill_steps", e.prefill_steps},
           {"ttft_ms", e.ttft.in(kMillisecond)},
           {"tpot_ms", e.tpot.in(kMillisecond)},
           {"request_latency_ms", e.request_latency.in(kMillisecond)},
           {"prefill_bound", name_of(e.prefill.bound)},
           {"decode_bound", name_of(e.decode.bound)},
           {"tokens", Json::array()}};
  TokenTimes times(setup, e);
  const int tokens = e.request.output_tokens, shown = std::min(tokens, most);
  for (int i = 0; i < shown; ++i) {
    const int token = shown == 1 ? 1 : 1 + static_cast<int>(std::int64_t{i} * (tokens - 1) / (shown - 1));
    out["tokens"].push_back({{"token", token}, {"at_ms", times.at(token).in(kMillisecond)}});
  }
  return out;
}

Json roofline_json(const Setup& setup, const Query&) {
  const Estimate e = estimate(setup.scenario.deployment, setup.request);
  Json machine = reports::machine_json(setup.deployment());
  const double ridge = machine["dense_flop_per_s"].get<double>() / machine["memory_bytes_per_s"].get<double>();
  Json out{{"machine", std::move(machine)}, {"ridge_flop_per_byte", ridge}};
  out["steps"] = {step_point("prefill", e.prefill), step_point("decode", e.decode)};
  Json operators = Json::array();
  operator_points(operators, "prefill", e.prefill);
  operator_points(operators, "decode", e.decode);
  out["ceilings"] = ceilings(out["machine"], operators);
  out["operators"] = std::move(operators);
  return out;
}

Json breakdown_json(const Setup& setup, const Query&) {
  const Estimate e = estimate(setup.scenario.deployment, setup.request);
  return {{"phases", {phase_parts("prefill", e.prefill), phase_parts("decode", e.decode)}}};
}

Json memory_json(const Setup& setup, const Query&) {
  const Deployment& d = setup.deployment();
  const MemoryPlan& plan = d.memory;
  const double tokens = setup.request.prompt_tokens + setup.request.output_tokens;
  const double sequences = std::ceil(static_cast<double>(setup.request.batch) / d.sharding.attention_dp);
  // The longest context at which the batch fits, by bisection: cache bytes never decrease with the context.
  double fits = 0, too_long = std::ldexp(1.0, 40);
  while (too_long - fits > 1) {
    const double middle = std::floor((fits + too_long) / 2);
    (plan.layout.sequence_bytes(middle) * sequences <= plan.cache ? fits : too_long) = middle;
  }
  Json out{{"batch", setup.request.batch},
           {"context_tokens", tokens},
           {"kv_cache_bytes", (plan.layout.sequence_bytes(tokens) * sequences).base()},
           {"kv_cache_bytes_per_token", plan.layout.bytes_per_token().base()},
           {"parameters", count_parameters(d.model).total},
           {"weight_bytes", plan.weights.base()},
           {"activation_bytes", plan.activations.base()},
           {"capacity_bytes", plan.capacity.base()},
           {"usable_bytes", (plan.weights + plan.activations + plan.cache).base()}};
  if (plan.infeasible) out["reason"] = plan.infeasible->reason + what_would_fit(d);
  const bool bounded = !plan.infeasible && fits < std::ldexp(1.0, 39);
  out["full_at_tokens"] = bounded ? Json(fits) : Json(nullptr);
  const double longest = std::max(2 * tokens, bounded ? std::min(fits * 1.2, 256 * tokens) : 0.0);
  constexpr int kSteps = 40;
  out["points"] = Json::array();
  for (int i = 0; i <= kSteps; ++i) {
    const double context = std::floor(longest * i / kSteps);
    const Bytes cache = plan.layout.sequence_bytes(context) * sequences;
    out["points"].push_back({{"context_tokens", context}, {"kv_cache_bytes", cache.base()}});
  }
  return out;
}

Json throughput_json(const Setup& setup, const Query&) {
  const Estimate asked = estimate(setup.scenario.deployment, setup.request);
  Json points = Json::array();
  double steps = 0, best = -1;
  int knee = 0, left_out = 0;
  for (const int batch : batches_of(setup, asked)) {
    EstimateRequest request = setup.request;
    request.batch = batch;
    steps += prefill_steps(setup.deployment(), request);
    if (steps > 2 * kMostPrefillSteps) {
      ++left_out;
      continue;
    }
    const Estimate e = batch == asked.request.batch ? asked : estimate(setup.scenario.deployment, request);
    const double power = e.output_tokens_per_s / e.tpot.base();
    if (e.memory.fits && power > best) best = power, knee = e.request.batch;
    points.push_back(throughput_point(e));
  }
  return {{"batch", asked.request.batch},
          {"max_batch", asked.memory.max_batch},
          {"knee_batch", knee > 0 ? Json(knee) : Json(nullptr)},
          {"left_out", left_out},
          {"points", std::move(points)}};
}

}  // namespace roofcast::explore
