#include "sim/plan/measured/population_fit.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <Eigen/Dense>

#include "sim/plan/measured/serving_accuracy.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

constexpr CostOwner kEngine = CostOwner::kEngine, kFrontEnd = CostOwner::kFrontEnd, kHost = CostOwner::kHost;
constexpr std::array kCosts{
    PopulationCost{"step_time", &HostCosts::step_time, 250, 0.7, 0.4, kEngine},
    PopulationCost{"sequence_time", &HostCosts::sequence_time, 2, 0.7, 0.4, kEngine},
    PopulationCost{"scheduler_time", &HostCosts::scheduler_time, 1500, 0.5, 0.6, kEngine},
    PopulationCost{"scheduler_sequence_time", &HostCosts::scheduler_sequence_time, 20, 0.7, 0.6, kEngine},
    PopulationCost{"prefill_step_time", &HostCosts::prefill_step_time, 2000, 0.4, 0.3, kEngine},
    PopulationCost{"launch_time", &HostCosts::launch_time, 12, 0.5, 0.4, kEngine},
    PopulationCost{"rank_skew", &HostCosts::rank_skew, 4, 0.7, 0.4, kEngine},
    PopulationCost{"request_time", &HostCosts::request_time, 1000, 0.7, 0.4, kFrontEnd},
    PopulationCost{"request_latency", &HostCosts::request_latency, 6000, 0.7, 0.4, kFrontEnd},
    PopulationCost{"token_time", &HostCosts::token_time, 30, 0.6, 0.4, kFrontEnd},
    PopulationCost{"prompt_token_time", &HostCosts::prompt_token_time, 3, 0.6, 0.3, kFrontEnd},
    PopulationCost{"launch_pace", nullptr, 1, 0.01, 0.4, kHost},
};
constexpr std::size_t kCount = kCosts.size();
constexpr double kStep = 0.4;          ///< step of ln(cost) for a slope; large, because queues make the response rough
constexpr double kFurthest = 1.2;      ///< maximum distance of ln(cost) from where its slope was taken
const double kMost = std::log(2.0);    ///< errors beyond a factor of 2 weigh no more
constexpr double kPriorWeight = 0.02;  ///< weight of a squared departure relative to the error of one group

double value_of(const EngineSpec& engine, const PopulationCost& cost) {
  return cost.member == nullptr ? 1.0 / engine.launch_speed : (engine.host.*cost.member).in(kMicrosecond);
}
void set_value(EngineSpec& engine, const PopulationCost& cost, double value) {
  if (cost.member == nullptr)
    engine.launch_speed = 1.0 / value;
  else
    engine.host.*cost.member = Seconds(value * 1e-6);
}

const std::string& owner_of(const Membership& member, const PopulationCost& cost) {
  return member[static_cast<std::size_t>(cost.owner)];
}

/// The parts of an engine's spec that belong to the population.
struct HostSettings {
  HostCosts host;
  double launch_speed = 1;
};
HostSettings settings_of(const EngineSpec& engine) { return {engine.host, engine.launch_speed}; }

void set_host(MeasuredRun& run, const HostSettings& settings) {
  const auto set = [&](EngineSpec& engine) {
    engine.host = settings.host;
    engine.launch_speed = settings.launch_speed;
  };
  set(run.deployment->engine);
  if (!run.serving.disaggregation) return;
  auto prefill = std::make_shared<Deployment>(*run.serving.disaggregation->prefill);
  set(prefill->engine);
  run.serving.disaggregation->prefill = std::move(prefill);
}

std::string group_of(const MeasuredRun& run) {
  return run.group + " " + run.classes.version + " " + run.classes.harness;
}

bool owned_by(const std::string& member, CostOwner owner) {
  return member.starts_with(owner == kEngine ? "engine " : owner == kFrontEnd ? "front end " : "host ");
}

}  // namespace

std::span<const PopulationCost> population_costs() { return kCosts; }

Membership membership_of(const MeasuredRun& run) {
  const EngineSpec& engine = run.deployment->engine;
  const std::string front_end = engine.front_end.empty() ? engine.name : engine.front_end;
  return {"engine " + engine.name, engine.front_end == "none" ? "" : "front end " + front_end,
          "host " + run.classes.host};
}

bool in_population(const MeasuredRun& run) {
  return run.scored && run.note.empty() && run.deployment->engine.host.scheduler_time > Seconds(0);
}

void set_costs(MeasuredRun& run, const PopulationCosts& costs) {
  EngineSpec engine = run.deployment->engine;
  const Membership member = membership_of(run);
  for (std::size_t k = 0; k < kCount; ++k) {
    const auto at = costs.find(owner_of(member, kCosts[k]));
    if (at != costs.end()) set_value(engine, kCosts[k], at->second[k]);
  }
  set_host(run, settings_of(engine));
}

void PopulationFit::add(MeasuredRuns& runs, const CsvTable& table) {
  const std::size_t before = rows_.size();
  std::vector<EngineSpec> own(runs.runs.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    MeasuredRun& run = runs.runs[i];
    if (!in_population(run)) continue;
    own[i] = run.deployment->engine;
    const Membership member = membership_of(run);
    for (std::size_t k = 0; k < kCount; ++k) {
      const std::string& owner = owner_of(member, kCosts[k]);
      if (owner.empty()) continue;
      present_.try_emplace(owner, kCount, 0.0).first->second[k] = std::max(value_of(own[i], kCosts[k]), 1e-3);
    }
  }
  const auto predicted = [&] { return predict_all(runs, in_population); };
  const std::vector<RowPrediction> base = predicted();
  for (std::size_t i = 0; i < own.size(); ++i) {
    const MeasuredRun& run = runs.runs[i];
    if (!in_population(run) || !base[i].prediction) continue;
    for (const bool ttft : {true, false}) {
      const double measured = measured_value(table, i, ttft ? "ttft_ms" : "tpot_ms");
      const double now = ttft ? base[i].prediction->ttft_ms : base[i].prediction->tpot_ms;
      if (measured > 0 && now > 0)
        rows_.push_back({&run, membership_of(run), ttft, std::log(now / measured), std::vector<double>(kCount, 0.0)});
    }
  }
  for (std::size_t k = 0; k < kCount; ++k) {
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (!in_population(runs.runs[i])) continue;
      EngineSpec more = own[i];
      set_value(more, kCosts[k], value_of(more, kCosts[k]) * std::exp(kStep));
      set_host(runs.runs[i], settings_of(more));
    }
    const std::vector<RowPrediction> shifted = predicted();
    for (std::size_t r = before; r < rows_.size(); ++r) {
      Row& row = rows_[r];
      const auto& after = shifted[row.run->row].prediction;
      const double measured = measured_value(table, row.run->row, row.ttft ? "ttft_ms" : "tpot_ms");
      const double now = after ? (row.ttft ? after->ttft_ms : after->tpot_ms) : 0;
      if (now > 0) row.slopes[k] = (std::log(now / measured) - row.residual) / kStep;
    }
  }
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (in_population(runs.runs[i])) set_host(runs.runs[i], settings_of(own[i]));
  }
}

double PopulationFit::loss() const {
  std::map<std::string, std::pair<double, double>> groups;
  for (const Row& row : rows_) {
    auto& [sum, weight] = groups[group_of(*row.run)];
    sum += (row.ttft ? 1.0 : 2.0) * std::min(std::abs(row.residual), kMost);
    weight += row.ttft ? 1.0 : 2.0;
  }
  double total = 0;
  for (const auto& [name, sum] : groups) total += sum.first / sum.second;
  return groups.empty() ? 0 : total / static_cast<double>(groups.size());
}

/// Iteratively reweighted least squares. Unknowns: ln of every cost of every member, and of the population means.
PopulationCosts PopulationFit::fit(const std::function<bool(const MeasuredRun&)>& counts) const {
  std::map<std::string, std::size_t> first;  // of a member's unknowns
  for (const auto& [name, costs] : present_) first.emplace(name, kCount * first.size());
  const std::size_t means = kCount * first.size();
  const auto size = static_cast<Eigen::Index>(means + kCount);
  const auto index = [](std::size_t at) { return static_cast<Eigen::Index>(at); };
  std::map<std::string, double> sizes;
  for (const Row& row : rows_) {
    if (counts(*row.run)) sizes[group_of(*row.run)] += row.ttft ? 1.0 : 2.0;
  }
  Eigen::VectorXd start = Eigen::VectorXd::Zero(size);
  for (const auto& [name, at] : first) {
    for (std::size_t k = 0; k < kCount; ++k) {
      const double now = present_.at(name)[k];
      start(index(at + k)) = std::log(now > 0 ? now : kCosts[k].expected);
    }
  }
  for (std::size_t k = 0; k < kCount; ++k) start(index(means + k)) = std::log(kCosts[k].expected);
  Eigen::VectorXd x = start;
  for (int iteration = 0; iteration < 60; ++iteration) {
    Eigen::MatrixXd normal = Eigen::MatrixXd::Zero(size, size);
    Eigen::VectorXd right = Eigen::VectorXd::Zero(size);
    for (const Row& row : rows_) {
      if (!counts(*row.run)) continue;
      std::array<Eigen::Index, kCount> at{};
      std::array<double, kCount> slopes{};
      double constant = row.residual;  // of the linear model at ln(cost) = 0
      for (std::size_t k = 0; k < kCount; ++k) {
        const std::string& owner = owner_of(row.member, kCosts[k]);
        if (owner.empty()) continue;
        at[k] = index(first.at(owner) + k);
        slopes[k] = row.slopes[k];
        constant -= slopes[k] * start(at[k]);
      }
      double residual = constant;
      for (std::size_t k = 0; k < kCount; ++k) residual += slopes[k] * x(at[k]);
      const double off = std::max(std::abs(residual), 0.02);
      const double share = (row.ttft ? 1.0 : 2.0) / sizes.at(group_of(*row.run));
      const double weight = share / off * (off > kMost ? kMost / off : 1.0);
      for (std::size_t i = 0; i < kCount; ++i) {
        right(at[i]) -= weight * slopes[i] * constant;
        for (std::size_t k = 0; k < kCount; ++k) normal(at[i], at[k]) += weight * slopes[i] * slopes[k];
      }
    }
    for (std::size_t k = 0; k < kCount; ++k) {
      const Eigen::Index mean = index(means + k);
      const double prior = kPriorWeight / (kCosts[k].spread * kCosts[k].spread);
      normal(mean, mean) += prior;
      right(mean) += prior * std::log(kCosts[k].expected);
      const double tie = kPriorWeight / (kCosts[k].departure * kCosts[k].departure);
      for (const auto& [name, begin] : first) {
        const Eigen::Index one = index(begin + k);
        normal(one, one) += tie;
        if (!owned_by(name, kCosts[k].owner)) {
          right(one) += tie * start(one);
          continue;
        }
        normal(mean, mean) += tie;
        normal(one, mean) -= tie;
        normal(mean, one) -= tie;
      }
    }
    const Eigen::VectorXd solved = normal.ldlt().solve(right);
    const Eigen::VectorXd next = start + (solved - start).cwiseMin(kFurthest).cwiseMax(-kFurthest);
    const double moved = (next - x).cwiseAbs().maxCoeff();
    x = next;
    if (moved < 1e-4) break;
  }
  PopulationCosts costs;
  for (const auto& [name, at] : first) {
    std::vector<double>& member = costs.try_emplace(name, kCount, 0.0).first->second;
    for (std::size_t k = 0; k < kCount; ++k) member[k] = std::exp(x(index(at + k)));
  }
  return costs;
}

}  // namespace roofcast
