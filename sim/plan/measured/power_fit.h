#pragma once
// Fits the power curve to measured servers.

#include <span>
#include <string>
#include <vector>

#include "base/error_summary.h"
#include "sim/plan/measured/serving_accuracy.h"
#include "sim/plan/power.h"
#include "sim/plan/system_spread.h"

namespace roofcast {

/// One measured run: the power of its GPUs, and their utilization.
struct PowerSample {
  std::string model, gpu;
  Watts idle, board, measured;  ///< per GPU
  Utilization utilization;      ///< while a step runs, at the measured speed
  double busy_share = 0;        ///< fraction of the time that a step was running
};

/// Runs with measured power. Utilization is the predicted one times predicted / measured inter-token latency, because
/// the work of a step is known and errors of the predicted speed should not affect the curve. Throws ConfigError if the
/// table has no power.
std::vector<PowerSample> power_samples(const MeasuredRuns& runs, const CsvTable& table,
                                       const std::vector<RowPrediction>& rows);

/// Mean power of one GPU: idle power while no step runs.
Watts mean_power(const PowerSample& sample, const PowerCurve& curve);

/// Minimizes the mean absolute relative error, with equal weight per GPU type; all coefficients are >= 0.
PowerCurve fit_power(std::span<const PowerSample> samples);

/// Power errors on runs left out of the fit.
struct PowerErrors {
  std::string name;  ///< the GPU that was left out
  ErrorSummary errors;
  LogSpread spread;  ///< 5 and 95 % quantiles of ln(measured / predicted)
};
/// Predicts each run with a curve fitted without its class. By GPU, then over all.
enum class LeftOut { kNothing, kModel, kGpu };
std::vector<PowerErrors> power_errors(std::span<const PowerSample> samples, LeftOut left_out);

}  // namespace roofcast
