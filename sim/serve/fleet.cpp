#include "sim/serve/fleet.h"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

namespace roofcast {
namespace {

/// A local disk or a fast object store. NICs can be much faster, network disks much slower.
constexpr BytesPerSecond kWeightsBandwidth{2e9};

FailureSpec parse_failures(ConfigReader in, int replicas) {
  static constexpr std::array<std::string_view, 2> kRequests{"requeue", "fail"};
  FailureSpec spec;
  spec.location = in.location_of("mtbf");
  if (in.has("mtbf")) {
    spec.mtbf = in.time("mtbf");
    if (*spec.mtbf < Seconds(1)) in.fail("mtbf", "'mtbf' must be at least 1 s");
  }
  in.ignore("mtbf");
  spec.repair = in.time("repair", spec.repair);
  spec.requeue = in.choice("requests", kRequests, 0) == 0;
  for (const ConfigTree& item : in.list("events")) {
    ConfigReader event(item, "a failure");
    spec.events.push_back(
        {event.time("at"), static_cast<int>(event.integer("replica", 0, {0, static_cast<double>(replicas - 1)}))});
    event.finish();
  }
  if (!spec.mtbf && spec.events.empty()) in.fail("", "failures need 'mtbf' or 'events'");
  in.finish();
  return spec;
}

}  // namespace

Seconds cold_start(Bytes weights, Seconds engine_start) { return weights / kWeightsBandwidth + engine_start; }

namespace {

struct Scaling {
  std::optional<AutoscalingSpec> spec;
  Seconds cold_start{};
  int most = 1;  ///< replicas
};

Scaling parse_scaling(FleetPart part) {
  Scaling out{.spec = std::nullopt, .cold_start = cold_start(part.weights, part.engine_start), .most = part.replicas};
  if (!part.autoscaling) return out;
  ConfigReader& in = *part.autoscaling;
  out.spec = parse_autoscaling(in);
  const BytesPerSecond bandwidth = in.bandwidth("weights_bandwidth", kWeightsBandwidth);
  if (bandwidth <= BytesPerSecond(0)) in.fail("weights_bandwidth", "'weights_bandwidth' must be more than 0");
  out.cold_start = in.time("cold_start", part.weights / bandwidth + part.engine_start);
  in.finish();
  out.most = out.spec->max;
  return out;
}

}  // namespace

FleetSpec parse_fleet(FleetPart decode, std::optional<FleetPart> prefill, std::optional<ConfigReader> failures) {
  FleetSpec spec;
  const Scaling scaling = parse_scaling(std::move(decode));
  spec.autoscaling = scaling.spec, spec.cold_start = scaling.cold_start;
  int most = scaling.most;
  if (prefill) {
    const Scaling other = parse_scaling(*std::move(prefill));
    spec.prefill_autoscaling = other.spec, spec.prefill_cold_start = other.cold_start;
    most += other.most;
  }
  if (failures) spec.failures = parse_failures(*std::move(failures), most);
  return spec;
}

FleetStates::FleetStates(const FleetSpec& spec, Kind prefill, Kind decode, std::uint64_t seed)
    : spec_(spec), prefill_(prefill.replicas) {
  if (spec.failures && spec.failures->mtbf) failure_rate_ = 1 / spec.failures->mtbf->base();
  for (int i = 0; i < prefill.replicas + decode.replicas; ++i) {
    const bool serves = i < prefill_ ? i < prefill.serving : i - prefill_ < decode.serving;
    members_.push_back({.state = serves ? ReplicaState::kActive : ReplicaState::kOff,
                        .ready = {},
                        .failures = Random(seed).fork(2000 + static_cast<std::uint64_t>(i))});
    ++counts_[i < prefill_][static_cast<std::size_t>(members_.back().state)];
  }
  note(SimTime());
}

int FleetStates::paid(bool prefill) const {
  return count(ReplicaState::kStarting, prefill) + count(ReplicaState::kActive, prefill) +
         count(ReplicaState::kDraining, prefill);
}

/// Records the paid fleet. Not needed without autoscaling or failures.
void FleetStates::note(SimTime now) {
  if (!spec_.scaled()) return;
  if (changes_.empty() || changes_.back().at != now) changes_.push_back({now, {}});
  changes_.back().paid = {paid(false), paid(true)};
}

void FleetStates::set(int i, ReplicaState state, SimTime now) {
  Member& m = members_[static_cast<std::size_t>(i)];
  std::array<int, 5>& counts = counts_[i < prefill_];
  --counts[static_cast<std::size_t>(m.state)];
  ++counts[static_cast<std::size_t>(state)];
  m.state = state;
  const Seconds start = i < prefill_ ? spec_.prefill_cold_start.value_or(spec_.cold_start) : spec_.cold_start;
  if (state == ReplicaState::kStarting) m.ready = now + SimTime::of(start);
  note(now);
}

std::optional<SimTime> FleetStates::next_failure(int i, SimTime now) {
  if (failure_rate_ <= 0) return std::nullopt;
  const double wait = members_[static_cast<std::size_t>(i)].failures.exponential(1 / failure_rate_);
  if (now.seconds().base() + wait >= SimTime::kLongest / 2) return std::nullopt;
  return now + SimTime::of(Seconds(wait));
}

FleetRecord FleetStates::record(SimTime now) const {
  const auto serving = [&](bool prefill) {
    return count(ReplicaState::kActive, prefill) + count(ReplicaState::kDraining, prefill);
  };
  return {.at = now.seconds(),
          .serving = serving(false) + serving(true),
          .starting = count(ReplicaState::kStarting),
          .down = count(ReplicaState::kDown),
          .prefill = serving(true)};
}

double FleetStates::paid_seconds(SimTime from, SimTime to, bool prefill) const {
  double sum = 0;
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    const SimTime begin = std::max(changes_[i].at, from);
    const SimTime end = i + 1 < changes_.size() ? std::min(changes_[i + 1].at, to) : to;
    if (end > begin) sum += changes_[i].paid[prefill] * (end - begin).seconds().base();
  }
  return sum;
}

std::vector<PaidFleet> FleetStates::paid_fleets(SimTime from, SimTime to) const {
  std::map<std::pair<int, int>, double> seconds;
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    const SimTime begin = std::max(changes_[i].at, from);
    const SimTime end = i + 1 < changes_.size() ? std::min(changes_[i + 1].at, to) : to;
    if (end > begin) seconds[{changes_[i].paid[false], changes_[i].paid[true]}] += (end - begin).seconds().base();
  }
  std::vector<PaidFleet> out;
  for (const auto& [fleet, time] : seconds) out.push_back({fleet.first, fleet.second, time});
  return out;
}

int FleetStates::most_paid(bool prefill) const {
  int most = 0;
  for (const Change& c : changes_) most = std::max(most, c.paid[prefill]);
  return most;
}

}  // namespace roofcast
