#include "sim/serve/workload.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <numeric>

#include "base/overloaded.h"
#include "sim/serve/arrivals.h"
#include "sim/serve/numpy_lengths.h"
#include "sim/serve/overlaid.h"
#include "sim/serve/servegen.h"

namespace roofcast {
namespace {

using Process = ArrivalSpec::Process;

/// A map with its `distribution`, or a bare number of tokens.
LengthSpec length_at(ConfigReader& in, std::string_view key) {
  const ConfigTree value = in.tree(key);
  if (value && value->kind == ConfigNode::Kind::kScalar) {
    return LengthSpec{LengthSpec::Fixed{static_cast<int>(in.integer(key, Range{1.0, 1e7}))}};
  }
  return parse_length(in.child(key));
}

/// The length distribution scaled by `factor`.
LengthSpec grown(const LengthSpec& law, double factor, ConfigReader& in) {
  const auto times = [&](int tokens) { return static_cast<int>(std::lround(factor * tokens)); };
  const auto refuse = [&]() -> LengthSpec {
    in.fail("token_growth", "'token_growth' needs prompt lengths that are fixed or uniform");
  };
  return std::visit(
      Overloaded{[&](const LengthSpec::Fixed& fixed) { return LengthSpec{LengthSpec::Fixed{times(fixed.value)}}; },
                 [&](const LengthSpec::Uniform& u) {
                   return LengthSpec{LengthSpec::Uniform{times(u.min), times(u.max)}};
                 },
                 [&](const LengthSpec::Lognormal&) { return refuse(); },
                 [&](const LengthSpec::Empirical&) { return refuse(); }},
      law.law);
}

/// A trace has its own lengths; lengths of a workload that it overrides are checked and ignored.
void parse_lengths(ConfigReader& in, WorkloadSpec& workload) {
  const bool from_trace = workload.arrivals.process == Process::kTrace;
  for (const std::string_view key : {"prompt_tokens", "output_tokens"}) {
    if (from_trace && !in.has(key)) {
      in.ignore(key);
      continue;
    }
    (key == "prompt_tokens" ? workload.prompt_tokens : workload.output_tokens) = length_at(in, key);
  }
}

void parse_extent(ConfigReader& in, WorkloadSpec& workload) {
  if (in.has("requests")) workload.requests = in.integer("requests", Range{1.0, 1e10});
  in.ignore("requests");
  if (in.has("duration")) {
    workload.duration = in.time("duration");
    if (*workload.duration <= Seconds(0.0)) in.fail("duration", "'duration' must be more than 0");
  }
  in.ignore("duration");
  workload.start = in.time("start", Seconds(0));
  if (workload.start > Seconds(0) && workload.arrivals.process != Process::kTrace)
    in.fail("start", "'start' needs a trace or a mix of clients");
  workload.warmup_requests = in.integer("warmup_requests", 0, Range{0.0, 1e10});
  const Process process = workload.arrivals.process;
  if (workload.requests > 0 || process == Process::kTrace) return;
  if (!workload.duration) in.fail("", "a workload needs 'requests', 'duration' or a trace");
  if (process == Process::kAllAtOnce) in.fail("duration", "requests that arrive all at once need 'requests'");
}

/// `timeout: 30 s` for the whole answer, or `timeout: {first_token: 5 s, total: 30 s}`.
void parse_patience(ConfigReader& in, Patience& patience) {
  const auto limit = [](ConfigReader& map, std::string_view key) -> std::optional<Seconds> {
    if (!map.has(key)) return std::nullopt;
    const Seconds time = map.time(key);
    if (time < kMillisecond) map.fail(key, "a timeout must be at least 1 ms");
    return time;
  };
  const ConfigTree value = in.tree("timeout");
  if (!value) return;
  if (value->kind == ConfigNode::Kind::kScalar) {
    patience.total = limit(in, "timeout");
    return;
  }
  ConfigReader map = in.child("timeout");
  patience.first_token = limit(map, "first_token");
  patience.total = limit(map, "total");
  if (patience.first_token && patience.total && *patience.first_token > *patience.total)
    map.fail("first_token", "'first_token' is longer than 'total': it would never apply");
  for (const char* key : {"first_token", "total"}) map.ignore(key);
  map.finish();
}

/// `priorities: [0.1, 0.9]`: a tenth of the requests have priority 0.
void parse_priorities(ConfigReader& in, WorkloadSpec& workload) {
  workload.priorities = in.numbers("priorities", kAtLeastZero);
  if (workload.priorities.empty()) return;
  const double sum = std::accumulate(workload.priorities.begin(), workload.priorities.end(), 0.0);
  constexpr double kRounding = 0.011;  // tolerates three thirds with two digits
  if (!(std::abs(sum - 1.0) <= kRounding))
    in.fail(
        "priorities",
        fmt::format("the shares of 'priorities' must add up to 1, got {:g}: [0.1, 0.9] gives a tenth of the requests "
                    "priority 0 and the others priority 1",
                    sum));
  for (double& share : workload.priorities) share /= sum;
}

/// `turns: 16`, or a distribution: `{distribution: lognormal, mean: 19, p50: 16, max: 84}`.
void parse_turns(ConfigReader& in, WorkloadSpec& workload) {
  constexpr int kMostTurns = 10000;
  const ConfigTree tree = in.has("turns") ? in.tree("turns") : nullptr;
  if (!tree || tree->kind != ConfigNode::Kind::kMap) {
    workload.turns = static_cast<int>(in.integer("turns", 1, Range{1.0, kMostTurns}));
    return;
  }
  workload.turn_distribution = parse_length(in.child("turns"));
  workload.turns = workload.turn_distribution->longest();
  if (workload.turns < 2 || workload.turns > kMostTurns)
    in.fail("turns",
            fmt::format("a distribution of turns must lie between 2 and {}, got {}", kMostTurns, workload.turns));
}

/// `branches: {count: 3, after: 2}`: after two turns a session continues as three, which share the history.
void parse_branches(ConfigReader& in, WorkloadSpec& workload) {
  auto branches = in.optional_child("branches");
  if (!branches) return;
  workload.branches = static_cast<int>(branches->integer("count", Range{2.0, 1000.0}));
  workload.branch_after = static_cast<int>(branches->integer("after", 1, Range{1.0, 10000.0}));
  if (workload.turns <= workload.branch_after)
    branches->fail("after", fmt::format("sessions of {} turns ('turns') do not go on after {}", workload.turns,
                                        workload.branch_after));
  branches->finish();
}

void parse_sharing(ConfigReader& in, WorkloadSpec& workload) {
  constexpr double kMost = 1e7, kLongestSession = 1e9;
  workload.shared_prefix_tokens = static_cast<int>(in.integer("shared_prefix_tokens", 0, Range{0.0, kMost}));
  workload.prefix_groups = static_cast<int>(in.integer("prefix_groups", 1, Range{1.0, kMost}));
  if (in.has("distinct_prompts")) {
    if (in.has("shared_prefix_tokens") || in.has("prefix_groups"))
      in.fail("distinct_prompts",
              "'distinct_prompts' says what prompts share: leave 'shared_prefix_tokens' and "
              "'prefix_groups' out");
    workload.prefix_groups = static_cast<int>(in.integer("distinct_prompts", 0, Range{1.0, kMost}));
    workload.shared_prefix_tokens = workload.prompt_tokens.longest();
  }
  in.ignore("distinct_prompts");
  parse_turns(in, workload);
  parse_branches(in, workload);
  const bool trace = workload.arrivals.process == Process::kTrace;
  if (workload.turns > 1 && trace) in.fail("turns", "a trace has its own sessions: 'turns' must be 1");
  if (workload.turns > 1 && workload.arrivals.process == Process::kAllAtOnce) {
    in.fail("turns", "the turns of a session cannot arrive all at once");
  }
  const int longest = workload.prompt_tokens.longest();
  const double grown = workload.shared_prefix_tokens +
                       workload.turns * (static_cast<double>(longest) + workload.output_tokens.longest());
  if (grown > kLongestSession) {
    in.fail("turns", fmt::format("a session of {} turns could grow to {} tokens, more than {}: give the lengths a "
                                 "smaller 'max'",
                                 workload.turns, grown, kLongestSession));
  }
  if (workload.turns == 1 && !trace && workload.shared_prefix_tokens > longest) {
    in.fail("shared_prefix_tokens", fmt::format("'shared_prefix_tokens' is part of the prompt, but {} is more than "
                                                "the longest prompt, {}",
                                                workload.shared_prefix_tokens, longest));
  }
}

/// Settings of one kind of client other than its prompts: thinking, limits and the like.
void parse_tenant(ConfigReader& in, WorkloadSpec& w) {
  w.media = parse_media(in);
  if (auto samples = in.optional_child("samples")) w.samples = parse_samples(std::move(*samples));
  if (auto limit = in.optional_child("rate_limit")) w.rate_limit = parse_rate_limit(std::move(*limit));
  w.guided = in.number("guided", 0.0, kFraction);
  auto thinking = in.optional_child("thinking");
  if (!thinking) return;
  if (w.arrivals.process == Process::kTrace)
    in.fail("thinking", "the output lengths of a trace include thinking already");
  if (w.by_time || w.listed) in.fail("thinking", "needs 'output_tokens' from a distribution");
  w.thinking.emplace();
  w.thinking->tokens = length_at(*thinking, "tokens");
  w.thinking->budget = static_cast<int>(thinking->integer("budget", 0, Range{0.0, 1e7}));
  thinking->finish();
  w.output_tokens.extra = w.thinking->held(static_cast<int>(std::lround(w.thinking->tokens.mean())));
}

constexpr std::size_t kMostClients = 10000;

/// One kind of clients: `{name, arrivals, prompt_tokens, output_tokens, shared_prefix_tokens, prefix_groups, turns,
/// priority}`.
WorkloadSpec parse_client(ConfigReader in) {
  WorkloadSpec client;
  client.name = in.text("name", "");
  client.arrivals = parse_arrivals(in.child("arrivals"));
  if (client.arrivals.rate <= PerSecond(0)) {
    in.fail("arrivals", "the arrivals of 'clients' must be poisson, gamma or constant, each with its rate");
  }
  parse_lengths(in, client);
  parse_tenant(in, client);
  client.objectives = in.tree("objectives");
  parse_sharing(in, client);
  const auto priority = static_cast<std::size_t>(in.integer("priority", 0, Range{0.0, 1000.0}));
  client.priorities.assign(priority + 1, 0.0);
  client.priorities.back() = 1.0;
  in.finish();
  return client;
}

/// `{servegen: FOLDER, rate_scale: 1}`; lasts as long as its windows unless the workload states a duration.
void parse_servegen(ConfigReader in, WorkloadSpec& workload) {
  const std::string folder = beside(in.text("servegen"), in.location_of("servegen"));
  workload.clients = read_servegen(folder, in.number("rate_scale", 1.0, Range{1e-9, 1e9}));
  in.finish();
  Seconds longest{};
  for (const WorkloadSpec& client : workload.clients) longest = std::max(longest, client.arrivals.profile_period);
  workload.duration = longest;
}

void parse_clients(ConfigReader& in, WorkloadSpec& workload) {
  for (const char* key : {"arrivals", "prompt_tokens", "output_tokens", "turns", "branches", "shared_prefix_tokens",
                          "priorities", "images", "audio", "video", "samples", "rate_limit", "guided", "thinking"}) {
    if (in.has(key)) in.fail(key, fmt::format("each of 'clients' has its own '{}'", key));
  }
  const ConfigTree list = in.tree("clients");
  if (list->kind == ConfigNode::Kind::kMap) {
    parse_servegen(in.child("clients"), workload);
  } else {
    for (const ConfigTree& item : in.list("clients"))
      workload.clients.push_back(parse_client(ConfigReader(item, "a client")));
  }
  if (workload.clients.empty() || workload.clients.size() > kMostClients) {
    in.fail("clients", fmt::format("'clients' must list 1 to {} kinds of clients", kMostClients));
  }
  if (!workload.duration && !in.has("requests") && !in.has("duration"))
    in.fail("", "a workload of clients needs 'requests' or 'duration'");
  workload.arrivals.process = Process::kTrace;
}

/// `drawn_as: numpy`: lengths of a benchmark client (see sim/serve/numpy_lengths.h). `token_growth`: tokens that reach
/// the server per token that the client counts. `text_growth`: the same for the text that the front end reads.
void parse_client_lengths(ConfigReader& in, WorkloadSpec& workload) {
  static constexpr std::array<std::string_view, 2> kDraws{"law", "numpy"};
  const bool numpy = in.choice("drawn_as", kDraws, 0) == 1;
  const double tokens = in.number("token_growth", 1.0, Range{0.01, 100.0});
  workload.prompt_text = in.number("text_growth", 1.0, Range{0.01, 100.0}) / tokens;
  const LengthSpec written = workload.prompt_tokens;
  if (tokens != 1.0) workload.prompt_tokens = grown(written, tokens, in);
  if (!numpy) return;
  const auto* prompts = std::get_if<LengthSpec::Uniform>(&written.law);
  const auto* outputs = std::get_if<LengthSpec::Uniform>(&workload.output_tokens.law);
  if (workload.thinking) in.fail("drawn_as", "'drawn_as: numpy' draws no 'thinking'");
  if (prompts == nullptr || outputs == nullptr)
    in.fail("drawn_as", "'drawn_as: numpy' needs prompt and output lengths of 'distribution: uniform'");
  constexpr std::int64_t kMost = 1'000'000;
  if (workload.requests < 1 || workload.requests > kMost)
    in.fail("drawn_as", fmt::format("'drawn_as: numpy' needs 1 to {} requests", kMost));
  workload.listed = numpy_lengths(*prompts, *outputs, workload.requests, tokens);
}

/// A client that gives up would have to cancel all of its sequences, which is not simulated.
void check_samples(const WorkloadSpec& workload) {
  const auto check = [&](const WorkloadSpec& w) {
    if (w.samples.several() && !workload.patience.endless())
      throw ConfigError(w.samples.location, "several sequences per prompt cannot be combined with 'timeout'");
  };
  check(workload);
  for (const WorkloadSpec& client : workload.clients) check(client);
}

}  // namespace

double mean_session_requests(const WorkloadSpec& w) {
  const double turns = mean_turns(w);
  if (w.branches <= 1) return turns;
  constexpr int kDraws = 10000;
  Random random(1);
  double after = w.turn_distribution ? 0 : kDraws * (turns - w.branch_after);
  for (int i = 0; w.turn_distribution && i < kDraws; ++i)
    after += std::max(0, w.turn_distribution->draw(random) - w.branch_after);
  return turns + (w.branches - 1.0) * after / kDraws;
}

WorkloadSpec parse_workload(ConfigReader in) {
  WorkloadSpec workload;
  workload.location = in.location();
  workload.name = in.text("name", "");
  workload.cites = in.text("source", "");
  if (in.has("clients")) parse_clients(in, workload);
  in.ignore("clients");
  if (auto arrivals = in.optional_child("arrivals")) workload.arrivals = parse_arrivals(std::move(*arrivals));
  parse_lengths(in, workload);
  if (workload.clients.empty()) parse_tenant(in, workload);
  parse_extent(in, workload);
  parse_patience(in, workload.patience);
  check_samples(workload);
  parse_priorities(in, workload);
  parse_sharing(in, workload);
  parse_client_lengths(in, workload);
  workload.objectives = in.tree("objectives");
  in.finish();
  return workload;
}

}  // namespace roofcast
