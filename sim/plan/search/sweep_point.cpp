// One point of a sweep, estimated or simulated.

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/plan/prefill_sums.h"
#include "sim/plan/search/sweep.h"
#include "sim/plan/usual_lengths.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

constexpr std::array<std::string_view, 4> kRequestKeys{"batch", "prompt_tokens", "output_tokens", "context"};
constexpr Range kCount{1.0, 1e8};

bool is_request_key(const ConfigNode::Entry& entry) {
  return std::find(kRequestKeys.begin(), kRequestKeys.end(), entry.key) != kRequestKeys.end();
}

/// The estimate's request keys alone.
ConfigTree request_of(const ConfigTree& scenario) {
  auto request = std::make_shared<ConfigNode>(*scenario);
  std::erase_if(request->entries, [](const ConfigNode::Entry& entry) { return !is_request_key(entry); });
  return request;
}

/// Missing request keys come from the workload: its mean lengths, its concurrency. `prompt_tokens` counts text tokens;
/// media tokens are added.
EstimateRequest read_request(const ConfigTree& tree, const Scenario& scenario) {
  EstimateRequest r;
  r.replicas = scenario.serving.replicas;
  r.speculation = scenario.serving.speculation;
  if (scenario.workload) {
    const WorkloadSpec& w = *scenario.workload;
    if (w.arrivals.process == ArrivalSpec::Process::kClosedLoop)
      r.batch = std::max(1, (w.arrivals.concurrency + r.replicas - 1) / r.replicas);
    if (w.arrivals.process != ArrivalSpec::Process::kTrace) {
      r.prompt_tokens = std::max(1, static_cast<int>(std::lround(w.prompt_tokens.mean() - w.prompt_tokens.extra)));
      r.output_tokens = std::max(1, static_cast<int>(std::lround(w.output_tokens.mean())));
    }
  } else {
    const RequestLengths usual = usual_lengths(*scenario.deployment, std::nullopt, std::nullopt);
    r.prompt_tokens = usual.prompt_tokens, r.output_tokens = usual.output_tokens;
  }
  r.media = scenario.workload ? scenario.workload->encoded : usual_media(scenario.deployment->model);
  ConfigReader in(tree, "an estimate");
  r.batch = static_cast<int>(in.integer("batch", r.batch, kCount));
  r.prompt_tokens = static_cast<int>(in.integer("prompt_tokens", r.prompt_tokens, kCount)) + media_tokens(r.media);
  r.output_tokens = static_cast<int>(in.integer("output_tokens", r.output_tokens, kCount));
  if (in.has("context")) r.context = static_cast<int>(in.integer("context", kCount));
  return r;
}

}  // namespace

ConfigTree without_request(const ConfigTree& scenario) {
  auto rest = std::make_shared<ConfigNode>(*scenario);
  std::erase_if(rest->entries, is_request_key);
  return rest;
}

/// A parsed scenario without the request, a step model of its deployment, and sums of its prefill steps.
struct PointRunner::Read {
  Read(const ConfigTree& tree, Fidelity fidelity, SpecCache& specs)
      : scenario(read_scenario(tree, fidelity, specs)), model(scenario.deployment) {}
  Scenario scenario;
  StepModel model;
  PrefillSums sums;
};

PointRunner::PointRunner(bool simulate, Fidelity fidelity, SpecCache& specs)
    : simulate_(simulate), fidelity_(fidelity), specs_(specs) {}
PointRunner::~PointRunner() = default;

std::unique_ptr<PointRunner::Read> PointRunner::lend(const std::string& key, const ConfigTree& scenario) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = free_.find(key); found != free_.end() && !found->second.empty()) {
      std::unique_ptr<Read> read = std::move(found->second.back());
      found->second.pop_back();
      --kept_;
      return read;
    }
  }
  return std::make_unique<Read>(scenario, fidelity_, specs_);
}

void PointRunner::take_back(const std::string& key, std::unique_ptr<Read> read) {
  constexpr std::size_t kMost = 64;  // covers a few axes that vary faster than the request's
  const std::lock_guard lock(mutex_);
  if (kept_ >= kMost) free_.clear(), kept_ = 0;
  free_[key].push_back(std::move(read));
  ++kept_;
}

MetricsList PointRunner::run(const ConfigTree& tree) {
  if (simulate_) return simulated(tree);
  const ConfigTree rest = without_request(tree);
  const std::string key = to_yaml(*rest);
  std::unique_ptr<Read> read = lend(key, rest);
  if (read->scenario.serving.disaggregation)
    throw ConfigError(tree->location,
                      "an estimate cannot price 'disaggregation'; simulate the points ('run: simulate')");
  MetricsList metrics = metrics_of(estimate(read->model, read_request(request_of(tree), read->scenario), read->sums),
                                   *read->scenario.deployment);
  take_back(key, std::move(read));
  return metrics;
}

MetricsList PointRunner::simulated(const ConfigTree& tree) {
  const Scenario scenario = read_scenario(tree, fidelity_, specs_);
  if (!scenario.workload) throw ConfigError(tree->location, "the scenario of a simulated sweep needs a 'workload'");
  if (scenario.deployment->memory.infeasible)
    return {{"fits", false}, {"reason", scenario.deployment->memory.infeasible->reason}};
  return metrics_of(simulate(scenario.deployment, *scenario.workload, scenario.serving), scenario);
}

}  // namespace roofcast
