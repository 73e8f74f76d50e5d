#include "sim/plan/objectives.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/from_chars.h"
#include "base/text.h"

namespace roofcast {
namespace {

constexpr std::array<std::string_view, 4> kMetrics{"ttft", "tpot", "itl", "e2el"};

/// "p99", "p99.9", "mean", "median"; false when it is none of them.
bool read_statistic(std::string_view word, double& percentile) {
  if (word == "mean") return percentile = -1, true;
  if (word == "median") return percentile = 50, true;
  if (word.size() < 2 || word[0] != 'p') return false;
  const auto [end, error] = from_chars(word.data() + 1, word.data() + word.size(), percentile);
  return error == std::errc() && end == word.data() + word.size() && percentile >= 0 && percentile < 100;
}

}  // namespace

std::string_view name_of(LatencyMetric metric) { return kMetrics[static_cast<std::size_t>(metric)]; }

std::string Objective::name() const { return who.empty() ? statistic() : who + " " + statistic(); }

std::string Objective::statistic() const {
  return percentile < 0 ? fmt::format("{}_mean", name_of(metric))
                        : fmt::format("{}_p{:g}", name_of(metric), percentile);
}

std::vector<Objective> parse_objectives(ConfigReader in) {
  std::vector<Objective> objectives;
  for (const std::string& key : in.keys()) {
    const auto line = key.find('_');
    const std::string metric = key.substr(0, line);
    Objective o;
    std::size_t at = 0;
    while (at < kMetrics.size() && kMetrics[at] != metric) ++at;
    if (at == kMetrics.size() ||
        (line != std::string::npos && !read_statistic(std::string_view(key).substr(line + 1), o.percentile))) {
      in.fail(key, fmt::format("'{}' is not an objective such as ttft_p99, tpot_mean, itl_p90 or e2el_median", key));
    }
    o.metric = static_cast<LatencyMetric>(at);
    o.limit = in.time(key);
    if (o.limit <= Seconds(0)) in.fail(key, fmt::format("'{}' must be more than 0", key));
    objectives.push_back(o);
  }
  in.finish();
  return objectives;
}

std::vector<Objective> objectives_of_clients(const WorkloadSpec& workload) {
  std::vector<Objective> out;
  for (std::size_t i = 0; i < workload.clients.size(); ++i) {
    const WorkloadSpec& client = workload.clients[i];
    if (!client.objectives) continue;
    for (Objective& o : parse_objectives(ConfigReader(client.objectives, "objectives"))) {
      o.client = static_cast<int>(i);
      o.who = client.name.empty() ? fmt::format("clients[{}]", i) : client.name;
      out.push_back(std::move(o));
    }
  }
  return out;
}

void refuse_gaps_of_clients(const WorkloadSpec& workload) {
  for (const WorkloadSpec& client : workload.clients) {
    if (!client.objectives) continue;
    for (const Objective& o : parse_objectives(ConfigReader(client.objectives, "objectives"))) {
      if (o.metric == LatencyMetric::kItl)
        throw ConfigError(client.objectives->location,
                          "in a plan, objectives of one kind of clients limit its TTFT, TPOT and E2E latency, not "
                          "single gaps: 'tpot' in place of 'itl'");
    }
  }
}

const Distribution& distribution_of(const Objective& o, const ServingMetrics& m) {
  const auto of = [&o](const auto& samples) -> const Distribution& {
    return o.metric == LatencyMetric::kTtft   ? samples.ttft_ms
           : o.metric == LatencyMetric::kTpot ? samples.tpot_ms
                                              : samples.e2el_ms;
  };
  if (o.client >= 0) return of(m.clients.at(static_cast<std::size_t>(o.client)));
  return o.metric == LatencyMetric::kItl ? m.itl_ms : of(m);
}

std::int64_t requests_of(const Objective& o, const ServingMetrics& m) {
  return o.client >= 0 ? m.clients.at(static_cast<std::size_t>(o.client)).completed : m.completed;
}

Seconds observed(const Objective& o, const ServingMetrics& metrics) {
  const Distribution& d = distribution_of(o, metrics);
  return (o.percentile < 0 ? d.mean() : d.percentile(o.percentile)) * kMillisecond;
}

bool serves_enough(const ServingMetrics& m, double goodput) {
  const double tolerated = goodput > 0 ? 1 - goodput : 0;
  return m.completed > 0 && static_cast<double>(m.failed) <= tolerated * static_cast<double>(m.completed + m.failed);
}

bool meets(const Objective& o, const ServingMetrics& m) {
  return serves_enough(m) && !m.load.saturated && requests_of(o, m) > 0 && observed(o, m) <= o.limit;
}

Objectives goodput_limits(const std::vector<Objective>& objectives, int client) {
  Objectives limits;
  for (const Objective& o : objectives) {
    if (o.client != client) continue;
    if (o.metric == LatencyMetric::kTtft) limits.ttft = o.limit;
    if (o.metric == LatencyMetric::kTpot || o.metric == LatencyMetric::kItl) limits.tpot = o.limit;
    if (o.metric == LatencyMetric::kE2el) limits.e2el = o.limit;
  }
  return limits;
}

std::vector<Objectives> client_limits(const std::vector<Objective>& objectives, std::size_t clients) {
  const auto has_own = [&](int client) {
    return std::any_of(objectives.begin(), objectives.end(), [&](const Objective& o) { return o.client == client; });
  };
  std::vector<Objectives> limits;
  bool any = false;
  for (int i = 0; i < static_cast<int>(clients); ++i) {
    any = any || has_own(i);
    limits.push_back(goodput_limits(objectives, has_own(i) ? i : -1));
  }
  return any ? limits : std::vector<Objectives>{};
}

}  // namespace roofcast
