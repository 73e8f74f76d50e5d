#pragma once
// What a deployment might really be like: draws of all that a forecast does not know.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "sim/plan/intervals.h"
#include "sim/plan/scenario.h"
#include "sim/plan/system_spread.h"

namespace roofcast {

/// `count` points of `dimensions` standard normal values each, a Latin hypercube: of every dimension each of `count`
/// equally likely slices once.
std::vector<std::vector<double>> stratified_normals(std::size_t count, std::size_t dimensions, std::uint64_t seed);

/// How far a draw moves the times of a deployment's steps. A mixed step is its decodes, and what the prompts add.
struct StepFactors {
  double decode = 1, prefill = 1;
};
std::unique_ptr<StepPricer> shifted_pricer(std::unique_ptr<StepPricer> pricer, StepFactors factors);

/// What the families of operators weigh in a decode step and in a prefill step of one deployment under the load in
/// `metrics`.
struct StepSpreads {
  FamilySpreads decode{}, prefill{};
};
StepSpreads step_spreads(const std::shared_ptr<const Deployment>& deployment, const ServingMetrics& metrics,
                         int replicas);
/// exp(sum of spread x draw), of the first kOperatorFamilies + 1 values of a draw.
double kernel_factor(const FamilySpreads& spreads, const std::vector<double>& draw);

/// Requests in flight on average, by Little's law, and what that means for the system's spread.
LoadRegime regime_of(const Scenario& scenario, const ServingMetrics& metrics);

/// One possible truth of a scenario: the same place in the distribution of every uncertain quantity whatever the
/// deployment, so that two of them are compared under the same luck.
struct TruthDraw {
  std::vector<double> normals;  ///< kernels' families and the host; then system, first token, acceptance, load
};
/// The same for every candidate of a plan.
std::vector<TruthDraw> truth_draws(std::size_t count, std::uint64_t seed);

/// How far a draw moves first tokens and decode steps of a deployment with this spread; kernels' own errors are left
/// out.
struct SystemFactors {
  double first_token = 1, step = 1;
};
SystemFactors system_factors(const SystemSpread& spread, const TruthDraw& draw);

/// The truths of one scenario, by how its parts spread. Kernels and host: as in serving_intervals. Host, release and
/// launch settings as a whole: system_spread, which multiplies every step's time, and what TTFT spreads beyond that.
/// Constants that were carried over from another GPU spread more. Acceptance of drafts: +-0.1 of each as one standard
/// deviation. Load: `load_uncertainty`, relative.
class Truths {
 public:
  Truths(const Scenario& scenario, const ServingMetrics& nominal, int replicas, double load_uncertainty);

  /// The scenario in one truth: limits of TTFT and E2E latency divided by what first tokens take longer, drafts
  /// accepted as they are.
  Scenario scenario_in(const TruthDraw& draw) const;
  double load_factor(const TruthDraw& draw) const;
  /// Of the deployment's steps, in place of `nominal`.
  PricerFactory pricers_in(const TruthDraw& draw, PricerFactory nominal) const;
  /// How bad a draw is likely to be for the objectives, from what they were in `nominal`: the largest ln(value /
  /// limit), with times that grow a little faster than the steps they are made of. Orders draws; the simulation
  /// decides.
  double harm(const TruthDraw& draw, const ServingMetrics& nominal) const;

 private:
  StepFactors factors(const Deployment& deployment, const TruthDraw& draw) const;
  Scenario scenario_;
  std::map<const Deployment*, StepSpreads> spreads_;
  LogSpread system_, first_token_;
  double load_uncertainty_;
};

}  // namespace roofcast
