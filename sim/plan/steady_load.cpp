#include "sim/plan/steady_load.h"
#include "sim/step/streaming.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "sim/serve/scheduler.h"

namespace roofcast {
namespace {

/// Whether prompts run in steps of their own, as in engines that prefer prompts.
bool prompts_alone(const EngineSpec& engine) {
  return engine.scheduler == "prefill_first" || engine.scheduler == "prefill_no_evict";
}

struct Users {
  double users, ranks, prompt, output, budget, chunks;
};

/// The tokens of prompts that a step has room for on a rank of `here` users, of its `budget`. Where prompts run beside
/// decodes, these take theirs first: with B - n left for prompts, a prompt has ceil(P / (B - n)) chunks, a cycle S(n)
/// steps, and n = here (o - 1) / S decode. More room, more that decode: there is one such n.
double room_for_prompts(const Users& u, double budget, double here, bool cut) {
  const double least = cut ? 1.0 : std::min(u.prompt, budget);  // an uncut prompt waits until it fits
  double low = least, high = budget;
  for (int i = 0; i < 60 && high - low > 1e-3; ++i) {
    const double room = (low + high) / 2, decodes = u.output - 1;
    const double steps = std::max(decodes + std::ceil(u.prompt / room), here * u.prompt / room);
    (room + here * decodes / steps <= budget ? low : high) = room;
  }
  return std::max(least, std::floor(low + 1e-2));
}

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

/// A step with prompts: the mean over all such steps, and over those that contain one user's own prompt, which are more
/// often steps of many prompts.
struct MixedTime {
  double any = 0, own = 0;
  double prompts = 0;  ///< of any such step
};

/// Probability of k prompts in a step with one: each of the other users' prompts falls into it independently, so that
/// they are Poisson with mean `others`; over all steps with prompts, k of them are one step. No more than the budget
/// holds.
///   own(k) = exp(-m) m^(k-1) / (k-1)!    any(k) ~ own(k) / k
/// A step's time is not linear in its tokens (it may leave its graph), and no actual step takes the mean time.
MixedTime mixed_time(StepModel& model, const Users& u, double decodes, double prefilling, double others, bool alone) {
  constexpr int kMostSteps = 24;  // steps that are priced; with more prompts the mean is accurate
  const int most = std::max(1, static_cast<int>(u.budget / u.prompt));
  const int width = 1 + static_cast<int>((others + 6 * std::sqrt(others)) / kMostSteps);
  MixedTime sum;
  double own = std::exp(-others), any_weight = 0, left = 1;
  for (int k = 1; left > 1e-6; k += width) {
    const int last = std::min(k + width - 1, most);
    double chance = 0;
    for (int i = k; i < k + width; own *= others / i, ++i) chance += own;
    if (last >= most) chance = left;
    left -= chance;
    const double held = (std::min(k, most) + last) / 2.0;
    const double seconds = mixed_step(model, u, decodes, prefilling, held * u.prompt, alone).base();
    sum.own += chance * seconds;
    sum.any += chance / held * seconds;
    sum.prompts += chance;
    any_weight += chance / held;
  }
  sum.any /= any_weight;
  sum.prompts /= any_weight;
  return sum;
}

Seconds decode_step(StepModel& model, const Users& u, double decodes) {
  const int whole = std::max(1, static_cast<int>(std::lround(decodes)));
  return model.time({.decodes = whole, .decode_context = whole * (u.prompt + u.output / 2)});
}

/// How prompts are spread over the steps of a user's cycle.
struct Rhythm {
  double steps = 0;   ///< per cycle
  double mixed = 0;   ///< part of them in which a rank has prompts
  double ranks = 0;   ///< ranks that then have prompts
  double tokens = 0;  ///< prompt tokens on each of those
  double wait = 0;    ///< steps for which a prompt is held
};

/// Steps per cycle in which a rank has prompts and does not decode, P: chunks fall into steps at random, so that
///   P = S (1 - exp(-chunks / S)),  S = decodes + P,
/// but chunks of one prompt never share a step, and no step exceeds its budget.
double steps_with_prompts(const Users& u, double here) {
  const double decodes = u.output - 1, chunks = here * u.chunks;
  double steps = decodes + chunks;
  for (int i = 0; i < 200; ++i) steps = decodes + steps * (1 - std::exp(-chunks / steps));
  return std::max({steps - decodes, u.chunks, here * u.prompt / u.budget});
}

/// Every rank alone; `on_average` users of each load the engine. With fewer users than ranks, as many ranks have one
/// each.
Rhythm independent(const Users& u, double on_average, bool alone) {
  Rhythm r;
  const double ranks = std::clamp(on_average * u.ranks, 1.0, u.ranks), here = on_average * u.ranks / ranks;
  double chance = 0;  // that a step of a rank holds a chunk
  if (alone) {
    const double prompts = steps_with_prompts(u, here);
    r.steps = u.output - 1 + prompts;
    chance = prompts / r.steps;
  } else {
    r.steps = std::max(u.output - 1 + u.chunks, here * u.prompt / u.budget);
    // Its own chunks are apart, and none holds more than its room.
    chance = std::max({1 - std::exp(-here * u.chunks / r.steps), u.chunks / r.steps,
                       std::min(1.0, here * u.prompt / (r.steps * u.budget))});
  }
  r.mixed = 1 - std::pow(1 - chance, ranks);
  r.ranks = ranks * chance / r.mixed;
  r.tokens = std::min(u.budget, here * u.prompt / (r.steps * chance));
  return r;
}

/// Ranks with equal numbers of users. All begin to decode together; after t steps each user is done with probability d
/// = 1 - exp(-t / D), where D is the mean number of decode steps.
struct AlikeRanks {
  double ranks = 0;
  int users = 0;

  double none(double d) const { return std::pow(1 - d, users); }  ///< no user has a prompt
  double all(double d) const { return std::pow(d, users); }       ///< no user decodes any more
  /// All but one have a prompt.
  double all_but_one(double d) const { return users * std::pow(d, users - 1) * (1 - d); }
  /// Prompts that wait on a rank, given that some decode.
  double waiting(double d) const { return users * d - users * all(d); }
};

/// The time until held prompts run.
struct Hold {
  double steps = 0;     ///< its mean length
  double waited = 0;    ///< prompts x steps
  double gathered = 0;  ///< share of holds that end because every rank has a prompt
  double empty = 0;     ///< share that end at the timeout, with no prompt waiting
};

/// Prompts are held while every rank decodes and not every rank has one, for at most `most` steps. With
///   Q = product over ranks of (1 - all),  A = product of (1 - all - none):  Q - A is the probability of a hold at t
/// `few` and `more` are the ranks with floor(n) and ceil(n) users.
Hold hold_of(const AlikeRanks& few, const AlikeRanks& more, double decodes, double most) {
  const auto others = [](double each, double ranks) { return ranks > 0 ? std::pow(each, ranks - 1) : 0.0; };
  Hold hold;
  double ended = 0;  // probability that a rank first ran out of decodes
  double held = 0;   // at the end
  constexpr int kParts = 400;
  const double end = std::min(most, 12 * decodes), dt = end / kParts;
  for (int i = 0; i < kParts; ++i) {
    const double d = 1 - std::exp(-(i + 0.5) * dt / decodes);
    double busy[2], apart[2];
    const AlikeRanks* const kinds[2] = {&few, &more};
    for (int k = 0; k < 2; ++k) {
      busy[k] = 1 - kinds[k]->all(d);
      apart[k] = std::max(0.0, busy[k] - kinds[k]->none(d));
    }
    held = std::pow(busy[0], few.ranks) * std::pow(busy[1], more.ranks) -
           std::pow(apart[0], few.ranks) * std::pow(apart[1], more.ranks);
    hold.steps += dt * held;
    for (int k = 0; k < 2; ++k) {
      const AlikeRanks &mine = *kinds[k], &rest = *kinds[1 - k];
      if (mine.ranks <= 0) continue;
      const double all_busy = others(busy[k], mine.ranks) * std::pow(busy[1 - k], rest.ranks);
      const double all_apart = others(apart[k], mine.ranks) * std::pow(apart[1 - k], rest.ranks);
      hold.waited += dt * mine.ranks * mine.waiting(d) * (all_busy - all_apart);
      // Its last sequence ends while prompts are held.
      const double last = mine.all_but_one(d) / decodes;
      ended += dt * mine.ranks * last * (all_busy - (mine.users > 1 ? all_apart : 0.0));
    }
  }
  hold.gathered = std::clamp(1 - ended - held, 0.0, 1.0);
  hold.empty = std::exp(-(few.ranks * few.users + more.ranks * more.users) * end / decodes);
  return hold;
}

/// Ranks that wait for each other's prompts: while every rank decodes; otherwise none waits. In a cycle of S steps each
/// of `here` x ranks users has one prompt, so that a hold and the step that ends it see here x ranks x (steps of both)
/// / S prompts.
Rhythm together(const Users& u, double here, const EngineSpec& engine, bool alone) {
  const double decoding = std::max(1.0, u.output - 1), own = alone ? 0.0 : u.chunks;
  const int fewer = static_cast<int>(here);
  const AlikeRanks more{std::round((here - fewer) * u.ranks), fewer + 1}, few{u.ranks - more.ranks, fewer};
  const double timeout = engine.prefill_wait_steps;
  const Hold hold = hold_of(few, more, decoding, timeout);
  const double length =
      std::clamp(hold.steps + hold.gathered * engine.prefill_batch_steps, 1.0, std::max(1.0, timeout));
  const double interval = length / (1 - std::min(0.99, hold.empty));  // between two steps with prompts
  Rhythm r;
  // Prompts wait for each other, and then for more of them.
  double wait = 0;
  for (int i = 0; i < 50; ++i) {
    r.steps = std::max(decoding + own + wait, here * u.prompt / u.budget + (alone ? decoding : 0.0));
    const double prompts = here * u.ranks * length / r.steps;  // per hold
    wait = hold.waited / prompts + hold.gathered * engine.prefill_batch_steps;
  }
  const double prompts = std::max(1.0, here * u.ranks * interval / r.steps);
  r.wait = wait;
  const double spread = u.ranks * (1 - std::pow(1 - 1 / u.ranks, prompts));  // ranks that these prompts fall on
  r.ranks = std::max(1.0, hold.gathered * u.ranks + (1 - hold.gathered) * spread);
  const double tokens = here * u.ranks * u.prompt / r.steps;  // per step, over all ranks
  r.mixed = std::min(1.0, std::max(1 / interval, tokens / (r.ranks * u.budget)));
  r.tokens = std::min(u.budget, tokens / r.mixed / r.ranks);
  return r;
}

/// The largest share of the cycle of steps behind which prompts gather: `alone` if these stop the others; `beside` if
/// as many of the steps must also hold prompts, so that prompts miss every other step.
constexpr double kMostAlone = 0.2, kMostBeside = 0.5;

/// Seconds of the mean step with prompts, beyond `plain`, that do not grow with them, where these are longer than the
/// next requests of others are on their way: those gather behind the step, as prompts that come independently do not.
/// Else 0, and where a step holds one prompt anyway. What one more prompt takes is the least of what it does beside as
/// many as the mean step holds, and beside several times as many, where all steps have left their graphs.
double gather(StepModel& model, const Users& u, double decodes, const MixedTime& mixed, double plain, double on_the_way,
              bool alone) {
  constexpr double kTimesOnTheWay = 2.0, kSeveralTimes = 4.0;
  const double most = std::floor(u.budget / u.prompt / 2);
  if (most < 1) return 0.0;
  const auto of = [&](double prompts) { return mixed_step(model, u, decodes, 1, prompts * u.prompt, alone).base(); };
  const auto one_more = [&](double beside) {
    const double prompts = std::clamp(std::round(beside), 1.0, most);
    return (of(2 * prompts) - of(prompts)) / prompts;
  };
  const double each = std::max(0.0, std::min(one_more(mixed.prompts), one_more(kSeveralTimes * mixed.prompts)));
  const double fixed = mixed.any - plain - each * mixed.prompts;
  return fixed > kTimesOnTheWay * on_the_way ? fixed : 0.0;
}

/// Tokens per second that the front end's servers send.
double most_tokens_per_second(const EngineSpec& e, const Sharding& sharding) {
  if (e.host.token_time.base() <= 0) return std::numeric_limits<double>::infinity();
  return e.front_ends(sharding) / streaming_time(e).base();
}

}  // namespace

std::optional<SteadyLoad> steady_load(StepModel& model, const EstimateRequest& r) {
  const Deployment& d = model.deployment();
  const EngineSpec& e = d.engine;
  const double ranks = d.sharding.attention_dp, n = r.batch / ranks, o = r.output_tokens;
  if (d.fidelity == Fidelity::kIdeal || !why_no_steady_load(d, r).empty()) return std::nullopt;
  const double budget =
      e.chunked_prefill ? e.max_num_batched_tokens : std::max(e.max_num_batched_tokens, r.prompt_tokens);
  Users u{.users = static_cast<double>(r.batch),
          .ranks = ranks,
          .prompt = static_cast<double>(r.prompt_tokens),
          .output = o,
          .budget = budget,
          .chunks = std::ceil(r.prompt_tokens / budget)};
  const bool alone = prompts_alone(e);
  const HostCosts& host = e.host;
  const double intake = (host.request_time + host.prompt_token_time * u.prompt).base();
  const double on_the_way = intake + host.request_latency.base();
  const double taken_in = u.users * intake / e.front_ends(d.sharding);  // one prompt of each user, one after another
  double outside = on_the_way;
  double busy = 1, cycle = 0, first = 0, steps = 0, own_steps = 0;
  const bool balances = e.attention_dp_balance && e.prefill_wait_steps > 0 && ranks > 1;
  const auto queues = [&] { return outside > on_the_way; };
  for (int i = 0; i < (queues() ? 16 : 4); ++i) {  // users whose requests are on their way do not load the engine
    const double here = n * busy;
    if (!alone) {
      u.budget = room_for_prompts(u, budget, here, e.chunked_prefill);
      u.chunks = std::ceil(u.prompt / u.budget);
    }
    const bool waits = balances && here >= 1;  // a rank without decodes holds nobody's prompts
    Rhythm rhythm = waits ? together(u, here, e, alone) : independent(u, here, alone);
    rhythm.mixed = std::max(rhythm.mixed, std::min(1.0, u.chunks / rhythm.steps));
    steps = rhythm.steps;
    const double decodes = here * ranks * (o - 1) / (alone ? o - 1 : steps);
    // Steps that are full, or filled by the chunks of a prompt, are all alike.
    const bool alike = waits || ranks > 1 || u.chunks > 1 || rhythm.tokens >= 0.999 * u.budget;
    const double others = std::max(0.0, here - 1) / steps;
    const double same = alike ? mixed_step(model, u, decodes, rhythm.ranks, rhythm.tokens, alone).base() : 0.0;
    const MixedTime mixed = alike ? MixedTime{same, same, rhythm.tokens / u.prompt}
                                  : mixed_time(model, u, decodes, rhythm.ranks, others, alone);
    const Seconds plain = decode_step(model, u, decodes);
    cycle = steps * (rhythm.mixed * mixed.any + (1 - rhythm.mixed) * plain.base());
    // A user's own prompt, and the steps for which it is held, are no gap between its tokens; prompts of others are.
    first = u.chunks * mixed.own + rhythm.wait * plain.base();
    own_steps = u.chunks + rhythm.wait;
    const double before = outside;
    outside = std::max(on_the_way, taken_in - cycle);
    if (queues()) outside = (outside + before) / 2;
    busy = cycle / (cycle + outside);
    const double gathering = gather(model, u, decodes, mixed, alone ? 0.0 : plain.base(), on_the_way, alone);
    const bool often = !waits && (alone || rhythm.mixed > kMostBeside);
    if (often && gathering * rhythm.mixed * steps > (alone ? kMostAlone : kMostBeside) * cycle) return std::nullopt;
  }
  outside = std::max(outside, taken_in - cycle);
  const double most = most_tokens_per_second(e, d.sharding);
  const double free = u.users * o / (cycle + outside), rate = std::min(free, most);
  const double tpot = (cycle - first) / (alone ? o - 1 : steps - own_steps);
  return SteadyLoad{.tpot = Seconds(tpot * free / rate),
                    .output_tokens_per_s = r.replicas * rate,
                    .front_end_share = queues() ? 1.0 : std::max(rate / most, taken_in / (cycle + outside))};
}

std::string why_no_steady_load(const Deployment& d, const EstimateRequest& r) {
  const EngineSpec& e = d.engine;
  const double length = static_cast<double>(r.prompt_tokens) + r.output_tokens;
  if (r.context) return "--context prices one decode step, a steady load needs whole requests";
  if (r.speculation.active()) return "with speculation only simulate plays it";
  if (!e.kv_cache) return "without a KV cache only simulate plays it";
  if (d.model.attends_to_encoder()) return "of an encoder-decoder only simulate plays it";
  if (!make_scheduler(e.scheduler)->continuous()) return fmt::format("{} runs static batches", e.name);
  if (r.output_tokens < 2) return "with one output token nothing decodes";
  if (d.memory.infeasible || r.batch > d.memory.max_batch(length, e.block_size) * d.sharding.attention_dp)
    return "the batch does not fit";
  if (r.batch > d.seats()) return fmt::format("{} runs {} sequences at a time", e.name, d.seats());
  return "";
}

}  // namespace roofcast
