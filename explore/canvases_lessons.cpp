// Pictures of the lectures: paged memory, shared prefixes, a map of what meets a limit, serving techniques one after
// another, integers per channel.

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/random.h"
#include "explore/canvases.h"
#include "reports/ladder_report.h"
#include "sim/plan/ladder.h"
#include "sim/step/deployment.h"

namespace roofcast::explore {
namespace {

/// A whole prompt in chunks of the token budget, with `cached` tokens in the cache.
StepCost prefill_cost(StepModel& model, const Deployment& d, int prompt, int cached) {
  StepCost out;
  const int budget = d.fidelity == Fidelity::kIdeal ? prompt : static_cast<int>(d.engine.max_num_batched_tokens);
  for (int done = cached; done < prompt; done += budget) {
    const int chunk = std::min(budget, prompt - done);
    const std::vector<PrefillChunk> chunks{PrefillChunk{chunk, done, done + chunk == prompt}};
    const StepCost step = model.cost({.decodes = 0, .decode_context = 0, .prefills = chunks});
    out.time += step.time, out.flops += step.flops;
  }
  return out;
}

/// Time per token of `batch` sequences that hold `context` tokens each.
Seconds token_time(StepModel& model, const Setup& setup, int batch, int context) {
  if (setup.request.speculation.active()) {
    const SpeculationEstimate round = speculate(model, setup.request.speculation, batch, context);
    return round.step() / round.tokens_per_step;
  }
  return model.cost({.decodes = batch, .decode_context = static_cast<double>(context) * batch, .prefills = {}}).time;
}

int whole_blocks(int tokens, int block) { return (tokens + block - 1) / block; }

/// A grid of 4 channels with 6 weights each, whose sizes differ by channel as those of a trained layer do.
constexpr int kChannels = 4, kWeights = 6;
using Channel = std::array<double, kWeights>;

double largest(const Channel& channel) {
  double most = 0;
  for (const double w : channel) most = std::max(most, std::abs(w));
  return most;
}

/// The integers of a channel at a scale, and the relative root-mean-square error: w is stored as round(w / scale) and
/// read back as that times scale (docs/equations.md has the cost of both).
Json rounded_channel(const Channel& channel, double scale) {
  Json integers = Json::array();
  double off = 0, all = 0;
  for (const double w : channel) {
    const double q = std::round(w / scale);
    integers.push_back(q);
    off += (q * scale - w) * (q * scale - w), all += w * w;
  }
  return {{"scale", scale}, {"integers", std::move(integers)}, {"error", std::sqrt(off / all)}};
}

}  // namespace

const std::vector<QueryKey>& limits_keys() {
  static const std::vector<QueryKey> kKeys{{"max_tpot_ms", "time per output token that users accept, 1 to 10000 (50)"}};
  return kKeys;
}

Json limits_json(const Setup& setup, const Query& query) {
  const int most = integer_of(query, "max_tpot_ms", 50, 1, 10000);
  const Deployment& d = setup.deployment();
  StepModel model(setup.scenario.deployment);
  Json cells = Json::array(), batches = Json::array(), contexts = Json::array();
  for (int batch = 1; batch <= 1024; batch *= 2) batches.push_back(batch);
  for (int context = 512; context <= 131072; context *= 2) {
    contexts.push_back(context);
    for (int batch = 1; batch <= 1024; batch *= 2) {
      const bool fits =
          !d.memory.infeasible &&
          batch <= d.memory.max_batch(context, static_cast<double>(d.engine.block_size)) * d.sharding.attention_dp;
      Json cell{{"batch", batch}, {"context_tokens", context}, {"fits", fits}};
      if (fits) {
        const Seconds time = token_time(model, setup, batch, context);
        cell["tpot_ms"] = time.in(kMillisecond);
        cell["output_tokens_per_s"] = batch / time.base();
      }
      cell["verdict"] = !fits ? "does not fit" : cell["tpot_ms"].get<double>() <= most ? "meets" : "misses";
      cells.push_back(std::move(cell));
    }
  }
  return {{"max_tpot_ms", most},
          {"batches", std::move(batches)},
          {"contexts", std::move(contexts)},
          {"cells", std::move(cells)}};
}

const std::vector<QueryKey>& paging_keys() {
  static const std::vector<QueryKey> kKeys{{"seed", "of the draws, 0 to 1000000 (1)"}};
  return kKeys;
}

Json paging_json(const Setup& setup, const Query& query) {
  constexpr int kShown = 24, kMost = 20000;
  const Deployment& d = setup.deployment();
  const double per_token = d.memory.layout.bytes_per_token().base();
  const int block = static_cast<int>(d.engine.block_size), prompt = setup.request.prompt_tokens,
            output = setup.request.output_tokens;
  Json out{{"block_tokens", block}, {"reserved_tokens", prompt + output}, {"sequences", Json::array()}};
  if (d.memory.infeasible || per_token <= 0) {
    out["reason"] =
        d.memory.infeasible ? d.memory.infeasible->reason : d.model.name + " keeps no cache that grows with the tokens";
    return out;
  }
  const double room = std::floor(d.memory.cache.base() / per_token);
  Random random(static_cast<std::uint64_t>(integer_of(query, "seed", 1, 0, 1000000)));
  double taken = 0, held = 0, together = 0;  // tokens of allocated blocks, tokens in them; sequences that fit
  for (int i = 0; i < kMost; ++i) {
    const int tokens = prompt + static_cast<int>(random.uniform_integer(1, output)),
              blocks = whole_blocks(tokens, block);
    if (i < kShown) out["sequences"].push_back({{"tokens", tokens}, {"blocks", blocks}});
    if (taken + blocks * block > room) {
      if (i >= kShown) break;
      continue;
    }
    taken += blocks * block, held += tokens, ++together;
  }
  const double reserved = std::floor(room / (prompt + output)), mean = together > 0 ? held / together : 0;
  out["capacity_tokens"] = room;
  out["reserving"] = {{"sequences", reserved}, {"used_share", std::min(1.0, mean / (prompt + output))}};
  out["paging"] = {{"sequences", together}, {"used_share", taken > 0 ? held / taken : 0.0}};
  out["gain"] = reserved > 0 ? Json(together / reserved) : Json(nullptr);
  return out;
}

Json prefix_json(const Setup& setup, const Query&) {
  constexpr int kSteps = 16;
  const Deployment& d = setup.deployment();
  const int block = static_cast<int>(d.engine.block_size), prompt = setup.request.prompt_tokens;
  StepModel model(setup.scenario.deployment);
  const StepCost whole = prefill_cost(model, d, prompt, 0);
  Json points = Json::array();
  int last = -1;
  for (int i = 0; i <= kSteps; ++i) {
    // Whole blocks are found, and the last token of a prompt is always computed: it gives the first of the output.
    const int shared = static_cast<int>(std::int64_t{prompt} * i / kSteps);
    const int cached = std::min(shared, prompt - 1) / block * block;
    if (cached == last) continue;
    last = cached;
    const StepCost rest = prefill_cost(model, d, prompt, cached);
    points.push_back({{"cached_tokens", cached},
                      {"cached_share", static_cast<double>(cached) / prompt},
                      {"prefill_ms", rest.time.in(kMillisecond)},
                      {"saved_share", 1 - rest.flops / whole.flops},
                      {"speedup", whole.time / rest.time},
                      {"cached_bytes", d.memory.layout.sequence_bytes(cached).base()}});
  }
  return {{"prompt_tokens", prompt},
          {"block_tokens", block},
          {"batch", setup.request.batch},
          {"prefill_ms", whole.time.in(kMillisecond)},
          {"points", std::move(points)}};
}

Json stack_json(const Setup& setup, const Query&) {
  constexpr int kUsers = 64;
  const int users = std::min(setup.request.batch, kUsers), prompt = setup.request.prompt_tokens,
            output = setup.request.output_tokens;
  EstimateRequest all = setup.request;
  all.batch = users;
  if (static_cast<double>(users) * output > kMostSteppedTokens / 4 ||
      prefill_steps(setup.deployment(), all) > kMostPrefillSteps / 4)
    throw ConfigError(
        fmt::format("batch: {} requests of {} + {} tokens are too much to play technique by technique here", users,
                    prompt, output));
  const ConfigTree scenario = with_assignment(setup.tree,
                                              fmt::format("workload={{arrivals: {{process: closed_loop, concurrency: "
                                                          "{}}}, prompt_tokens: {}, output_tokens: {}, requests: {}}}",
                                                          users, prompt, output, 2 * users),
                                              "explorer");
  return reports::ladder_json(climb(scenario, setup.fidelity, {.concurrency = users, .requests = 2 * users}));
}

const std::vector<QueryKey>& integers_keys() {
  static const std::vector<QueryKey> kKeys{{"seed", "of the weights, 0 to 1000000 (1)"}};
  return kKeys;
}

Json integers_json(const Setup&, const Query& query) {
  constexpr double kMostInteger = 127;
  Random random(static_cast<std::uint64_t>(integer_of(query, "seed", 1, 0, 1000000)));
  std::array<Channel, kChannels> weights{};
  double most = 0, size = 0.01;
  for (Channel& channel : weights) {
    for (double& w : channel) w = size * random.normal();
    most = std::max(most, largest(channel));
    size *= 3.2;
  }
  Json rows = Json::array();
  for (std::size_t c = 0; c < weights.size(); ++c) {
    rows.push_back({{"channel", c + 1},
                    {"weights", weights[c]},
                    {"by_tensor", rounded_channel(weights[c], most / kMostInteger)},
                    {"by_channel", rounded_channel(weights[c], largest(weights[c]) / kMostInteger)}});
  }
  return {{"tensor_scale", most / kMostInteger}, {"rows", std::move(rows)}};
}

}  // namespace roofcast::explore
