#include "sim/serve/fleet.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace roofcast {
namespace {

/// A local disk or a fast object store; a NIC can be far quicker, a network disk far slower.
constexpr BytesPerSecond kWeightsBandwidth{2e9};

FailureSpec parse_failures(ConfigReader in, int replicas) {
  static constexpr std::array<std::string_view, 2> kRequests{"requeue", "fail"};
  FailureSpec spec;
  spec.mark = in.mark_of("mtbf");
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

FleetSpec parse_fleet(std::optional<ConfigReader> autoscaling, std::optional<ConfigReader> failures, Bytes weights,
                      Seconds engine_start, int replicas) {
  FleetSpec spec;
  spec.cold_start = cold_start(weights, engine_start);
  if (autoscaling) {
    spec.autoscaling = parse_autoscaling(*autoscaling);
    const BytesPerSecond bandwidth = autoscaling->bandwidth("weights_bandwidth", kWeightsBandwidth);
    if (bandwidth <= BytesPerSecond(0))
      autoscaling->fail("weights_bandwidth", "'weights_bandwidth' must be more than 0");
    spec.cold_start = autoscaling->time("cold_start", weights / bandwidth + engine_start);
    autoscaling->finish();
  }
  if (failures)
    spec.failures = parse_failures(std::move(*failures), spec.autoscaling ? spec.autoscaling->max : replicas);
  return spec;
}

FleetStates::FleetStates(const FleetSpec& spec, int replicas, int begin, int prefill, std::uint64_t seed)
    : spec_(spec), prefill_(prefill) {
  if (spec.failures && spec.failures->mtbf) failure_rate_ = 1 / spec.failures->mtbf->base();
  for (int i = 0; i < replicas; ++i) {
    members_.push_back({.state = i < begin ? ReplicaState::kActive : ReplicaState::kOff,
                        .ready = {},
                        .failures = Random(seed).fork(2000 + static_cast<std::uint64_t>(i))});
    ++counts_[static_cast<std::size_t>(members_.back().state)];
  }
  note(SimTime());
}

int FleetStates::paid() const {
  return count(ReplicaState::kStarting) + count(ReplicaState::kActive) + count(ReplicaState::kDraining);
}

/// What a fleet that is not scaled costs is known without.
void FleetStates::note(SimTime now) {
  if (!spec_.autoscaling) return;
  if (!changes_.empty() && changes_.back().at == now) {
    changes_.back().paid = paid();
  } else {
    changes_.push_back({now, paid()});
  }
}

void FleetStates::set(int i, ReplicaState state, SimTime now) {
  Member& m = members_[static_cast<std::size_t>(i)];
  --counts_[static_cast<std::size_t>(m.state)];
  ++counts_[static_cast<std::size_t>(state)];
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
  return {.at = now.seconds(),
          .serving = count(ReplicaState::kActive) + count(ReplicaState::kDraining),
          .starting = count(ReplicaState::kStarting),
          .down = count(ReplicaState::kDown)};
}

double FleetStates::paid_seconds(SimTime from, SimTime to) const {
  double sum = 0;
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    const SimTime begin = std::max(changes_[i].at, from);
    const SimTime end = i + 1 < changes_.size() ? std::min(changes_[i + 1].at, to) : to;
    if (end > begin) sum += changes_[i].paid * (end - begin).seconds().base();
  }
  return sum;
}

std::vector<double> FleetStates::seconds_paid_for(SimTime from, SimTime to) const {
  std::vector<double> out(static_cast<std::size_t>(most_paid()) + 1);
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    const SimTime begin = std::max(changes_[i].at, from);
    const SimTime end = i + 1 < changes_.size() ? std::min(changes_[i + 1].at, to) : to;
    if (end > begin) out[static_cast<std::size_t>(changes_[i].paid)] += (end - begin).seconds().base();
  }
  return out;
}

int FleetStates::most_paid() const {
  int most = 0;
  for (const Change& c : changes_) most = std::max(most, c.paid);
  return most;
}

}  // namespace roofcast
