// Requests drawn from laws.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "base/config_library.h"
#include "base/error.h"
#include "sim/serve/arrivals.h"
#include "sim/serve/workload.h"

using namespace roofcast;

namespace {

WorkloadSpec workload(const std::string& yaml) {
  return parse_workload(ConfigReader(parse_config_text(yaml, "w.yaml"), "a workload"));
}

/// A workload with fixed lengths 100 and 10 and the given rest.
WorkloadSpec fixed(const std::string& rest) {
  return workload("{prompt_tokens: 100, output_tokens: 10, " + rest + "}");
}

std::string error_of(const std::string& rest) {
  try {
    fixed(rest);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

std::vector<Request> all_of(const WorkloadSpec& spec, std::uint64_t seed = 1) {
  const auto source = make_source(spec, seed);
  std::vector<Request> requests;
  Request request;
  while (source->next(request)) requests.push_back(request);
  return requests;
}

double gap_cv(const std::vector<Request>& requests) {
  double sum = 0.0, squares = 0.0;
  const double gaps = static_cast<double>(requests.size()) - 1.0;
  for (std::size_t i = 1; i < requests.size(); ++i) {
    const double gap = (requests[i].arrival - requests[i - 1].arrival).base();
    sum += gap;
    squares += gap * gap;
  }
  const double mean = sum / gaps;
  return std::sqrt(squares / gaps - mean * mean) / mean;
}

}  // namespace

TEST_CASE("workload: the block of a scenario") {
  const WorkloadSpec spec = workload(R"(
arrivals: {process: poisson, rate: 6 /s}
prompt_tokens: {distribution: lognormal, mean: 1155, p50: 1020, max: 8192}
output_tokens: {distribution: fixed, value: 128}
requests: 2000
warmup_requests: 50
)");
  CHECK(spec.arrivals.process == ArrivalSpec::Process::kPoisson);
  CHECK(spec.arrivals.rate == PerSecond(6.0));
  CHECK(spec.prompt_tokens.mean() == doctest::Approx(1155.0).epsilon(1e-4));
  CHECK(spec.output_tokens.mean() == 128.0);
  CHECK(spec.requests == 2000);
  const auto requests = all_of(spec);
  CHECK(requests.size() == 2050);  // the warm-up comes on top
  CHECK(requests[0].id == 0);
  CHECK(requests[2049].id == 2049);
}

TEST_CASE("workload: constant arrivals are exactly spaced") {
  const auto requests = all_of(fixed("arrivals: {process: constant, rate: 4 /s}, requests: 5"));
  REQUIRE(requests.size() == 5);
  CHECK(requests[0].arrival == Seconds(0.0));
  CHECK(requests[4].arrival == Seconds(1.0));
  CHECK(all_of(fixed("arrivals: {process: constant, rate: 4 /s}, duration: 10 s")).size() == 40);
  CHECK(all_of(fixed("arrivals: {process: constant, rate: 4 /s}, duration: 10 s, requests: 7")).size() == 7);
  CHECK(all_of(fixed("arrivals: {process: constant, rate: 4 /s}, duration: 1 s, requests: 7")).size() == 4);
}

TEST_CASE("workload: Poisson and gamma arrivals have the rate and the variation asked for") {
  const auto poisson = all_of(fixed("arrivals: {process: poisson, rate: 5 /s}, requests: 100000"));
  CHECK(poisson.back().arrival.base() == doctest::Approx(20000.0).epsilon(0.02));
  CHECK(gap_cv(poisson) == doctest::Approx(1.0).epsilon(0.02));
  const auto bursty = all_of(fixed("arrivals: {process: gamma, rate: 5 /s, cv: 3}, requests: 100000"));
  CHECK(bursty.back().arrival.base() == doctest::Approx(20000.0).epsilon(0.05));
  CHECK(gap_cv(bursty) == doctest::Approx(3.0).epsilon(0.05));
  // burstiness is the shape: cv = 1 / sqrt(4) = 0.5
  CHECK(fixed("arrivals: {process: gamma, rate: 5 /s, burstiness: 4}, requests: 1").arrivals.cv == 0.5);
  for (std::size_t i = 1; i < bursty.size(); ++i) {
    if (bursty[i].arrival < bursty[i - 1].arrival) FAIL("arrivals went back in time");
  }
}

TEST_CASE("workload: a profile moves the arrivals of a day, and leaves their number") {
  WorkloadSpec w;
  w.arrivals = parse_arrivals(ConfigReader(
      parse_config_text("{process: poisson, rate: 10 /s, profile: [1, 0, 5, 2], profile_period: 400 s}", "p"),
      "arrivals"));
  w.duration = Seconds(40000);                                       // a hundred days of 400 s
  CHECK(w.arrivals.profile == std::vector<double>{0.5, 0, 2.5, 1});  // of mean 1
  const auto source = make_source(w, 5);
  std::array<double, 4> seen{};
  Request r;
  double last = 0;
  while (source->next(r)) {
    REQUIRE(r.arrival.base() >= last);
    last = r.arrival.base();
    seen[static_cast<std::size_t>(std::fmod(last, 400) / 100)] += 1;
  }
  // 100 slices of 100 s at 10 /s times the level
  CHECK(seen[0] == doctest::Approx(50000).epsilon(0.02));
  CHECK(seen[1] == 0);
  CHECK(seen[2] == doctest::Approx(250000).epsilon(0.01));
  CHECK(seen[3] == doctest::Approx(100000).epsilon(0.02));
}

TEST_CASE("workload: constant arrivals under a profile are spaced by its level") {
  WorkloadSpec w;
  w.arrivals.process = ArrivalSpec::Process::kConstant;
  w.arrivals.rate = PerSecond(1);
  w.arrivals.profile = {0.5, 1.5};
  w.arrivals.profile_period = Seconds(8);
  w.requests = 10;
  const auto source = make_source(w, 0);
  Request r;
  std::vector<double> at;
  while (source->next(r)) at.push_back(r.arrival.base());
  // one every 2 s up to 4 s, then every 2/3 s up to 8 s, and so on
  const std::vector<double> expected{0, 2, 4, 4 + 2.0 / 3, 4 + 4.0 / 3, 6, 6 + 2.0 / 3, 6 + 4.0 / 3, 8, 10};
  REQUIRE(at.size() == expected.size());
  for (std::size_t i = 0; i < at.size(); ++i) CHECK(at[i] == doctest::Approx(expected[i]));
}

TEST_CASE("workload: the same seed gives the same requests, a rate leaves the lengths as they are") {
  const std::string lengths = "{prompt_tokens: {distribution: uniform, min: 1, max: 1000000}, output_tokens: 10, ";
  const WorkloadSpec slow = workload(lengths + "arrivals: {process: poisson, rate: 1 /s}, requests: 100}");
  const WorkloadSpec fast = workload(lengths + "arrivals: {process: gamma, rate: 9 /s, cv: 2}, requests: 100}");
  const auto a = all_of(slow, 42), b = all_of(slow, 42), c = all_of(slow, 43), d = all_of(fast, 42);
  bool same_times = true, same_lengths = true, other_seed_same = true;
  for (std::size_t i = 0; i < a.size(); ++i) {
    same_times = same_times && a[i].arrival == b[i].arrival && a[i].prompt_tokens == b[i].prompt_tokens;
    same_lengths = same_lengths && a[i].prompt_tokens == d[i].prompt_tokens;
    other_seed_same = other_seed_same && a[i].prompt_tokens == c[i].prompt_tokens;
  }
  CHECK(same_times);
  CHECK(same_lengths);
  CHECK_FALSE(other_seed_same);
}

TEST_CASE("workload: a closed loop and a batch send without a clock") {
  for (const char* process : {"{process: closed_loop, concurrency: 8, think_time: 2 s}", "{process: all_at_once}"}) {
    const WorkloadSpec spec = fixed(std::string("requests: 20, arrivals: ") + process);
    for (const Request& request : all_of(spec)) CHECK(request.arrival == Seconds(0.0));
  }
  CHECK(fixed("requests: 3").arrivals.process == ArrivalSpec::Process::kAllAtOnce);
}

TEST_CASE("workload: sends of a batch are delayed, each by its own draw, in order of time") {
  const auto sent = [](const std::string& delay, std::uint64_t seed) {
    const WorkloadSpec spec = fixed("requests: 4000, arrivals: {process: all_at_once, send_delay: " + delay + "}");
    std::vector<double> at;
    for (const Request& request : all_of(spec, seed)) at.push_back(request.arrival.base());
    return at;
  };
  const std::vector<double> exponential = sent("20 ms", 1);
  REQUIRE(exponential.size() == 4000);
  CHECK(std::is_sorted(exponential.begin(), exponential.end()));
  CHECK(std::accumulate(exponential.begin(), exponential.end(), 0.0) / 4000 == doctest::Approx(0.02).epsilon(0.05));
  CHECK(exponential[2000] == doctest::Approx(0.02 * std::log(2.0)).epsilon(0.06));  // the median
  CHECK(sent("20 ms", 1) == exponential);
  CHECK(sent("20 ms", 2) != exponential);
  const std::vector<double> uniform = sent("{distribution: uniform, min: 10 ms, max: 50 ms}", 1);
  CHECK(uniform.front() >= 0.01);
  CHECK(uniform.back() <= 0.05);
  CHECK(uniform[2000] == doctest::Approx(0.03).epsilon(0.05));
  CHECK(error_of("requests: 6, arrivals: {process: poisson, rate: 1 /s, send_delay: 5 ms}")
            .find("'send_delay' belongs to closed_loop and all_at_once arrivals") != std::string::npos);
}

TEST_CASE("workload: requests of a prefix group share their leading blocks") {
  const auto requests = all_of(fixed("requests: 200, shared_prefix_tokens: 70, prefix_groups: 3"));
  std::set<std::vector<std::uint64_t>> prefixes;
  for (const Request& request : requests) {
    CHECK(request.prompt_tokens == 100);       // the prefix is part of the prompt
    CHECK(request.prefix_blocks.size() == 5);  // ceil(70 / 16)
    CHECK(request.prefix_block_tokens == 16);
    prefixes.insert(request.prefix_blocks);
  }
  CHECK(prefixes.size() == 3);
  CHECK(all_of(fixed("requests: 2"))[1].prefix_blocks.empty());
  CHECK(all_of(fixed("requests: 2"))[1].prefix_block_tokens == 0);
}

TEST_CASE("workload: each turn of a session sends the whole history again") {
  const auto requests = all_of(
      fixed("requests: 6, turns: 3, shared_prefix_tokens: 32, arrivals: {process: closed_loop, concurrency: 1}"));
  REQUIRE(requests.size() == 6);
  CHECK(requests[0].prompt_tokens == 132);  // the prefix, 32, opens the session; 100 of the user
  CHECK(requests[1].prompt_tokens == 242);  // 132 + 10 answered + 100
  CHECK(requests[2].prompt_tokens == 352);
  CHECK(requests[3].prompt_tokens == 132);  // a new session
  CHECK(requests[2].session == 0);
  CHECK(requests[3].session == 1);
  // All that was sent and answered, 142 tokens: ceil(142 / 16) = 9 blocks, the last one begun.
  const auto& first = requests[0].prefix_blocks;
  const auto& second = requests[1].prefix_blocks;
  REQUIRE(first.size() == 9);
  CHECK(std::equal(first.begin(), first.end(), second.begin()));
  // The other session shares the two blocks of the prefix and no more.
  CHECK(requests[3].prefix_blocks[1] == first[1]);
  CHECK(requests[3].prefix_blocks[2] != first[2]);
}

TEST_CASE("workload: in a closed loop the user whose request ended goes on") {
  const WorkloadSpec spec = fixed("requests: 9, turns: 2, arrivals: {process: closed_loop, concurrency: 3}");
  const auto source = make_source(spec, 1);
  Request request;
  std::vector<int> sessions;
  for (int i = 0; i < 3; ++i) {
    REQUIRE(source->next(request));
    sessions.push_back(request.session);
  }
  CHECK(sessions == std::vector<int>{0, 1, 2});
  REQUIRE(source->next_after(2, request));
  CHECK(request.session == 2);
  CHECK(request.prompt_tokens == 210);  // 100 + 10 + 100
  REQUIRE(source->next_after(2, request));
  CHECK(request.session == 3);  // two turns are all
  CHECK(request.prompt_tokens == 100);
  REQUIRE(source->next_after(0, request));
  CHECK(request.session == 0);
}

TEST_CASE("workload: open sessions follow Little's law, and soon all turns are equally frequent") {
  // 10 requests/s, 2 of 3 followed by a pause of 6 s: 40 sessions wait. They open in the first 6 s.
  const auto requests =
      all_of(fixed("requests: 30000, turns: 3, arrivals: {process: constant, rate: 10 /s, think_time: 6 s}"));
  std::map<int, double> last;
  std::map<int, int> turns_seen;
  double pauses = 0.0, paused = 0.0;
  for (const Request& request : requests) {
    const double now = request.arrival.base();
    if (last.contains(request.session)) {
      pauses += now - last[request.session];
      ++paused;
    }
    last[request.session] = now;
    if (request.id >= 600 && request.id < 900) ++turns_seen[request.prompt_tokens];
  }
  CHECK(pauses / paused == doctest::Approx(6.0).epsilon(0.02));
  REQUIRE(turns_seen.size() == 3);
  for (const auto& [prompt, count] : turns_seen) CHECK(count == doctest::Approx(100).epsilon(0.05));
}

TEST_CASE("workload: what cannot be is an error at its place") {
  CHECK(error_of("arrivals: {process: poisson, rate: 0 /s}, requests: 5") == "w.yaml:1:76: 'rate' must be more than 0");
  CHECK(error_of("arrivals: {process: poisson, rate: 6}, requests: 5").find("'rate' must be a rate") !=
        std::string::npos);
  CHECK(error_of("arrivals: {process: poison, rate: 6 /s}, requests: 5").find("nearest is 'poisson'") !=
        std::string::npos);
  CHECK(error_of("arrivals: {process: closed_loop, concurrency: 0}, requests: 5").find("'concurrency' must be") !=
        std::string::npos);
  CHECK(error_of("arrivals: {process: closed_loop, concurrency: 2, rate: 3 /s}, requests: 5")
            .find("'rate' belongs to poisson, gamma and constant arrivals") != std::string::npos);
  CHECK(error_of("arrivals: {process: poisson, rate: 6 /s}") ==
        "w.yaml:1:1: a workload needs 'requests', 'duration' or a trace");
  CHECK(error_of("duration: 5 s").find("requests that arrive all at once need 'requests'") != std::string::npos);
  CHECK(error_of("requests: 0").find("'requests' must be") != std::string::npos);
  CHECK(error_of("requests: 5, duration: 0 s").find("'duration' must be more than 0") != std::string::npos);
  CHECK(error_of("requests: 5, warmup_requests: -1").find("'warmup_requests' must be") != std::string::npos);
  CHECK(error_of("requests: 5, shared_prefix_tokens: 101").find("more than the longest prompt, 100") !=
        std::string::npos);
  CHECK(error_of("requests: 5, turns: 2").find("cannot arrive all at once") != std::string::npos);
  const std::string long_session =
      ", output_tokens: 10, requests: 5, turns: 10000, "
      "arrivals: {process: closed_loop, concurrency: 1}}";
  CHECK_NOTHROW(workload("{prompt_tokens: 99990" + long_session));
  CHECK_THROWS_WITH_AS(workload("{prompt_tokens: 99991" + long_session),
                       doctest::Contains("could grow to 1000010000 tokens, more than 1000000000"), ConfigError);
  CHECK(error_of("requests: 5, images: {width: 201, height: 1}")
            .find("one side of an image may be at most 200 times as long as the other") != std::string::npos);
  CHECK(error_of("requests: 5, images: {width: 1, height: 200}") == "no error");
  CHECK_THROWS_WITH_AS(
      workload("{prompt_tokens: {distribution: lognormal, mean: 10, cv: 1}, output_tokens: 5, requests: 3, "
               "token_growth: 2}"),
      doctest::Contains("'token_growth' needs prompt lengths that are fixed or uniform"), ConfigError);
  CHECK(error_of("requests: 5, request: 6").find("unknown key 'request'") != std::string::npos);
  CHECK(error_of("arrivals: {process: trace, file: nowhere.csv}").find("no such file 'nowhere.csv'") !=
        std::string::npos);
  CHECK_THROWS_AS(workload("{output_tokens: 5, requests: 3}"), ConfigError);
}

TEST_CASE("workload: a process laid over a named workload leaves its keys behind") {
  const ConfigTree named = parse_config_text(
      "{arrivals: {process: gamma, rate: 6 /s, cv: 2}, prompt_tokens: 9, output_tokens: 9, requests: 3}", "named.yaml");
  const ConfigTree mine = parse_config_text("{arrivals: {process: closed_loop, concurrency: 2}}", "mine.yaml");
  CHECK(parse_workload(ConfigReader(overlay(named, mine))).arrivals.concurrency == 2);
}

TEST_CASE("workload: every shipped workload is sound and says where it comes from") {
  const std::filesystem::path folder = ROOFCAST_SOURCE_DIR "/configs/workloads";
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".yaml") continue;
    CAPTURE(entry.path().string());
    WorkloadSpec spec = parse_workload(ConfigReader(parse_config_file(entry.path().string()), "a workload"));
    CHECK(spec.name == entry.path().stem().string());
    CHECK(spec.cites.size() > 20);
    CHECK(spec.prompt_tokens.mean() >= 1.0);
    CHECK(spec.output_tokens.mean() >= 1.0);
    const auto source = make_source(spec, 1);
    Request request;
    for (int i = 0; i < 100; ++i) {
      if (!source->next(request)) break;
      CHECK(request.prompt_tokens >= 1);
      CHECK(request.output_tokens >= 1);
    }
    ++seen;
  }
  CHECK(seen >= 14);
}

TEST_CASE("workload: bad files state their error in the first line") {
  const std::filesystem::path folder = ROOFCAST_SOURCE_DIR "/tests/bad_configs";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (!entry.path().filename().string().starts_with("workload-")) continue;
    CAPTURE(entry.path().string());
    std::ifstream file(entry.path());
    std::string first;
    std::getline(file, first);
    const std::string mark = "# expect: ";
    REQUIRE(first.starts_with(mark));
    std::string message = "no error";
    try {
      const ConfigTree scenario = parse_config_file(entry.path().string());
      make_source(parse_workload(ConfigReader(*scenario->find("workload"), "a workload")), 1);
    } catch (const ConfigError& error) {
      message = error.what();
    }
    CHECK_MESSAGE(message.find(first.substr(mark.size())) != std::string::npos, message);
  }
}

TEST_CASE("workload: listed lengths are sent in their order, after warm-up requests like the first") {
  WorkloadSpec spec = fixed("requests: 3, warmup_requests: 2, arrivals: {process: closed_loop, concurrency: 1}");
  spec.listed = std::make_shared<const std::vector<RequestLengths>>(std::vector<RequestLengths>{{90, 9}, {80, 8}});
  std::vector<std::array<int, 2>> sent;
  for (const Request& r : all_of(spec)) sent.push_back({r.prompt_tokens, r.output_tokens});
  CHECK(sent == std::vector<std::array<int, 2>>{{90, 9}, {90, 9}, {90, 9}, {80, 8}, {90, 9}});
}

TEST_CASE("workload: sessions that branch share what came before") {
  // Two turns, then three branches of two turns each: 2 + 3 x 2 requests of a session. A turn adds 110 tokens.
  const WorkloadSpec spec =
      fixed("requests: 80, turns: 4, branches: {count: 3, after: 2}, arrivals: {process: closed_loop, concurrency: 1}");
  CHECK(mean_session_requests(spec) == 8);
  const auto source = make_source(spec, 1);
  Request request;
  std::map<int, int> of_root;
  std::map<int, std::vector<Request>> by_session;
  REQUIRE(source->next(request));
  do {
    ++of_root[request.root_session];
    by_session[request.session].push_back(request);
  } while (source->next_after(request.session, request));
  for (const auto& [root, count] : of_root) CHECK(count == 8);
  for (const auto& [session, requests] : by_session) {
    const bool root = requests.front().root_session == session;
    REQUIRE(requests.size() == 2);
    CHECK(requests[0].prompt_tokens == (root ? 100 : 320));
    const std::vector<Request>& before = by_session[requests.front().root_session];
    // The 220 tokens before are 13 blocks and 12 tokens: all of these are the root's, none behind them.
    const auto& known = before.back().prefix_blocks;
    CHECK(known.size() == 14);
    if (root) continue;
    CHECK(requests[0].prefix_branch == 220);
    CHECK(std::equal(known.begin(), known.end(), requests[0].prefix_blocks.begin()));
    for (const auto& [other, others] : by_session) {
      if (other == session || others.front().root_session != requests.front().root_session ||
          other == before[0].session)
        continue;
      CHECK(requests[0].prefix_blocks[known.size()] != others[0].prefix_blocks[known.size()]);
    }
  }
  CHECK(error_of("requests: 6, turns: 2, branches: {count: 2, after: 2}, arrivals: {process: closed_loop, "
                 "concurrency: 1}")
            .find("do not go on after 2") != std::string::npos);
  CHECK(error_of("requests: 6, branches: {count: 2}, arrivals: {process: closed_loop, concurrency: 1}")
            .find("sessions of 1 turns") != std::string::npos);
}

TEST_CASE("workload: sessions whose turns follow a law") {
  const WorkloadSpec spec = fixed(
      "requests: 40000, turns: {distribution: uniform, min: 1, max: 5}, arrivals: {process: closed_loop, concurrency: "
      "1}");
  CHECK(spec.turns == 5);
  CHECK(mean_turns(spec) == 3);
  std::map<int, int> turns;  // of each session
  for (const Request& r : all_of(spec)) ++turns[r.session];
  std::array<int, 6> seen{};
  for (const auto& [session, count] : turns) ++seen.at(static_cast<std::size_t>(count));
  const double sessions = static_cast<double>(turns.size());
  for (std::size_t i = 1; i <= 5; ++i) CHECK(seen[i] / sessions == doctest::Approx(0.2).epsilon(0.05));
  CHECK(
      error_of("requests: 6, turns: {distribution: fixed, value: 1}, arrivals: {process: closed_loop, concurrency: 1}")
          .find("a distribution of turns must lie between 2") != std::string::npos);
}

TEST_CASE("workload: pauses that follow a law, in times") {
  const auto pauses = [](const std::string& law) {
    return fixed("requests: 6, turns: 2, arrivals: {process: closed_loop, concurrency: 1, think_time: " + law + "}")
        .arrivals;
  };
  const ArrivalSpec tools = pauses("{distribution: lognormal, mean: 71 s, p50: 11 s, max: 10 min}");
  REQUIRE(tools.pauses.has_value());
  CHECK(tools.think_time.base() == doctest::Approx(71).epsilon(1e-3));
  Random random(3);
  std::vector<int> drawn;
  for (int i = 0; i < 20001; ++i) drawn.push_back(tools.pauses->draw(random));
  std::nth_element(drawn.begin(), drawn.begin() + 10000, drawn.end());
  CHECK(drawn[10000] == doctest::Approx(11000).epsilon(0.05));
  CHECK(!pauses("11 s").pauses.has_value());
  CHECK(pauses("{distribution: uniform, min: 500 ms, max: 2 s}").think_time.base() == doctest::Approx(1.25));
  // Cut at a day where no `max` is given: half an hour in the mean is far from it
  CHECK(pauses("{distribution: lognormal, mean: 30 min, p50: 10 min}").think_time.base() == doctest::Approx(1800));
  CHECK(pauses("{distribution: lognormal, mean: 30 min, cv: 1}").pauses->longest() == 86400000);
  // mu and sigma are of the logarithm of seconds: exp(2 + 0.5 / 2 x 0.5) s
  CHECK(pauses("{distribution: lognormal, mu: 2, sigma: 0.5}").think_time.base() ==
        doctest::Approx(std::exp(2.125)).epsilon(1e-3));
  const auto refusal = [](const std::string& law) {
    return error_of("requests: 6, turns: 2, arrivals: {process: closed_loop, concurrency: 1, think_time: " + law + "}");
  };
  CHECK(refusal("{distribution: fixed, value: 0.4 ms}").find("'value': must be between 1 ms and 24 h") !=
        std::string::npos);
  CHECK(refusal("{distribution: lognormal, mean: 25 h, p50: 1 h}").find("'mean': must be between 1 ms and 24 h") !=
        std::string::npos);
  CHECK(refusal("{distribution: uniform, min: 1 s, max: 3 s, maxi: 2 s}").find("nearest is 'max'") !=
        std::string::npos);
}
