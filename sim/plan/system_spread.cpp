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
  Deviation host, launches, release, another_vendor;
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
  for (const auto& [key, to] : {std::pair{"host", &u.host}, {"launches", &u.launches}, {"release", &u.release}}) {
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

/// Hosts launch at different speeds, which affects a step in proportion to its launch time.
SystemSpread launching_spread(double share) {
  const Uncertainty::Deviation& whole = uncertainty().launches;
  return normal(Uncertainty::Deviation{share * whole.ttft, share * whole.tpot});
}

/// A time of which the host takes a share, if its costs are off by a lognormal factor.
LogSpread host_spread(double share) {
  const double factor = std::exp(kNinetyPercent * uncertainty().host_costs);
  return {std::log1p(share * (1 / factor - 1)), std::log1p(share * (factor - 1))};
}

/// `launch`: what is not known of it; `assumed`: nor is the release, which is the newest.
SystemSpread spread_of(const Deployment& d, LoadRegime regime, const SystemSpread& launch, bool assumed,
                       const HostShares& shares) {
  if (!has_spread(d, regime)) return {};
  const Uncertainty& u = uncertainty();
  SystemSpread spread = u.regimes[static_cast<std::size_t>(regime)];
  const bool validated = is_validated(d);
  if (!validated) widen(spread, launch);
  const bool kernels = d.roofline() == nullptr;
  if (kernels) widen(spread, launching_spread(shares.launching));
  // The spreads of queues come from whole errors, those of the host included.
  const bool queues = regime == LoadRegime::kSaturated || regime == LoadRegime::kQueued;
  if (kernels && !queues) widen(spread, {host_spread(shares.first), host_spread(shares.step)});
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

SystemSpread system_spread(const Deployment& d, LoadRegime regime, const HostShares& shares) {
  return spread_of(d, regime, uncertainty().recipe, d.engine.version_assumed, shares);
}
/// The plan says which release to launch.
SystemSpread planned_spread(const Deployment& d, LoadRegime regime, const HostShares& shares) {
  return spread_of(d, regime, normal(uncertainty().host), false, shares);
}

/// Where the host launches kernel by kernel, its pace covers the whole step.
HostShares host_shares(const StepBreakdown& decode, const StepBreakdown& prefill, const StepBreakdown& other,
                       Seconds front_end, Seconds ttft) {
  const auto share = [](Seconds host, Seconds time) { return time > Seconds(0) ? std::min(1.0, host / time) : 0.0; };
  const double launching = launched_share(decode), step = share(decode.host_time, decode.time);
  const Seconds own = front_end + prefill.time, wait = std::max(Seconds(0), ttft - own);
  const Seconds waited = wait * share(other.host_time, other.time);
  return {launching, launching > 0 ? 0.0 : step, share(front_end + prefill.host_time + waited, own + wait)};
}

double launched_share(const StepBreakdown& step) {
  return step.time > Seconds(0) ? std::min(1.0, step.launched / step.time) : 0.0;
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
