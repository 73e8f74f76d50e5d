#pragma once
// The power curve that measured servers ask for.

#include <span>
#include <string>
#include <vector>

#include "base/error_summary.h"
#include "sim/plan/measured/serving_accuracy.h"
#include "sim/plan/power.h"
#include "sim/plan/system_spread.h"

namespace roofcast {

/// One measured run: what its GPUs drew, and how busy they were.
struct PowerSample {
  std::string model, gpu;
  Watts idle, board, measured;  ///< of one GPU
  Utilization utilization;      ///< while a step runs, at the measured speed
  double busy_share = 0;        ///< of the time that a step was running
};

/// Runs with a measured power. Their utilization is the predicted one times predicted over measured inter-token
/// latency: the work of a step is known, and an error of the forecast's speed is not blamed on the curve.
/// Throws ConfigError where the table measures no power.
std::vector<PowerSample> power_samples(const MeasuredRuns& runs, const CsvTable& table,
                                       const std::vector<RowPrediction>& rows);

/// Of one GPU on average: idle while no step runs.
Watts mean_power(const PowerSample& sample, const PowerCurve& curve);

/// Least absolute relative error, every GPU counting as one; shares are not negative.
PowerCurve fit_power(std::span<const PowerSample> samples);

/// Errors of power on runs that a curve did not see.
struct PowerErrors {
  std::string name;  ///< the GPU judged
  ErrorSummary errors;
  LogSpread spread;  ///< 5 and 95 % quantiles of ln(measured / predicted)
};
/// Each run predicted by a curve fitted without its class; by GPU, then over all.
enum class LeftOut { kNothing, kModel, kGpu };
std::vector<PowerErrors> power_errors(std::span<const PowerSample> samples, LeftOut left_out);

}  // namespace roofcast
