#pragma once
// Draws of what a deployment might really be like: values for everything that a forecast does not know.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "sim/plan/intervals.h"
#include "sim/plan/scenario.h"
#include "sim/plan/system_spread.h"

namespace roofcast {

/// `count` points of `dimensions` standard normal values, as a Latin hypercube: in each dimension, every one of `count`
/// equally likely slices holds one point.
std::vector<std::vector<double>> stratified_normals(std::size_t count, std::size_t dimensions, std::uint64_t seed);

/// Factors of a draw on the steps of a deployment. A mixed step is its decodes plus what the prompts add.
struct StepFactors {
  double decode = 1, prefill = 1;
};
std::unique_ptr<StepPricer> shifted_pricer(std::unique_ptr<StepPricer> pricer, StepFactors factors);

/// The shares of the operator families in a decode step and in a prefill step of one deployment, under the load in
/// `metrics`.
struct StepSpreads {
  FamilySpreads decode{}, prefill{};
  double launching = 0;  ///< launched_share() of the decode step
};
StepSpreads step_spreads(const std::shared_ptr<const Deployment>& deployment, const ServingMetrics& metrics,
                         int replicas);
/// exp(sum of spread x draw), over the first kOperatorFamilies + 1 values of a draw.
double kernel_factor(const FamilySpreads& spreads, const std::vector<double>& draw);

/// Mean requests in flight, by Little's law, and their effect on the system's spread.
LoadRegime regime_of(const Scenario& scenario, const ServingMetrics& metrics);

/// One possible truth of a scenario: one quantile of every uncertain quantity. It is the same for every deployment, so
/// that two deployments are compared under the same draws.
struct TruthDraw {
  std::vector<double> normals;  ///< families of kernels, host; then system, first token, acceptance, load
};
/// The same for every candidate of a plan.
std::vector<TruthDraw> truth_draws(std::size_t count, std::uint64_t seed);

/// Factors of a draw on first tokens and decode steps of a deployment with this spread, without the kernels'
/// own errors.
struct SystemFactors {
  double first_token = 1, step = 1;
};
SystemFactors system_factors(const SystemSpread& spread, const TruthDraw& draw);

/// The truths of one scenario, from the spreads of its parts. Kernels and host are as in serving_intervals.
/// system_spread covers host, release and launch settings as a whole: it multiplies every step's time, and TTFT has a
/// spread beyond that. Constants carried over from another GPU spread more. The acceptance of each draft has a standard
/// deviation of 0.1, the load one of `load_uncertainty` (relative).
class Truths {
 public:
  Truths(const Scenario& scenario, const ServingMetrics& nominal, int replicas, double load_uncertainty);

  /// The scenario in one truth: limits of TTFT and E2E latency are divided by the stretch of first tokens, and
  /// acceptances are replaced.
  Scenario scenario_in(const TruthDraw& draw) const;
  double load_factor(const TruthDraw& draw) const;
  /// Prices of the deployment's steps in one truth, in place of `nominal`.
  PricerFactory pricers_in(const TruthDraw& draw, PricerFactory nominal) const;
  /// How bad a draw is likely to be for the objectives, given their values in `nominal`: the largest ln(value / limit),
  /// with times that grow a little faster than the steps in them. This only orders draws; the simulation decides.
  double harm(const TruthDraw& draw, const ServingMetrics& nominal) const;

 private:
  StepFactors factors(const Deployment& deployment, const TruthDraw& draw) const;
  Scenario scenario_;
  std::map<const Deployment*, StepSpreads> spreads_;
  LogSpread system_, first_token_;
  double load_uncertainty_;
};

}  // namespace roofcast
