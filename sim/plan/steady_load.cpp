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

/// A step that holds prompts, in the mean over all such steps, and over those that one user's own prompt is in: more
/// of these are steps of many prompts.
struct MixedTime {
  double any = 0, own = 0;
  double prompts = 0;  ///< of any such step
};

/// Chance of k prompts in a step with one: each of the other users' falls into it by itself, so that they are Poisson
/// of the mean `others`; of all steps with prompts, k of them are one step. Nothing beyond what the budget holds.
///   own(k) = exp(-m) m^(k-1) / (k-1)!    any(k) ~ own(k) / k
/// A step's time is no line in its tokens (it leaves its graph), and the mean step none of those that run.
MixedTime mixed_time(StepModel& model, const Users& u, double decodes, double prefilling, double others, bool alone) {
  constexpr int kMostSteps = 24;  // priced; the mean of more is sharp
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
  double steps = 0;   ///< of a cycle
  double mixed = 0;   ///< of them, those in which a rank has prompts
  double ranks = 0;   ///< that have prompts then
  double tokens = 0;  ///< of prompts on each of those
  double wait = 0;    ///< steps that a prompt is held
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

/// Every rank by itself; `on_average` users of each load the engine. Where there are fewer than ranks, as many ranks
/// have one each.
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

/// Ranks with equally many users. All begin to decode together; after t steps each is done with a chance of
/// d = 1 - exp(-t / D), where D is the mean number of decode steps.
struct AlikeRanks {
  double ranks = 0;
  int users = 0;

  double none(double d) const { return std::pow(1 - d, users); }  ///< has a prompt
  double all(double d) const { return std::pow(d, users); }       ///< decodes no more
  /// All but one have a prompt.
  double all_but_one(double d) const { return users * std::pow(d, users - 1) * (1 - d); }
  /// Prompts that wait on a rank, where some decode.
  double waiting(double d) const { return users * d - users * all(d); }
};

/// Until prompts that wait for each other run.
struct Hold {
  double steps = 0;     ///< of it on average
  double waited = 0;    ///< prompts x steps
  double gathered = 0;  ///< share of the holds that end because every rank has a prompt
  double empty = 0;     ///< share that end at the timeout, when no prompt waits
};

/// Prompts are held while every rank decodes and not every rank has one, at most `most` steps. With
///   Q = product over ranks of (1 - all),  A = product of (1 - all - none):  Q - A is the chance of being held at t
/// `few` and `more` are the ranks with floor(n) and ceil(n) users.
Hold hold_of(const AlikeRanks& few, const AlikeRanks& more, double decodes, double most) {
  const auto others = [](double each, double ranks) { return ranks > 0 ? std::pow(each, ranks - 1) : 0.0; };
  Hold hold;
  double ended = 0;  // chance that a rank ran out of decodes first
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

/// Ranks that wait for each other's prompts: every rank decodes, else none waits. In a cycle of S steps each of
/// `here` x ranks users has one prompt, so that a hold and the step that ends it see here x ranks x (steps of both) /
/// S.
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
    const double prompts = here * u.ranks * length / r.steps;  // of a hold
    wait = hold.waited / prompts + hold.gathered * engine.prefill_batch_steps;
  }
  const double prompts = std::max(1.0, here * u.ranks * interval / r.steps);
  r.wait = wait;
  const double spread = u.ranks * (1 - std::pow(1 - 1 / u.ranks, prompts));  // ranks that so many prompts fall on
  r.ranks = std::max(1.0, hold.gathered * u.ranks + (1 - hold.gathered) * spread);
  const double tokens = here * u.ranks * u.prompt / r.steps;  // a step, of all ranks
  r.mixed = std::min(1.0, std::max(1 / interval, tokens / (r.ranks * u.budget)));
  r.tokens = std::min(u.budget, tokens / r.mixed / r.ranks);
  return r;
}

/// Of the cycle, how much the steps behind which prompts gather may be: alone, where these stop the others; and beside,
/// where that many of the steps must hold some, too, so that prompts miss every other step.
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

/// Tokens a second that the front end's servers send.
double most_tokens_per_second(const EngineSpec& e, const Sharding& sharding) {
  if (e.host.token_time.base() <= 0) return std::numeric_limits<double>::infinity();
  return e.front_ends(sharding) * std::max(1, e.postprocess_workers) / e.host.token_time.base();
}

}  // namespace

std::optional<SteadyLoad> steady_load(StepModel& model, const EstimateRequest& r) {
  const Deployment& d = model.deployment();
  const EngineSpec& e = d.engine;
  const double ranks = d.sharding.attention_dp, n = r.batch / ranks, o = r.output_tokens;
  const double length = r.prompt_tokens + o, room = d.memory.max_batch(length, e.block_size) * ranks;
  if (r.context || d.fidelity == Fidelity::kIdeal || d.memory.infeasible || r.speculation.active() || !e.kv_cache ||
      d.model.attends_to_encoder() || r.batch > room || r.batch > d.seats() || r.output_tokens < 2 ||
      !make_scheduler(e.scheduler)->continuous()) {
    return std::nullopt;
  }
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
  const double taken_in = u.users * intake / e.front_ends(d.sharding);  // a prompt of each user, one after another
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
    // A user's own prompt, and the steps for which it is held, are no gap between its tokens: prompts of others are.
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
                    .front_end_share = queues() ? 1.0 : rate / most};
}

}  // namespace roofcast
