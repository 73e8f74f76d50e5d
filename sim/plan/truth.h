#pragma once
// Draws of the real behaviour of a deployment: values for everything that a forecast does not know.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "sim/plan/intervals.h"
#include "sim/plan/scenario.h"
#include "sim/plan/system_spread.h"

namespace roofcast {

/// `count` points of `dimensions` standard normal values, as a Latin hypercube: in each dimension, each of `count`
/// equally likely slices contains one point.
std::vector<std::vector<double>> stratified_normals(std::size_t count, std::size_t dimensions, std::uint64_t seed);

/// Factors of a draw on the steps of a deployment. A mixed step is its decodes plus what the prompts add.
struct StepFactors {
  double decode = 1, prefill = 1;
};
std::unique_ptr<StepPricer> shifted_pricer(std::unique_ptr<StepPricer> pricer, StepFactors factors);

/// Weights of the operator families in a decode step and in a prefill step of one deployment, at the load in `metrics`.
struct StepSpreads {
  FamilySpreads decode{}, prefill{};
  HostSpreads host{};
};
StepSpreads step_spreads(const std::shared_ptr<const Deployment>& deployment, const SpeculationSpec& drafts,
                         const ServingMetrics& metrics, int replicas, bool prefill_only = false);
/// Of all deployments of a scenario. With prefill apart, first tokens wait for prefill steps, and no draft is made
/// there. `replicas`: of the scenario's deployment.
std::map<const Deployment*, StepSpreads> step_spreads(const Scenario& scenario, const ServingMetrics& metrics,
                                                      int replicas);
/// exp(sum of spread x draw), over the first kOperatorFamilies + 1 values of a draw.
double kernel_factor(const FamilySpreads& spreads, const std::vector<double>& draw);

/// The load regime at the mean number of requests in flight (Little's law).
LoadRegime regime_of(const Scenario& scenario, const ServingMetrics& metrics);

/// One draw of a scenario: one quantile for every uncertain quantity. Draws are the same for every deployment, so that
/// deployments are compared under equal conditions.
struct TruthDraw {
  std::vector<double> normals;  ///< families of kernels, host; then system, first token, acceptance, load
};
/// The draws for every candidate of a plan.
std::vector<TruthDraw> truth_draws(std::size_t count, std::uint64_t seed);

/// Factors of a draw on first tokens and decode steps of a deployment, without errors of kernels.
struct SystemFactors {
  double first_token = 1, step = 1;
};
/// The least factors of a draw under any spread between these two.
SystemFactors fastest_factors(const SystemSpread& a, const SystemSpread& b, const TruthDraw& draw);

/// Applies draws to one scenario. Kernels and host are as in serving_intervals. system_spread covers host, release and
/// launch settings as a whole: it multiplies the time of every step, and TTFT has an additional spread. Constants
/// transferred from another GPU spread more. The acceptance of each draft has a standard deviation of 0.1, the load a
/// relative one of `load_uncertainty`.
class Truths {
 public:
  Truths(const Scenario& scenario, const ServingMetrics& nominal, int replicas, double load_uncertainty);

  /// The scenario in one draw: limits of TTFT are divided by the stretch of first tokens, and
  /// acceptances are replaced.
  Scenario scenario_in(const TruthDraw& draw) const;
  double load_factor(const TruthDraw& draw) const;
  /// Step prices of the deployment in one draw, based on `nominal`.
  PricerFactory pricers_in(const TruthDraw& draw, PricerFactory nominal) const;
  /// How harmful a draw is likely to be for the objectives, given their values in `nominal`: the largest ln(value /
  /// limit), with waits that grow with the load and with decode steps. It only orders draws; the simulation decides.
  double harm(const TruthDraw& draw, const ServingMetrics& nominal) const;

 private:
  StepFactors factors(const Deployment& deployment, const TruthDraw& draw) const;
  Scenario scenario_;
  std::map<const Deployment*, StepSpreads> spreads_;
  LogSpread decode_, prefill_, first_token_;
  double load_uncertainty_;
};

}  // namespace roofcast
