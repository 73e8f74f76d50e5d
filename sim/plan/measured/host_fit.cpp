#include "sim/plan/measured/host_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include <fmt/format.h>
#include <nlopt.hpp>

#include "base/config_library.h"
#include "base/random.h"
#include "sim/plan/parallel.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

constexpr std::array kParameters{
    HostParameter{"step_time", &HostCosts::step_time, 0, 5000},
    HostParameter{"sequence_time", &HostCosts::sequence_time, 0, 60},
    HostParameter{"prefill_step_time", &HostCosts::prefill_step_time, 0, 40000},
    HostParameter{"launch_time", &HostCosts::launch_time, 0, 60},
    HostParameter{"request_time", &HostCosts::request_time, 0, 20000},
    HostParameter{"request_latency", &HostCosts::request_latency, 0, 60000},
    HostParameter{"token_time", &HostCosts::token_time, 0, 200},
    HostParameter{"prompt_token_time", &HostCosts::prompt_token_time, 0, 12},
    HostParameter{"graph_gap", &HostCosts::graph_gap, 0, 3, true},
    HostParameter{"rank_skew", &HostCosts::rank_skew, 0, 15},
};

/// |log(predicted / measured)| beyond which a run says nothing about host costs, because something else is wrong.
const double kOff = std::log(2.0);

/// The measurements of one run, and their predictions; blank ones are 0.
struct Measured {
  MeasuredRun* run;
  double ttft_ms, tpot_ms, value;
  RunPrediction predicted{};
};

/// Sets the host costs of a run; if disaggregated, of both kinds of workers.
void set_host(MeasuredRun& run, const HostCosts& host) {
  run.deployment->engine.host = host;
  if (!run.serving.disaggregation) return;
  auto prefill = std::make_shared<Deployment>(*run.serving.disaggregation->prefill);
  prefill->engine.host = host;
  run.serving.disaggregation->prefill = std::move(prefill);
}

/// The runs, grouped by shared step prices and by group.
class HostProblem {
 public:
  HostProblem(MeasuredRuns& runs, const CsvTable& table, const std::string& engine, std::size_t smallest_group)
      : kind_(runs.kind), smallest_group_(smallest_group) {
    const auto cell = [&](std::size_t row, std::string_view column) {
      const auto at = table.find(column);
      return at ? table.number(row, *at, 0.0) : 0.0;
    };
    for (MeasuredRun& run : runs.runs) {
      if (!run.scored || !run.note.empty() || run.deployment->engine.name != engine) continue;
      tasks_[run.deployment_key].push_back(
          {&run, cell(run.row, "ttft_ms"), cell(run.row, "tpot_ms"), cell(run.row, "value")});
      groups_[run.group] += 1;
    }
    if (tasks_.empty()) throw ConfigError(fmt::format("no scored run of engine '{}' can be predicted", engine));
    for (auto& [key, members] : tasks_)
      order_.push_back({&members, make_model_pricer(members.front().run->deployment)});
    const bool counts =
        std::any_of(groups_.begin(), groups_.end(), [&](const auto& group) { return group.second >= smallest_group_; });
    if (!counts)
      throw ConfigError(fmt::format("no group of engine '{}' has {} runs or more to fit to", engine, smallest_group_));
    const HostCosts& first = order_.front().members->front().run->deployment->engine.host;
    own_ = first;
    for (const HostParameter& p : kParameters) {
      if (!p.optional || own_.*p.member > Seconds(0)) parameters_.push_back(p);
    }
    set_aside_contradictions();
  }

  const std::map<std::string, std::size_t>& groups() const { return groups_; }
  bool counts(const std::string& group) const {
    return groups_.at(group) >= smallest_group_ && set_aside_.count(group) == 0;
  }
  const HostCosts& own() const { return own_; }  ///< of the engine's profile
  const std::vector<HostParameter>& parameters() const { return parameters_; }
  /// Costs that no prediction depends on.
  std::vector<const HostParameter*> unexercised() {
    std::vector<const HostParameter*> found;
    predict(own_);
    const std::vector<double> before = predictions();
    const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
    for (const HostParameter& p : parameters_) {
      HostCosts changed = own_;
      changed.*p.member = own_.*p.member * 2.0 + Seconds(0.1 * p.high_us * 1e-6);
      predict(changed);
      const std::vector<double> now = predictions();
      if (std::equal(now.begin(), now.end(), before.begin(), same)) found.push_back(&p);
    }
    return found;
  }

  /// Predicts every run.
  void predict(const HostCosts& costs) {
    const HostCosts& host = costs;
    parallel_for_each_index(order_.size(), [&](std::size_t i) {
      for (Measured& m : *order_[i].members) {
        set_host(*m.run, host);
      }
      order_[i].members->front().run->deployment->engine.host = host;  // the pricer reads this one
      for (Measured& m : *order_[i].members) {
        m.predicted = predict_run(*m.run, *order_[i].pricer);
      }
    });
  }

  double loss() const {
    std::map<std::string, std::pair<double, double>> sums;  // total, rows
    for (const Task& task : order_) {
      for (const Measured& m : *task.members) {
        if (!counts(m.run->group)) continue;
        auto& [total, rows] = sums[m.run->group];
        const double weight = closed_loop(kind_) ? 3 : 1;
        total += closed_loop(kind_) ? 2 * error(m.predicted.tpot_ms, m.tpot_ms) + error(m.predicted.ttft_ms, m.ttft_ms)
                                    : error(m.predicted.value, m.value);
        rows += weight;
      }
    }
    double mean = 0;
    for (const auto& [group, sum] : sums) mean += sum.first / sum.second / static_cast<double>(sums.size());
    return mean;
  }

  HostErrors errors(const std::string& group) const {
    HostErrors e;
    double rows = 0;
    for (const Task& task : order_) {
      for (const Measured& m : *task.members) {
        if (m.run->group != group) continue;
        if (m.ttft_ms > 0) e.ttft += std::abs(m.predicted.ttft_ms / m.ttft_ms - 1);
        if (m.tpot_ms > 0) e.tpot += std::abs(m.predicted.tpot_ms / m.tpot_ms - 1);
        if (m.value > 0) e.value += std::abs(m.predicted.value / m.value - 1);
        rows += 1;
      }
    }
    return {e.ttft / rows, e.tpot / rows, e.value / rows};
  }

 private:
  /// A group in which more than a third of the values are off by a factor of two with the engine's own costs has
  /// another cause, which host costs would only hide. It is excluded, unless no other group remains.
  void set_aside_contradictions() {
    predict(own_);
    std::map<std::string, std::pair<int, int>> off;  // values beyond, values
    for (const Task& task : order_) {
      for (const Measured& m : *task.members) {
        std::pair<int, int>& count = off[m.run->group];
        const auto judge = [&](double predicted, double measured) {
          if (!(measured > 0)) return;
          count.first += error(predicted, measured) >= kOff ? 1 : 0;
          count.second += 1;
        };
        judge(m.predicted.ttft_ms, m.ttft_ms);
        judge(m.predicted.tpot_ms, m.tpot_ms);
        judge(m.predicted.value, m.value);
      }
    }
    for (const auto& [group, count] : off) {
      if (3 * count.first > count.second) set_aside_.insert(group);
    }
    const bool any =
        std::any_of(groups_.begin(), groups_.end(), [&](const auto& group) { return counts(group.first); });
    if (!any) set_aside_.clear();
  }

  std::vector<double> predictions() const {
    std::vector<double> all;
    for (const Task& task : order_) {
      for (const Measured& m : *task.members)
        all.insert(all.end(), {m.predicted.ttft_ms, m.predicted.tpot_ms, m.predicted.value});
    }
    return all;
  }

  struct Task {
    std::vector<Measured>* members;
    std::unique_ptr<StepPricer> pricer;
  };
  static double error(double predicted, double measured) {
    if (!(predicted > 0) || !(measured > 0)) return kOff;
    return std::min(std::abs(std::log(predicted / measured)), kOff);
  }

  RunKind kind_;
  std::size_t smallest_group_;
  std::map<std::string, std::vector<Measured>> tasks_;
  std::map<std::string, std::size_t> groups_;
  std::vector<Task> order_;
  std::set<std::string> set_aside_;
  HostCosts own_;
  std::vector<HostParameter> parameters_;  ///< that are fitted
};

/// Costs that are not fitted keep the engine's values.
HostCosts host_of(const std::vector<double>& x, const HostProblem& problem) {
  HostCosts host = problem.own();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const HostParameter& p = problem.parameters()[i];
    host.*p.member = Seconds(x[i] * p.high_us * 1e-6);
  }
  return host;
}

/// Costs as fractions of their bounds.
std::vector<double> fractions_of(const HostCosts& host, const HostProblem& problem) {
  std::vector<double> x;
  for (const HostParameter& p : problem.parameters()) x.push_back((host.*p.member).in(kMicrosecond) / p.high_us);
  return x;
}

/// Mean squared ln(cost / expected cost), both plus a twentieth of the bound.
double distance(const std::vector<double>& at, const std::vector<double>& expected) {
  constexpr double kSmall = 0.05;
  double sum = 0;
  for (std::size_t i = 0; i < at.size(); ++i) {
    const double step = std::log((at[i] + kSmall) / (expected[i] + kSmall));
    sum += step * step;
  }
  return sum / static_cast<double>(at.size());
}

/// Subplex within the bounds, in units of each bound. The loss has kinks wherever a queue forms.
HostCosts descend(HostProblem& problem, const HostCosts& start, const HostCosts& prior, const HostFitOptions& options,
                  double& loss) {
  nlopt::opt search(nlopt::LN_SBPLX, static_cast<unsigned>(problem.parameters().size()));
  std::vector<double> x, low, step;
  for (const HostParameter& p : problem.parameters()) {
    low.push_back(p.low_us / p.high_us);
    x.push_back(std::clamp((start.*p.member).in(kMicrosecond) / p.high_us, low.back(), 1.0));
    step.push_back(std::max(0.4 * x.back(), 0.01));
  }
  const std::vector<double> expected = fractions_of(prior, problem);
  search.set_lower_bounds(low);
  search.set_upper_bounds(std::vector<double>(x.size(), 1.0));
  search.set_initial_step(step);
  search.set_maxeval(options.max_evaluations);
  search.set_xtol_abs(1e-4);
  const std::function<double(const std::vector<double>&)> value = [&](const std::vector<double>& at) {
    problem.predict(host_of(at, problem));
    return problem.loss() + (options.pull > 0 ? options.pull * distance(at, expected) : 0.0);
  };
  search.set_min_objective([](const std::vector<double>& at, std::vector<double>&,
                              void* f) { return (*static_cast<decltype(&value)>(f))(at); },
                           const_cast<void*>(static_cast<const void*>(&value)));
  search.optimize(x, loss);
  return host_of(x, problem);
}

/// The best of several descents: from `start`, and from seeded points with each cost at 1 to 100 % of its bound.
HostCosts minimize(HostProblem& problem, const HostCosts& start, const HostCosts& prior, const HostFitOptions& options,
                   double& loss) {
  HostCosts best = descend(problem, start, prior, options, loss);
  Random random(options.seed);
  for (int i = 1; i < options.starts; ++i) {
    std::vector<double> x;
    for (std::size_t k = 0; k < problem.parameters().size(); ++k) x.push_back(std::pow(0.01, random.uniform()));
    double other = 0;
    const HostCosts found = descend(problem, host_of(x, problem), prior, options, other);
    if (other < loss) best = found, loss = other;
  }
  return best;
}

}  // namespace

std::span<const HostParameter> host_parameters() { return kParameters; }

HostFit fit_host(MeasuredRuns& runs, const CsvTable& table, const std::string& engine, const HostFitOptions& options) {
  HostProblem problem(runs, table, engine, options.smallest_group);
  HostFit fit;
  fit.host = minimize(problem, problem.own(), problem.own(), options, fit.loss);
  for (const HostParameter* cost : problem.unexercised()) {
    fit.host.*cost->member = problem.own().*cost->member;
    fit.unexercised.push_back(cost->name);
  }
  problem.predict(fit.host);
  for (const auto& [name, rows] : problem.groups()) {
    HostFitGroup group{.group = name, .rows = rows, .counted = problem.counts(name), .fitted = {}};
    group.fitted = problem.errors(name);
    fit.groups.push_back(group);
  }
  return fit;
}

}  // namespace roofcast
