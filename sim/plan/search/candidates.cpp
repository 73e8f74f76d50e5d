// The points of a plan's space as deployments, and as pairs of them.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <span>

#include <fmt/format.h>

#include "base/config_library.h"
#include "base/text.h"
#include "sim/model/sharding.h"
#include "sim/plan/check_samples.h"
#include "sim/plan/power.h"
#include "sim/plan/prices.h"
#include "sim/plan/search/condition.h"
#include "sim/plan/search/instance_link.h"
#include "sim/plan/search/plan_spec.h"
#include "sim/plan/search/spares.h"
#include "sim/plan/support.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

std::string precision_of(const Deployment& d) {
  std::string out(name_of(d.precision.weights));
  if (!d.precision.recipe.empty()) out = d.precision.recipe;
  return out + ", " + std::string(name_of(d.precision.kv_cache)) + " KV";
}

/// Whether a request of mean length fits: all of its tokens, or those that a prefill worker keeps.
bool holds_one(const Scenario& s, bool prefill_only) {
  if (load_kind(*s.workload) == LoadKind::kPace) return true;
  const double tokens = s.workload->prompt_tokens.mean() + (prefill_only ? 0.0 : s.workload->output_tokens.mean());
  return s.deployment->memory.max_context(s.deployment->engine.block_size) >= tokens;
}

template <class T>
bool among(const std::vector<T>& allowed, const T& value) {
  return allowed.empty() || std::find(allowed.begin(), allowed.end(), value) != allowed.end();
}

/// Position on each axis as text, without the axes in `without`, or with only those in `within`.
std::string positions(const SweepSpec& space, std::uint64_t point, std::span<const std::string_view> without,
                      std::span<const std::string_view> within = {}) {
  std::string out;
  for (std::size_t a = space.axes.size(); a-- > 0;) {  // the last axis runs fastest
    const std::uint64_t size = space.axes[a].values.size(), at = point % size;
    point /= size;
    const auto named = [&](std::span<const std::string_view> names) {
      return std::find(names.begin(), names.end(), space.axes[a].keys.front()) != names.end();
    };
    if (!named(without) && (within.empty() || named(within))) out += std::to_string(at) + ".";
  }
  return out;
}

constexpr std::array<std::string_view, 1> kNoPrefillKey{"engine.max_num_seqs"},
    kNoDecodeKey{"engine.max_num_batched_tokens"};
/// Keys that both workers of a pair share.
constexpr std::array<std::string_view, 5> kCommon{"engine", "precision", "precision.weights", "precision.kv_cache",
                                                  "speculation"};

/// Whether an axis varies this setting and has this value.
bool varies_to(const SweepSpec& space, std::string_view key, std::string_view value) {
  return std::any_of(space.axes.begin(), space.axes.end(), [&](const SweepAxis& axis) {
    return axis.keys.front() == key && std::any_of(axis.values.begin(), axis.values.end(), [&](const auto& values) {
             return values.front() && values.front()->scalar == value;
           });
  });
}

/// Whether `location` lies in `node`.
bool holds(const ConfigTree& node, const SourceLocation& location) {
  const auto same = [&](const SourceLocation& m) {
    return m.line == location.line && m.column == location.column && m.path == location.path.str();
  };
  if (!node) return false;
  if (same(node->location)) return true;
  return std::any_of(node->items.begin(), node->items.end(), [&](const auto& item) { return holds(item, location); }) ||
         std::any_of(node->entries.begin(), node->entries.end(),
                     [&](const auto& entry) { return same(entry.key_location) || holds(entry.value, location); });
}

class Reader {
 public:
  Reader(const PlanSpec& plan, Fidelity fidelity)
      : plan_(plan), fidelity_(fidelity), has_no_overlap_(varies_to(plan.space, "engine.expert_overlap", "none")) {}

  Candidates read() {
    out_.considered = static_cast<std::uint64_t>(plan_.space.grid_points());
    for (std::uint64_t i = 0; i < out_.considered; ++i) read_point(i);
    refuse_mistakes();
    note_unpriced();
    const std::uint64_t wrong = out_.unsplittable + out_.mistaken;
    if (wrong == out_.considered && !first_error_.empty()) throw ConfigError(first_error_);
    const std::uint64_t left_out = wrong + out_.beyond_gpus + out_.unsupported + out_.unpriced + out_.unpowered;
    if (!out_.notes.empty() && left_out == out_.considered) throw ConfigError(out_.notes.front());
    if (matching_ == 0 && (plan_.only_weights || plan_.only_activations || plan_.only_kv_cache))
      throw ConfigError(plan_.space.scenario->location, "no point of the search has the requested formats");
    pair_up();
    return std::move(out_);
  }

 private:
  void read_point(std::uint64_t i) {
    Candidate c{.index = i, .point = i, .scenario = {}, .gpu = {}, .precision = {}, .most_gpus = plan_.max_gpus};
    try {
      c.scenario = read_scenario(point_scenario(plan_.space, i), fidelity_, specs_, LoadIs::kVaried);
    } catch (const CannotRun& error) {
      ++out_.unsupported;
      return note(error.what());
    } catch (const NoOffer& error) {
      return take_unpriced(i, error.what());
    } catch (const ConfigError& error) {
      if (first_error_.empty()) first_error_ = error.what();
      const bool split = dynamic_cast<const CannotSplit*>(&error) == nullptr;
      ++(split ? out_.mistaken : out_.unsplittable);
      if (split) errors_.emplace_back(i, error);
      return;
    }
    if (!c.scenario.workload) throw ConfigError(plan_.space.scenario->location, "a plan needs a 'workload'");
    if (c.disaggregated()) {
      throw ConfigError(plan_.space.scenario->location,
                        "a plan finds prefill workers itself: 'modes: [disaggregated]' in place of 'disaggregation'");
    }
    refuse_gaps_of_clients(*c.scenario.workload);
    take_objectives_of_workload(c.scenario);
    apply_goodput(c.scenario);
    c.gpu = c.scenario.deployment->gpu.name;
    if (!has_asked_formats(c.scenario.deployment->precision)) return;
    const bool needs_price = plan_.goal == PlanGoal::kCost || plan_.max_cost.value > 0;
    if (needs_price && c.scenario.deployment->offers.empty()) {
      ++out_.unpriced;
      const int gpus = c.scenario.deployment->sharding.gpus();
      return note(fmt::format("{}{} is left out: {}; {} gives one", c.gpu,
                              gpus > 1 ? fmt::format(", {} at once,", gpus) : "",
                              price_line(*c.scenario.deployment, nullptr),
                              !shipped_name("hardware", c.gpu).empty()
                                  ? fmt::format("--price TIER or 'gpus: [{{name: {}, price: 2 USD/h}}]'", c.gpu)
                                  : "'price: 2 USD/h' in its entry of 'gpus'"));
    }
    if (plan_.max_power.value > 0 && !power_known(c.scenario.deployment->gpu)) {
      ++out_.unpowered;
      return note(fmt::format("{} is left out: its power is not known, and 'max_power' limits it; {} gives one", c.gpu,
                              !shipped_name("hardware", c.gpu).empty()
                                  ? fmt::format("'gpus: [{{name: {}, board_power: 1 kW, idle_power: 100 W}}]'", c.gpu)
                                  : "'board_power: 1 kW, idle_power: 100 W' in its entry of 'gpus'"));
    }
    if (idle_overlap(*c.scenario.deployment)) {
      ++out_.unsupported;
      return note(
          "expert_overlap does nothing with attention_dp 1 or without an all_to_all exchange: those points are the "
          "same as with none, and left out");
    }
    ++matching_;
    out_.kind = load_kind(*c.scenario.workload);
    c.precision = precision_of(*c.scenario.deployment);
    c.most_of_kind = plan_.max_gpus;
    if (plan_.max_cost.value > 0) c.most_usd_per_hour = plan_.max_cost.value;
    for (const auto& [gpu, count] : plan_.available) {
      if (gpu == c.gpu) c.most_of_kind = std::min(c.most_of_kind, count);
    }
    take_failures(plan_, c);
    sort_in(std::move(c));
  }

  /// Whether the overlap has no effect, and the space has the same point with `expert_overlap: none`.
  bool idle_overlap(const Deployment& d) const {
    return has_no_overlap_ && d.engine.expert_overlap != ExpertOverlap::kNone &&
           (d.sharding.attention_dp == 1 || d.engine.expert_exchange != ExpertExchange::kAllToAll);
  }

  /// Uses the objectives of a named workload if the plan has none.
  static void take_objectives_of_workload(Scenario& s) {
    const auto of_all = [](const Objective& o) { return o.client < 0; };
    if (!s.workload->objectives || std::any_of(s.objectives.begin(), s.objectives.end(), of_all)) return;
    std::vector<Objective> objectives = parse_objectives(ConfigReader(s.workload->objectives, "objectives"));
    objectives.insert(objectives.end(), s.objectives.begin(), s.objectives.end());
    s.set_objectives(std::move(objectives));
  }

  /// With a goodput, objectives apply to single requests.
  void apply_goodput(Scenario& s) const {
    s.goodput = plan_.goodput;
    const SourceLocation& location = plan_.space.scenario->location;
    if (s.goodput > 0 && s.objectives.empty())
      throw ConfigError(location, "'goodput' needs 'objectives': the limits that a request must meet");
    for (const Objective& o : s.objectives) {
      if (s.goodput > 0 && o.percentile < 0)
        throw ConfigError(
            location, fmt::format("'goodput' limits each request: '{}' in place of '{}'", name_of(o.metric), o.name()));
      if (s.goodput > 0 && o.metric == LatencyMetric::kItl)
        throw ConfigError(location,
                          "'goodput' judges a request by its TTFT, TPOT and E2E latency, not by single gaps: 'tpot' in "
                          "place of 'itl'");
    }
  }

  /// Stores the candidate as an aggregated deployment, a prefill worker and a decode worker.
  void sort_in(Candidate c) {
    const Deployment& d = *c.scenario.deployment;
    const auto& infeasible = d.memory.infeasible;
    if (infeasible || !holds_one(c.scenario, true)) return refuse(c);
    const bool whole = holds_one(c.scenario, false);
    if (plan_.disaggregated && plan_.prefill.allows(d))
      add_worker(prefill_, positions(plan_.space, c.point, kNoPrefillKey), c,
                 [](const EngineSpec& e) { return e.max_num_seqs; });
    if (!whole) return refuse(c);
    if (plan_.disaggregated && plan_.decode.allows(d))
      add_worker(decode_, positions(plan_.space, c.point, kNoDecodeKey), c,
                 [](const EngineSpec& e) { return e.max_num_batched_tokens; });
    if (most_replicas(plan_, c) < 1) {
      Candidate free = c;
      free.most_usd_per_hour = std::numeric_limits<double>::infinity();
      if (most_replicas(plan_, free) >= 1 && plan_.aggregated) return refuse_price(c);
      if (c.most_replicas(0) >= 1 && out_.first_reason.empty()) out_.first_reason = no_room_for_spares(c);
      ++(c.most_replicas(0) >= 1 && highest_availability(c) < plan_.availability ? out_.below_availability
                                                                                 : out_.beyond_gpus);
    } else if (plan_.aggregated) {
      out_.kept.push_back(std::move(c));
    }
  }

  /// Throws for a value of an axis that is wrong in every point, because that is a mistake. Errors at only some points
  /// become notes.
  void refuse_mistakes() {
    std::map<std::pair<std::size_t, std::uint64_t>, double> wrong;  // points by axis and position on it
    for (const auto& [point, error] : errors_) {
      std::uint64_t rest = point;
      for (std::size_t a = plan_.space.axes.size(); a-- > 0;) {  // the last runs fastest
        const auto& values = plan_.space.axes[a].values;
        const std::uint64_t at = rest % values.size();
        rest /= values.size();
        if (!holds(values[at].front(), error.location())) continue;
        const double all = plan_.space.grid_points() / static_cast<double>(values.size());
        if (++wrong[{a, at}] == all) throw error;
      }
    }
    for (const auto& [point, error] : errors_) note("left out: " + error.message());
  }

  /// GPUs without a price at the tier that is asked for, in one line.
  void note_unpriced() {
    if (unpriced_gpus_.empty()) return;
    note(unpriced_gpus_.size() == 1 ? "left out: " + first_unpriced_
                                    : fmt::format("left out, for want of a price: {}; the first: {}",
                                                  join(unpriced_gpus_, ", "), first_unpriced_));
  }
  void take_unpriced(std::uint64_t point, const std::string& error) {
    ++out_.unpriced;
    if (first_unpriced_.empty()) first_unpriced_ = error;
    const ConfigTree gpu = value_at(point_scenario(plan_.space, point), "gpu"),
                     name = gpu ? value_at(gpu, "name") : nullptr;
    const std::string word = name ? name->scalar : gpu ? gpu->scalar : "";
    if (std::find(unpriced_gpus_.begin(), unpriced_gpus_.end(), word) == unpriced_gpus_.end())
      unpriced_gpus_.push_back(word);
  }

  void note(std::string text) {
    if (std::find(out_.notes.begin(), out_.notes.end(), text) == out_.notes.end())
      out_.notes.push_back(std::move(text));
  }

  bool has_asked_formats(const Precision& p) const {
    return (!plan_.only_weights || p.weights == plan_.only.weights) &&
           (!plan_.only_activations || p.activations == plan_.only.activations) &&
           (!plan_.only_kv_cache || p.kv_cache == plan_.only.kv_cache);
  }

  /// Reports the candidate with the most memory, which is the nearest to fitting.
  void refuse(const Candidate& c) {
    ++out_.too_large;
    const Deployment& d = *c.scenario.deployment;
    const Bytes memory = d.gpu.memory_capacity * static_cast<double>(c.gpus());
    if (memory <= most_refused_ || (most_refused_ == Bytes(0) && !out_.first_reason.empty())) return;
    most_refused_ = memory;
    const std::string where = fmt::format("{} x {} ({})", c.gpus(), c.gpu, layout_of(d.sharding));
    out_.first_reason = d.memory.infeasible
                            ? fmt::format("{}: {}", where, d.memory.infeasible->reason)
                            : fmt::format("a request of the mean length does not fit the KV cache of {}", where);
  }

  /// Availability with unlimited replicas: the fraction of the time in which some zone is up.
  double highest_availability(const Candidate& c) const {
    return plan_.zones ? 1 - std::pow(1 - c.zone_up, plan_.zones->count) : 1;
  }
  std::string no_room_for_spares(const Candidate& c) const {
    const double highest = highest_availability(c);
    if (highest >= plan_.availability) return "no GPUs are left for a replica in addition to its spares";
    const int count = plan_.zones->count;
    const std::string zones =
        count == 1 ? fmt::format("1 zone up {:.5g} % of the time", 100 * c.zone_up)
                   : fmt::format("{} zones, one of which is up {:.5g} % of the time,", count, 100 * highest);
    return fmt::format("{} cannot reach availability {:.5g} %; add zones (count)", zones, 100 * plan_.availability);
  }

  /// One replica costs more than `max_cost`.
  void refuse_price(const Candidate& c) {
    ++out_.too_dear;
    const int replicas = 1 + spares_of(plan_, c, 1);
    const double usd = c.usd_per_hour({replicas, 0});
    if (usd >= least_usd_) return;
    least_usd_ = usd;
    out_.cost_reason =
        fmt::format("the cheapest {} ({} x {}, {}) cost{} {:.2f} USD/h, more than max_cost ({:.2f} USD/h)",
                    replicas == 1 ? "replica" : fmt::format("{} replicas", replicas), replicas * c.gpus(), c.gpu,
                    layout_of(c.scenario.deployment->sharding), replicas == 1 ? "s" : "", usd, plan_.max_cost.value);
  }

  template <class Setting>
  void add_worker(std::map<std::string, Candidate>& workers, const std::string& key, const Candidate& c,
                  Setting setting) {
    const auto [at, added] = workers.emplace(key, c);
    if (!added && setting(c.scenario.deployment->engine) > setting(at->second.scenario.deployment->engine))
      at->second = c;
  }

  /// Transfer bandwidth per GPU: the plan's; else 0, which means each GPU's NIC; or, if the bill decides and a part of
  /// a host is rented, a share of the instance's link.
  BytesPerSecond link_of(const Candidate& prefill, const Candidate& decode) const {
    BytesPerSecond link = plan_.transfer_bandwidth;
    if (link > BytesPerSecond(0) || plan_.goal != PlanGoal::kCost) return link;
    for (const Candidate* role : {&prefill, &decode}) {
      const Deployment& d = *role->scenario.deployment;
      const PriceQuote* quote = cheapest_bill(d, 1).decode.quote;
      if (quote == nullptr || quote->tier == "owned" || quote->tier == "given" ||
          quote->host >= d.gpu.node.gpus_per_node)
        continue;
      const BytesPerSecond each = kLinkOfPartialHost / static_cast<double>(quote->host);
      link = link > BytesPerSecond(0) ? std::min(link, each) : each;
    }
    return link;
  }

  void pair_up() {
    std::uint64_t index = out_.considered;
    for (const auto& [prefill_key, p] : prefill_) {
      for (const auto& [decode_key, d] : decode_) {
        if (positions(plan_.space, p.point, {}, kCommon) != positions(plan_.space, d.point, {}, kCommon)) continue;
        if (p.scenario.deployment->precision.kv_cache != d.scenario.deployment->precision.kv_cache) continue;
        Candidate pair = d;
        pair.index = index++;
        const Seconds latency = plan_.transfer_latency.value_or(d.scenario.deployment->engine.handover_time);
        pair.scenario.serving.disaggregation = Disaggregation{
            .prefill = p.scenario.deployment, .prefill_replicas = 1, .bandwidth = link_of(p, d), .latency = latency};
        check_samples(pair.scenario, *pair.scenario.workload);
        pair.most_prefill_gpus = p.most_of_kind;
        if (p.gpu != d.gpu) pair.gpu = p.gpu + " > " + d.gpu;
        if (!pair.affords({1, 1}, plan_.spare_replicas)) continue;
        out_.kept.push_back(std::move(pair));
        ++out_.pairs;
      }
    }
  }

  const PlanSpec& plan_;
  Fidelity fidelity_;
  bool has_no_overlap_;  ///< each point with an overlap also exists without
  SpecCache specs_;
  Candidates out_;
  std::string first_error_;
  std::vector<std::pair<std::uint64_t, ConfigError>> errors_;   ///< points that are wrong, not only unsplittable
  std::uint64_t matching_ = 0;                                  ///< points that were read and match the plan
  std::vector<std::string> unpriced_gpus_;                      ///< without a price at the tier that is asked for
  std::string first_unpriced_;                                  ///< why the first of them has none
  Bytes most_refused_{};                                        ///< memory of the candidate of first_reason
  double least_usd_ = std::numeric_limits<double>::infinity();  ///< of one replica that is too dear
  std::map<std::string, Candidate> prefill_, decode_;
};

}  // namespace

bool RoleSpace::allows(const Deployment& d) const {
  return among(gpus, d.gpu.name) && among(tp, d.sharding.tp) && among(pp, d.sharding.pp) && among(ep, d.sharding.ep) &&
         among(attention_dp, d.sharding.attention_dp) && among(max_num_seqs, d.engine.max_num_seqs) &&
         among(max_num_batched_tokens, d.engine.max_num_batched_tokens);
}
bool RoleSpace::allows_count(int count) const { return among(workers, count); }

int Candidate::gpus() const { return scenario.deployment->sharding.gpus(); }
int Candidate::prefill_gpus() const { return disaggregated() ? prefill().sharding.gpus() : 0; }

Bill Candidate::bill(const Fleet& fleet) const {
  const FleetSpan span{fleet.replicas, fleet.prefill_replicas};
  return bill({&span, 1});
}
Bill Candidate::bill(std::span<const FleetSpan> spans) const {
  return cheapest_bill(*scenario.deployment, disaggregated() ? &prefill() : nullptr, spans);
}

int Candidate::most_replicas(int spare) const {
  int most = std::min(most_gpus, most_of_kind) / gpus();
  if (most > 0 && usd_per_hour({most, 0}) > most_usd_per_hour * (1 + 1e-9)) {
    int good = 0;  // whole hosts: cost is a staircase
    for (int bad = most; bad - good > 1;) {
      const int middle = good + (bad - good) / 2;
      (usd_per_hour({middle, 0}) > most_usd_per_hour * (1 + 1e-9) ? bad : good) = middle;
    }
    most = good;
  }
  return most - spare;
}

int Candidate::most_prefill_workers(int spare) const {
  return std::min(most_gpus, most_prefill_gpus) / std::max(prefill_gpus(), 1) - spare;
}

bool Candidate::affords(const Fleet& fleet, int spare) const {
  const int decoding = gpus() * (fleet.replicas + spare),
            prefilling = disaggregated() ? prefill_gpus() * (fleet.prefill_replicas + spare) : 0;
  if (decoding + prefilling > most_gpus || decoding > most_of_kind) return false;
  const Fleet all{fleet.replicas + spare, disaggregated() ? fleet.prefill_replicas + spare : 0};
  if (usd_per_hour(all) > most_usd_per_hour * (1 + 1e-9)) return false;
  if (!disaggregated()) return true;
  const bool one_kind = prefill().gpu.name == scenario.deployment->gpu.name;
  return prefilling + (one_kind ? decoding : 0) <= most_prefill_gpus;
}

std::string layout_of(const Sharding& s) {
  std::string out = fmt::format("tp {}", s.tp);
  for (const auto& [name, value] : {std::pair{"pp", s.pp}, {"dcp", s.dcp}, {"adp", s.attention_dp}, {"ep", s.ep}}) {
    if (value > 1) out += fmt::format(" {} {}", name, value);
  }
  return out;
}

Candidates read_candidates(const PlanSpec& plan, Fidelity fidelity) { return Reader(plan, fidelity).read(); }

}  // namespace roofcast
