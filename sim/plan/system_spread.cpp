#include "sim/plan/system_spread.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <mutex>
#include <vector>

#include "base/config_library.h"
#include "base/config_reader.h"
#include "base/error_summary.h"
#include "base/root_sum.h"
#include "base/text.h"
#include "hw/rooflines.h"
#include "sim/plan/kernel_release.h"
#include "sim/plan/launch_recipe.h"
#include "sim/plan/planned_spread.h"
#include "sim/plan/rules.h"
#include "sim/step/deployment.h"
#include "sim/step/step_model.h"

namespace roofcast {
namespace {

constexpr std::array<std::string_view, 4> kRegimes{"light", "loaded", "saturated", "queued"};

struct Uncertainty {
  std::array<SystemSpread, kRegimes.size()> regimes;
  struct Deviation {
    double ttft = 0, tpot = 0;
  };
  SystemSpread recipe;
  Deviation host, release, another_vendor;
  double host_costs = 0;
  LogSpread power;
};

LogSpread parse_spread(ConfigReader& in, std::string_view key) {
  const std::vector<double> pair = in.numbers(key, {-10, 10});
  if (pair.size() != 2 || pair[0] > 0 || pair[1] < 0) in.fail(key, "must be [5 % quantile, 95 % quantile] around 0");
  return {pair[0], pair[1]};
}

SystemSpread parse_spreads(ConfigReader in) {
  const SystemSpread spread{parse_spread(in, "ttft"), parse_spread(in, "tpot")};
  in.finish();
  return spread;
}

Uncertainty read_uncertainty() {
  ConfigReader in(load_named("uncertainty", "serving", SourceLocation{"uncertainty", 0, 0}), "uncertainty");
  in.ignore("name");
  Uncertainty u;
  ConfigReader regimes = in.child("regimes");
  for (std::size_t i = 0; i < kRegimes.size(); ++i) u.regimes[i] = parse_spreads(regimes.child(kRegimes[i]));
  regimes.finish();
  u.power = parse_spread(in, "power");
  ConfigReader unknown = in.child("unknown");
  u.recipe = parse_spreads(unknown.child("recipe"));
  for (const auto& [key, to] : {std::pair{"host", &u.host}, {"release", &u.release}}) {
    ConfigReader one = unknown.child(key);
    *to = {one.number("ttft", {0, 5}), one.number("tpot", {0, 5})};
    one.finish();
  }
  u.host_costs = unknown.number("host_costs", {0, 5});
  unknown.finish();
  ConfigReader vendor = in.child("another_vendor");
  u.another_vendor = {vendor.number("ttft", {0, 5}), vendor.number("tpot", {0, 5})};
  vendor.finish();
  in.finish();
  return u;
}

const Uncertainty& uncertainty() {
  static const Uncertainty read = read_uncertainty();
  return read;
}

/// The deployments whose measured runs validated a recipe's widths; empty for a recipe that cannot be read.
const std::vector<Condition>& validated_deployments(const std::string& recipe) {
  static std::mutex mutex;
  static std::map<std::string, std::vector<Condition>> known;
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(recipe); found != known.end()) return found->second;
  std::vector<Condition>& deployments = known[recipe];
  try {
    for (const ValidatedRuns& runs : find_launch_recipe(recipe, SourceLocation{"recipe", 0, 0}).validated)
      deployments.emplace_back(runs.when);
  } catch (const ConfigError&) {
    deployments.clear();
  }
  return deployments;
}

/// Whether measured runs of this recipe on such a deployment validated the widths by regime.
bool is_validated(const Deployment& d) {
  if (d.recipe.empty()) return false;
  const DeploymentFacts facts = facts_of(d);
  const std::vector<Condition>& deployments = validated_deployments(d.recipe);
  return std::any_of(deployments.begin(), deployments.end(), [&](const Condition& c) { return c.holds(facts); });
}

LogSpread normal(double deviation) { return {-kNinetyPercent * deviation, kNinetyPercent * deviation}; }
SystemSpread normal(const Uncertainty::Deviation& d) { return {normal(d.ttft), normal(d.tpot)}; }

/// Single-user runs, on hardware left out, already show a backend's own spread.
bool has_spread(const Deployment& d, LoadRegime regime) {
  if (d.fidelity == Fidelity::kIdeal) return false;
  const bool whole_runs = d.roofline() != nullptr && !d.roofline()->source.empty();
  return !whole_runs || regime != LoadRegime::kLight;
}

void widen(SystemSpread& spread, const SystemSpread& more) {
  spread.ttft = together(spread.ttft, more.ttft);
  spread.tpot = together(spread.tpot, more.tpot);
}

LogSpread wider(const LogSpread& one, const LogSpread& other) {
  return {std::min(one.low, other.low), std::max(one.high, other.high)};
}

/// `launch`: what is not known of it; `assumed`: nor is the release, which is the newest.
SystemSpread spread_of(const Deployment& d, LoadRegime regime, const SystemSpread& launch, bool assumed,
                       const HostSpreads& host) {
  if (!has_spread(d, regime)) return {};
  const Uncertainty& u = uncertainty();
  const bool kernels = d.roofline() == nullptr;
  const bool queues = regime == LoadRegime::kSaturated || regime == LoadRegime::kQueued;
  SystemSpread spread = regime_spread(queues ? LoadRegime::kLoaded : regime);
  if (kernels) widen(spread, {host.first, host.step});
  if (queues) {  // these come from whole errors, those of the host included
    spread.ttft = wider(spread.ttft, regime_spread(regime).ttft);
    spread.tpot = wider(spread.tpot, regime_spread(regime).tpot);
  }
  const bool validated = is_validated(d);
  if (!validated) widen(spread, launch);
  const bool other_kernels = has_kernels_of_another_engine(d) || (!validated && has_kernels_of_another_release(d));
  if (d.engine.beyond_known || assumed || other_kernels) widen(spread, normal(u.release));
  if (of_another_vendor(d)) widen(spread, normal(u.another_vendor));
  return spread;
}

}  // namespace

std::string_view name_of(LoadRegime regime) { return kRegimes[static_cast<std::size_t>(regime)]; }

LoadRegime load_regime(const Deployment& d, int replicas, double in_flight, double tokens) {
  const double each = in_flight / std::max(1, replicas);
  const double room = d.memory.max_batch(tokens, d.engine.block_size) * d.sharding.attention_dp;
  if (each > std::min<double>(room, d.max_sequences())) return LoadRegime::kSaturated;
  return each <= 4.0 * d.sharding.gpus() ? LoadRegime::kLight : LoadRegime::kLoaded;
}

LogSpread together(const LogSpread& one, const LogSpread& other) {
  return {-root_sum_of_squares(one.low, other.low), root_sum_of_squares(one.high, other.high)};
}

SystemSpread regime_spread(LoadRegime regime) { return uncertainty().regimes[static_cast<std::size_t>(regime)]; }

SystemSpread system_spread(const Deployment& d, LoadRegime regime, const HostSpreads& host) {
  return spread_of(d, regime, uncertainty().recipe, d.engine.version_assumed, host);
}
/// The plan says which release to launch.
SystemSpread planned_spread(const Deployment& d, LoadRegime regime, const HostSpreads& host) {
  return spread_of(d, regime, normal(uncertainty().host), false, host);
}

HostSpreads host_spreads(const StepBreakdown& decode, const StepBreakdown& prefill, const StepBreakdown& other,
                         Seconds front_end, Seconds ttft) {
  const auto of = [](const StepBreakdown& step, double factor) {
    return step.host.at(factor) + step.drafting.at(factor);
  };
  const Seconds wait = std::max(Seconds(0), ttft - front_end - prefill.time);
  const auto until_first = [&](double factor) {
    const Seconds waits = other.time > Seconds(0) ? wait * (of(other, factor) / of(other, 1)) : wait;
    return front_end * factor + of(prefill, factor) + waits;
  };
  const double slower = std::exp(kNinetyPercent * uncertainty().host_costs);
  const auto spread = [&](const auto& time) -> LogSpread {
    if (time(1.0) <= Seconds(0)) return {};
    return {std::log(time(1 / slower) / time(1.0)), std::log(time(slower) / time(1.0))};
  };
  return {spread([&](double factor) { return of(decode, factor); }), spread(until_first)};
}

HostSpreads widest_host_spreads() {
  const double most = kNinetyPercent * uncertainty().host_costs;
  return {{-most, most}, {-most, most}};
}

LogSpread power_spread(const Deployment& d) {
  return d.fidelity == Fidelity::kIdeal ? LogSpread{} : uncertainty().power;
}

bool of_another_vendor(const Deployment& d) {
  if (d.carried_over_from().empty() || d.roofline() != nullptr) return false;
  const std::string first = split(d.carried_over_from(), ',').front();  // those of other formats may follow
  const ConfigTree measured = load_named("hardware", first, SourceLocation{"hardware", 0, 0});
  const Architecture from = parse_gpu_spec(ConfigReader(measured, "a GPU")).architecture;
  const auto amd = [](Architecture a) { return traits_of(a).matrix_units == MatrixUnits::kMfma; };
  return amd(from) != amd(d.gpu.architecture);
}

}  // namespace roofcast
