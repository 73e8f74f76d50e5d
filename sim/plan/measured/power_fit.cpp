#include "sim/plan/measured/power_fit.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/error.h"
#include "sim/step/deployment.h"

namespace roofcast {
namespace {

using Features = Eigen::Vector3d;

Features features(const PowerSample& s) {
  return s.busy_share * Features(1.0, std::sqrt(s.utilization.compute), s.utilization.memory);
}

PowerCurve curve_of(const Features& k) { return {.static_share = k[0], .compute_share = k[1], .memory_share = k[2]}; }

/// Least absolute error by iteratively reweighted least squares, for the columns in `active`.
Features weighted_fit(const Eigen::MatrixX3d& a, const Eigen::VectorXd& y, const Eigen::VectorXd& row_weight,
                      const std::vector<int>& active) {
  constexpr int kRounds = 40;
  constexpr double kSmall = 0.01;  // relative errors below it count as squares
  Eigen::MatrixXd columns(a.rows(), static_cast<Eigen::Index>(active.size()));
  for (std::size_t c = 0; c < active.size(); ++c) columns.col(static_cast<Eigen::Index>(c)) = a.col(active[c]);
  Eigen::VectorXd weight = Eigen::VectorXd::Ones(a.rows()), solution;
  for (int round = 0; round < kRounds; ++round) {
    const Eigen::VectorXd w = row_weight.cwiseProduct(weight);
    solution = (w.asDiagonal() * columns).colPivHouseholderQr().solve(w.cwiseProduct(y));
    weight = (columns * solution - y).cwiseAbs().cwiseMax(kSmall).cwiseSqrt().cwiseInverse();
  }
  Features k = Features::Zero();
  for (std::size_t c = 0; c < active.size(); ++c) k[active[c]] = solution[static_cast<Eigen::Index>(c)];
  return k;
}

std::string class_of(const PowerSample& s, LeftOut left_out) {
  return left_out == LeftOut::kModel ? s.model : left_out == LeftOut::kGpu ? s.gpu : std::string();
}

}  // namespace

std::vector<PowerSample> power_samples(const MeasuredRuns& runs, const CsvTable& table,
                                       const std::vector<RowPrediction>& rows) {
  if (!table.find("power_w") || !table.find("median_itl_ms"))
    throw ConfigError(table.location(0, 0), "a fit of power needs the columns 'power_w' and 'median_itl_ms'");
  std::vector<PowerSample> samples;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const MeasuredRun& run = runs.runs[i];
    const double watts = measured_value(table, i, "power_w"), itl = measured_value(table, i, "median_itl_ms");
    if (!run.scored || !rows[i].prediction || !(watts > 0) || !(itl > 0)) continue;
    const RunPrediction& p = *rows[i].prediction;
    const Deployment& d = *run.deployment;
    const double faster = p.itl_ms / itl, gpus = d.sharding.gpus() * run.serving.replicas;
    samples.push_back({.model = run.classes.model,
                       .gpu = d.gpu.name,
                       .idle = d.gpu.idle_power,
                       .board = d.gpu.board_power,
                       .measured = {watts / gpus},
                       .utilization = {.compute = std::min(1.0, p.utilization.compute * faster),
                                       .memory = std::min(1.0, p.utilization.memory * faster)},
                       .busy_share = p.busy_share});
  }
  if (samples.empty()) throw ConfigError(table.location(0, 0), "no run with a measured power could be predicted");
  return samples;
}

Watts mean_power(const PowerSample& s, const PowerCurve& curve) {
  return {s.idle.value + (s.board.value - s.idle.value) * s.busy_share * curve.share(s.utilization)};
}

PowerCurve fit_power(std::span<const PowerSample> samples) {
  std::map<std::string, double> of_gpu;
  for (const PowerSample& s : samples) of_gpu[s.gpu] += 1;
  const auto n = static_cast<Eigen::Index>(samples.size());
  Eigen::MatrixX3d a(n, 3);
  Eigen::VectorXd y(n), weight(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    const PowerSample& s = samples[static_cast<std::size_t>(i)];
    const double range = (s.board.value - s.idle.value) / s.measured.value;  // errors are relative to what was measured
    a.row(i) = range * features(s).transpose();
    y[i] = 1.0 - s.idle.value / s.measured.value;
    weight[i] = 1.0 / std::sqrt(of_gpu.at(s.gpu));
  }
  std::vector<int> active{0, 1, 2};
  while (true) {
    const Features k = weighted_fit(a, y, weight, active);
    std::erase_if(active, [&](int c) { return k[c] < 0; });
    if ((k.array() >= 0).all() || active.empty()) return curve_of(k.cwiseMax(0.0));
  }
}

std::vector<PowerErrors> power_errors(std::span<const PowerSample> samples, LeftOut left_out) {
  std::map<std::string, PowerCurve> curves;
  for (const PowerSample& s : samples) {
    const std::string name = class_of(s, left_out);
    if (curves.contains(name)) continue;
    std::vector<PowerSample> seen;
    for (const PowerSample& other : samples) {
      if (left_out == LeftOut::kNothing || class_of(other, left_out) != name) seen.push_back(other);
    }
    curves[name] = seen.empty() ? kPowerCurve : fit_power(seen);
  }
  std::map<std::string, std::pair<std::vector<double>, std::vector<double>>> pairs;  // predicted, measured
  for (const PowerSample& s : samples) {
    const double predicted = mean_power(s, curves.at(class_of(s, left_out))).value;
    for (const std::string& name : {s.gpu, std::string("~all")}) {  // sorts behind the GPUs
      pairs[name].first.push_back(predicted);
      pairs[name].second.push_back(s.measured.value);
    }
  }
  std::vector<PowerErrors> out;
  for (const auto& [name, pair] : pairs) {
    std::vector<double> logs;
    for (std::size_t i = 0; i < pair.first.size(); ++i) logs.push_back(std::log(pair.second[i] / pair.first[i]));
    out.push_back({.name = name == "~all" ? "all" : name,
                   .errors = summarize(pair.first, pair.second),
                   .spread = {quantile(logs, 0.05), quantile(logs, 0.95)}});
  }
  return out;
}

}  // namespace roofcast
