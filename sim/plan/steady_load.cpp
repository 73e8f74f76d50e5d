#include "sim/plan/steady_load.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "sim/serve/scheduler.h"

namespace roofcast {
namespace {

/// Whether prompts run in steps of their own: engines that put them first do so.
bool prompts_alone(const EngineSpec& engine) {
  return engine.scheduler == "prefill_first" || engine.scheduler == "prefill_no_evict";
}

struct Users {
  double users, ranks, prompt, output, budget, chunks;
};

/// A step in which `decodes` sequences decode and `prefilling` ranks have `tokens` of prompts each.
Seconds mixed_step(StepModel& model, const Users& u, double decodes, double prefilling, double tokens, bool alone) {
  const auto ranks = static_cast<std::size_t>(u.ranks);
  const std::size_t with = std::clamp<std::size_t>(static_cast<std::size_t>(std::lround(prefilling)), 1, ranks);
  const double each = std::max(1.0, tokens), chunk = std::min(u.prompt, u.budget);
  const auto pieces = static_cast<int>(std::max(1.0, std::round(each / chunk)));
  const int before = static_cast<int>((u.chunks - 1) / 2 * u.budget);
  const PrefillChunk piece{.tokens = static_cast<int>(std::max(1.0, std::round(each / pieces))),
                           .context_before = before,
                           .last = u.chunks <= 1};
  std::vector<PrefillChunk> prefills(with * static_cast<std::size_t>(pieces), piece);
  const double context = u.prompt + u.output / 2;
  std::vector<RankLoad> loads(ranks);
  int all = 0;
  for (std::size_t i = 0; i < ranks; ++i) {
    const bool prefills_here = i < with;
    const double own = prefills_here && alone ? 0.0 : decodes / u.ranks;
    loads[i].decodes = static_cast<int>(std::lround(own));
    loads[i].decode_context = loads[i].decodes * context;
    loads[i].prefills = prefills_here ? pieces : 0;
    all += loads[i].decodes;
  }
  StepBatch batch{.decodes = all, .decode_context = all * context, .prefills = prefills};
  if (ranks > 1) batch.ranks = loads;
  return model.time(batch);
}

Seconds decode_step(StepModel& model, const Users& u, double decodes) {
  const int whole = std::max(1, static_cast<int>(std::lround(decodes)));
  return model.time({.decodes = whole, .decode_context = whole * (u.prompt + u.output / 2)});
}

/// How prompts are spread over the steps of a user's cycle.
struct Rhythm {
  double steps = 0;   ///< of a cycle
  double mixed = 0;   ///< of them, those in which a rank has prompts
  double ranks = 0;   ///< that have prompts then
  double tokens = 0;  ///< of prompts on each of those
};

/// Steps of a cycle in which a rank has prompts and does not decode, P: chunks fall into steps at random, so that
///   P = S (1 - exp(-chunks / S)),  S = decodes + P,
/// but one prompt's chunks never share a step, and no step takes more than its budget.
double steps_with_prompts(const Users& u, double here) {
  const double decodes = u.output - 1, chunks = here * u.chunks;
  double steps = decodes + chunks;
  for (int i = 0; i < 200; ++i) steps = decodes + steps * (1 - std::exp(-chunks / steps));
  return std::max({steps - decodes, u.chunks, here * u.prompt / u.budget});
}

/// Every rank by itself; `here` users of each load the engine.
Rhythm independent(const Users& u, double here, bool alone) {
  Rhythm r;
  double chance = 0;  // that a step of a rank holds a chunk
  if (alone) {
    const double prompts = steps_with_prompts(u, here);
    r.steps = u.output - 1 + prompts;
    chance = prompts / r.steps;
  } else {
    r.steps = std::max(u.output - 1 + u.chunks, here * u.prompt / u.budget);
    chance = std::max(1 - std::exp(-here * u.chunks / r.steps), u.chunks / r.steps);  // its own are apart
  }
  r.mixed = 1 - std::pow(1 - chance, u.ranks);
  r.ranks = u.ranks * chance / r.mixed;
  r.tokens = std::min(u.budget, here * u.prompt / (r.steps * chance));
  return r;
}

/// Ranks that wait for each other's prompts. They come at a rate of here / S a step to each rank, so that every rank
/// has one after H_R S / here steps on average, H_R = 1 + 1/2 + ... + 1/R; of this and what they wait for more, at most
/// the timeout, a prompt waits half.
Rhythm together(const Users& u, double here, const EngineSpec& engine, bool alone) {
  double harmonic = 0;
  for (double i = 1; i <= u.ranks; ++i) harmonic += 1 / i;
  const double decoding = alone ? u.output - 1 : u.output - 1 + u.chunks;
  Rhythm r{.steps = decoding, .ranks = u.ranks};
  double interval = 1;
  for (int i = 0; i < 50; ++i) {
    interval = std::clamp(harmonic * r.steps / here + engine.prefill_batch_steps, 1.0,
                          static_cast<double>(engine.prefill_wait_steps));
    r.steps = std::max(decoding + (interval - 1) / 2, here * u.prompt / u.budget + (alone ? u.output - 1 : 0.0));
  }
  const double tokens = here * u.prompt / r.steps;  // a step, of each rank
  r.mixed = std::min(1.0, std::max(1 / interval, tokens / u.budget));
  r.tokens = std::min(u.budget, tokens / r.mixed);
  return r;
}

}  // namespace

std::optional<SteadyLoad> steady_load(StepModel& model, const EstimateRequest& r) {
  const Deployment& d = model.deployment();
  const EngineSpec& e = d.engine;
  const double ranks = d.sharding.attention_dp, n = r.batch / ranks, o = r.output_tokens;
  const double length = r.prompt_tokens + o, room = d.memory.max_batch(length, e.block_size) * ranks;
  if (r.context || d.fidelity == Fidelity::kIdeal || d.memory.infeasible || r.speculation.active() || !e.kv_cache ||
      r.batch > room || r.batch > d.seats() || r.output_tokens < 2 || !make_scheduler(e.scheduler)->continuous()) {
    return std::nullopt;
  }
  const double budget =
      e.chunked_prefill ? e.max_num_batched_tokens : std::max(e.max_num_batched_tokens, r.prompt_tokens);
  const Users u{.users = static_cast<double>(r.batch),
                .ranks = ranks,
                .prompt = static_cast<double>(r.prompt_tokens),
                .output = o,
                .budget = budget,
                .chunks = std::ceil(r.prompt_tokens / budget)};
  const bool alone = prompts_alone(e);
  const HostCosts& host = e.host;
  const double outside = (host.request_time + host.request_latency + host.prompt_token_time * u.prompt).base();
  double busy = 1, cycle = 0, first = 0, steps = 0;
  const bool waits = e.attention_dp_balance && e.prefill_wait_steps > 0 && ranks > 1;
  if (waits && n < 2) return std::nullopt;  // others' chunks do not fall into a user's own prompt steps, as taken here
  for (int i = 0; i < 4; ++i) {  // users whose requests are on their way do not load the engine
    const double here = n * busy;
    Rhythm r = waits ? together(u, here, e, alone) : independent(u, here, alone);
    r.mixed = std::max(r.mixed, std::min(1.0, u.chunks / r.steps));
    steps = r.steps;
    const double decodes = here * ranks * (o - 1) / (alone ? o - 1 : steps);
    const Seconds mixed = mixed_step(model, u, decodes, r.ranks, r.tokens, alone),
                  plain = decode_step(model, u, decodes);
    cycle = steps * (r.mixed * mixed.base() + (1 - r.mixed) * plain.base());
    first = u.chunks * mixed.base();
    busy = cycle / (cycle + outside);
  }
  const double most = host.token_time.base() > 0
                          ? e.front_ends(d.sharding) * std::max(1, e.postprocess_workers) / host.token_time.base()
                          : std::numeric_limits<double>::infinity();
  const double free = u.users * o / (cycle + outside), rate = std::min(free, most);
  // A user's own prompt is no gap between its tokens: those of the others are.
  const double tpot = (cycle - first) / (alone ? o - 1 : steps - u.chunks);
  return SteadyLoad{
      .tpot = Seconds(tpot * free / rate), .output_tokens_per_s = r.replicas * rate, .front_end_share = rate / most};
}

}  // namespace roofcast
