#include "calibrate/fit.h"

#include <fmt/format.h>
#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlopt.hpp>
#include <optional>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "calibrate/pooling.h"
#include "hw/efficiency.h"

namespace roofcast::calibrate {

std::string_view name_of(FieldState state) {
  switch (state) {
    case FieldState::kFitted:
      return "fitted";
    case FieldState::kFixed:
      return "fixed";
    case FieldState::kAtBound:
      return "at its bound";
    case FieldState::kNotIdentified:
      return "not identified, prior kept";
    case FieldState::kPooled:
      return "inherited";
  }
  return "";
}

namespace fit_detail {
namespace {

/// Maps a field's bounds to 0..1. Rates and sizes that span decades use a logarithmic scale, costs that may be zero a
/// square-root scale (fine near zero), fractions a linear one.
double to_value(const Field& field, double unit) {
  unit = std::clamp(unit, 0.0, 1.0);
  if (field.low > 0.0 && field.high / field.low > 10.0) return field.low * std::pow(field.high / field.low, unit);
  if (field.low == 0.0 && field.high > 1.0) return field.high * unit * unit;
  return field.low + (field.high - field.low) * unit;
}

double to_unit(const Field& field, double value) {
  double unit = (value - field.low) / (field.high - field.low);
  if (field.low > 0.0 && field.high / field.low > 10.0) {
    unit = std::log(value / field.low) / std::log(field.high / field.low);
  } else if (field.low == 0.0 && field.high > 1.0) {
    unit = std::sqrt(value / field.high);
  }
  return std::clamp(unit, 0.0, 1.0);
}

/// A prior weighs as much as one row. It counts as known to a quarter of the bounds, a row to 10 %, so over n rows its
/// weight is (0.1 / 0.25)^2 / 2n.
constexpr double kPriorWeightOfRows = 0.08;

double huber(double residual, double width) {
  const double size = std::abs(residual);
  return size <= width ? 0.5 * size * size : width * (size - 0.5 * width);
}

/// The loss as a function of the free fields, in units of their bounds.
class Objective {
 public:
  Objective(std::span<const Field> fields, std::span<const std::size_t> rows, const Residuals& residuals,
            const FitOptions& options)
      : fields_(fields), rows_(rows), residuals_(residuals), options_(options), out_(rows.size()) {
    for (const Field& field : fields) values_.push_back(field.prior);
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (!fields[i].fixed) free_.push_back(i);
    }
  }

  std::size_t size() const { return free_.size(); }
  const std::vector<std::size_t>& free() const { return free_; }
  std::vector<double> prior_units() const {
    std::vector<double> units;
    for (const std::size_t i : free_) units.push_back(to_unit(fields_[i], fields_[i].prior));
    return units;
  }
  /// `all` has a value for each field, including fixed ones.
  std::vector<double> units_of(std::span<const double> all) const {
    std::vector<double> units;
    for (const std::size_t i : free_) units.push_back(to_unit(fields_[i], all[i]));
    return units;
  }
  const std::vector<double>& values(std::span<const double> units) {
    for (std::size_t j = 0; j < free_.size(); ++j) values_[free_[j]] = to_value(fields_[free_[j]], units[j]);
    return values_;
  }
  const std::vector<double>& log_ratios(std::span<const double> units) {
    residuals_(values(units), rows_, out_);
    return out_;
  }
  double loss(std::span<const double> units) {
    double sum = 0;
    for (const double ratio : log_ratios(units)) sum += huber(ratio, options_.huber_width);
    double pull = 0;
    for (std::size_t j = 0; j < free_.size(); ++j) {
      const double distance = units[j] - to_unit(fields_[free_[j]], fields_[free_[j]].prior);
      pull += distance * distance;
    }
    const double rows = static_cast<double>(rows_.size());
    return sum / rows + std::max(options_.prior_weight, kPriorWeightOfRows / rows) * pull;
  }

 private:
  std::span<const Field> fields_;
  std::span<const std::size_t> rows_;
  const Residuals& residuals_;
  const FitOptions& options_;
  std::vector<double> out_, values_;
  std::vector<std::size_t> free_;
};

double loss_for_nlopt(const std::vector<double>& units, std::vector<double>&, void* objective) {
  return static_cast<Objective*>(objective)->loss(units);
}

/// Subplex (Rowan 1990, NLopt's LN_SBPLX): simplex searches in small subspaces. It tolerates the kinks of a minimum
/// over tiles.
std::pair<std::vector<double>, double> search(Objective& objective, std::vector<double> units, double step,
                                              int evaluations) {
  nlopt::opt solver(nlopt::LN_SBPLX, static_cast<unsigned>(units.size()));
  solver.set_lower_bounds(0.0);
  solver.set_upper_bounds(1.0);
  solver.set_min_objective(loss_for_nlopt, &objective);
  solver.set_maxeval(evaluations);
  solver.set_ftol_rel(1e-7);
  solver.set_xtol_abs(1e-5);
  solver.set_initial_step(step);
  double loss = objective.loss(units);
  std::vector<double> best = units;
  try {
    solver.optimize(best, loss);
  } catch (const nlopt::roundoff_limited&) {  // the limit of double precision: the point found is good
    loss = objective.loss(best);
  }
  return {best, loss};
}

std::vector<std::size_t> sample(std::span<const std::size_t> rows, const FitOptions& options) {
  std::vector<std::size_t> drawn(rows.begin(), rows.end());
  const auto wanted = static_cast<std::size_t>(std::max(options.max_rows, 1));
  if (drawn.size() <= wanted) return drawn;
  Random random(options.seed);
  for (std::size_t i = 0; i < wanted; ++i) {
    const auto other =
        random.uniform_integer(static_cast<std::int64_t>(i), static_cast<std::int64_t>(drawn.size()) - 1);
    std::swap(drawn[i], drawn[static_cast<std::size_t>(other)]);
  }
  drawn.resize(wanted);
  std::sort(drawn.begin(), drawn.end());
  return drawn;
}

std::vector<double> best_of_starts(Objective& objective, const FitOptions& options) {
  const std::vector<double> prior = objective.prior_units();
  if (prior.empty()) return prior;
  Random random(options.seed + 0x9e3779b97f4a7c15ULL);
  std::pair<std::vector<double>, double> best{prior, std::numeric_limits<double>::infinity()};
  if (!options.other_start.empty()) {
    best = search(objective, objective.units_of(options.other_start), 0.1, options.max_evaluations);
  }
  for (int start = 0; start < std::max(options.starts, 1); ++start) {
    if (options.begins)
      options.begins(fmt::format("{}, search {} of {}", options.what, start + 1, std::max(options.starts, 1)));
    std::vector<double> from = prior;
    for (double& unit : from) {
      if (start > 0) unit = std::clamp(unit + 0.6 * (random.uniform() - 0.5), 0.02, 0.98);
    }
    auto found = search(objective, std::move(from), 0.1, options.max_evaluations);
    if (found.second < best.second) best = std::move(found);
  }
  return search(objective, best.first, 0.02, options.max_evaluations).first;
}

/// Numeric Jacobian of the log ratios, one column per free field.
Eigen::MatrixXd jacobian(Objective& objective, const std::vector<double>& units, std::size_t rows) {
  Eigen::MatrixXd columns(static_cast<Eigen::Index>(rows), static_cast<Eigen::Index>(units.size()));
  for (std::size_t j = 0; j < units.size(); ++j) {
    std::vector<double> up = units, down = units;
    up[j] = std::min(1.0, units[j] + 2e-3);
    down[j] = std::max(0.0, units[j] - 2e-3);
    const std::vector<double> high = objective.log_ratios(up);
    const std::vector<double>& low = objective.log_ratios(down);
    for (std::size_t i = 0; i < rows; ++i) {
      columns(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) = (high[i] - low[i]) / (up[j] - down[j]);
    }
  }
  return columns;
}

/// Huber's weights.
Eigen::VectorXd weights_of(const std::vector<double>& ratios, double width) {
  Eigen::VectorXd weights(static_cast<Eigen::Index>(ratios.size()));
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    const double size = std::abs(ratios[i]);
    weights(static_cast<Eigen::Index>(i)) = size <= width ? 1.0 : width / size;
  }
  return weights;
}

/// Standard errors in units of the bounds: s^2 (J' W J)^-1 with Huber's weights. A direction without information in the
/// data gets a large one.
std::vector<double> standard_errors(Objective& objective, const std::vector<double>& units, std::size_t rows,
                                    double width) {
  if (units.empty()) return {};
  const std::vector<double> ratios = objective.log_ratios(units);
  const Eigen::MatrixXd columns = jacobian(objective, units, rows);
  const Eigen::VectorXd weight = weights_of(ratios, width);
  double squares = 0;
  for (std::size_t i = 0; i < rows; ++i) squares += weight(static_cast<Eigen::Index>(i)) * ratios[i] * ratios[i];
  Eigen::MatrixXd normal = columns.transpose() * weight.asDiagonal() * columns;
  normal.diagonal().array() += 1e-9;
  const double variance = squares / std::max(1.0, static_cast<double>(rows) - static_cast<double>(units.size()));
  const Eigen::MatrixXd identity = Eigen::MatrixXd::Identity(normal.rows(), normal.cols());
  const Eigen::MatrixXd covariance = normal.ldlt().solve(identity) * variance;
  std::vector<double> errors;
  for (Eigen::Index j = 0; j < covariance.rows(); ++j) errors.push_back(std::sqrt(std::max(0.0, covariance(j, j))));
  return errors;
}

/// Whether any value within the bounds changes the loss by more than 0.1 %.
bool matters(Objective& objective, const std::vector<double>& units, std::size_t j) {
  const double loss = objective.loss(units);
  std::vector<double> moved = units;
  for (const double other : {0.0, 0.5, 1.0}) {
    moved[j] = other;
    if (std::abs(objective.loss(moved) - loss) > 1e-3 * loss) return true;
  }
  return false;
}

double slope(const Field& field, double unit) {
  const double up = std::min(1.0, unit + 1e-4), down = std::max(0.0, unit - 1e-4);
  return (to_value(field, up) - to_value(field, down)) / (up - down);
}

std::vector<FieldReport> report(Objective& objective, std::span<const Field> fields, const std::vector<double>& units,
                                const std::vector<double>& errors) {
  const std::vector<double> values = objective.values(units);
  std::vector<FieldReport> reports;
  for (std::size_t i = 0; i < fields.size(); ++i)
    reports.push_back({fields[i].name, values[i], 0.0, FieldState::kFixed});
  for (std::size_t j = 0; j < units.size(); ++j) {
    const Field& field = fields[objective.free()[j]];
    FieldReport& entry = reports[objective.free()[j]];
    entry.standard_error = errors[j] * slope(field, units[j]);
    const bool at_bound = units[j] < 2e-3 || units[j] > 1.0 - 2e-3;
    entry.state = at_bound ? FieldState::kAtBound : FieldState::kFitted;
  }
  return reports;
}

/// The free field that the rows determine least, if that is too little: its error spans half its bounds, or none of its
/// values changes the loss.
std::optional<std::size_t> least_identified(Objective& objective, const std::vector<double>& units,
                                            const std::vector<double>& errors) {
  std::optional<std::size_t> worst;
  for (std::size_t j = 0; j < units.size(); ++j) {
    if (!matters(objective, units, j)) return j;
    if (errors[j] > 0.5 && (!worst || errors[j] > errors[*worst])) worst = j;
  }
  return worst;
}

/// Sets free fields of a fit back to their inherited values, as far as the rows allow.
class Pooling {
 public:
  Pooling(std::vector<Field>& fields, std::span<const std::size_t> rows, const Residuals& residuals,
          const FitOptions& options, std::vector<double> units)
      : fields_(fields), rows_(rows), residuals_(residuals), options_(options), units_(std::move(units)) {
    Objective objective(fields_, rows_, residuals_, options_);
    loss_ = objective.loss(units_);
  }

  /// Returns the fields that remain free, in units.
  std::vector<double> run(std::vector<bool>& pooled) {
    while (!units_.empty() && many(pooled)) {
    }
    while (!units_.empty() && one(pooled)) {
    }
    return units_;
  }

 private:
  /// All fields set back may together raise the loss by this share, and each of them by as much as a free constant
  /// lowers it by chance (Akaike: a factor of e^(2 / rows)).
  static constexpr double kWorth = 0.03;
  double allowed(double now) const {
    return std::max(loss_ * (1.0 + kWorth), now * std::exp(2.0 / static_cast<double>(rows_.size())));
  }

  PoolingOrder order(Objective& objective) const {
    const Eigen::VectorXd weight = weights_of(objective.log_ratios(units_), options_.huber_width);
    const Eigen::MatrixXd columns = jacobian(objective, units_, rows_.size());
    Eigen::MatrixXd curvature = columns.transpose() * weight.asDiagonal() * columns / static_cast<double>(rows_.size());
    curvature.diagonal().array() += 1e-7;
    return pooling_order(curvature, units_, objective.prior_units());
  }

  /// Tries as many fields as the curvature predicts to be cheap, then half of them, a quarter, ...
  bool many(std::vector<bool>& pooled) {
    Objective objective(fields_, rows_, residuals_, options_);
    const double now = objective.loss(units_);
    const PoolingOrder found = order(objective);
    const auto after = [&](std::size_t count) { return now + (count > 0 ? found.cost[count - 1] : 0.0); };
    std::size_t count = 0;
    while (count < found.which.size() && after(count + 1) <= allowed(after(count))) ++count;
    for (; count > 0; count /= 2) {
      const std::vector<std::size_t> which(found.which.begin(),
                                           found.which.begin() + static_cast<std::ptrdiff_t>(count));
      if (put_back(which, found.minimum[count - 1], objective.free(), allowed(after(count - 1)), pooled)) return true;
    }
    return false;
  }

  /// Sets back a single field that costs little although the curvature predicts otherwise: far from its minimum the
  /// loss is not parabolic.
  bool one(std::vector<bool>& pooled) {
    Objective objective(fields_, rows_, residuals_, options_);
    const double now = objective.loss(units_);
    for (const std::size_t j : order(objective).which) {
      if (put_back({j}, units_, objective.free(), allowed(now), pooled)) return true;
    }
    return false;
  }

  bool put_back(const std::vector<std::size_t>& which, const std::vector<double>& from,
                const std::vector<std::size_t>& free, double most, std::vector<bool>& pooled) {
    std::vector<Field> fields = fields_;
    std::vector<double> units;
    for (const std::size_t j : which) fields[free[j]].fixed = true;
    for (std::size_t j = 0; j < free.size(); ++j) {
      if (!fields[free[j]].fixed) units.push_back(std::clamp(from[j], 0.0, 1.0));
    }
    Objective rest(fields, rows_, residuals_, options_);
    double loss = rest.loss(units);
    if (!units.empty()) std::tie(units, loss) = search(rest, units, 0.02, options_.max_evaluations / 2);
    if (loss > most) return false;
    for (const std::size_t j : which) pooled[free[j]] = true;
    fields_ = fields;
    units_ = units;
    return true;
  }

  std::vector<Field>& fields_;
  std::span<const std::size_t> rows_;
  const Residuals& residuals_;
  const FitOptions& options_;
  std::vector<double> units_;
  double loss_ = 0.0;  ///< of the fit with all fields free
};

}  // namespace

bool is_fixed(const FitOptions& options, std::string_view field) {
  return std::find(options.fixed.begin(), options.fixed.end(), field) != options.fixed.end();
}

std::vector<Field> fields_of(const KernelConstants& prior, const FitOptions& options) {
  const std::vector<double> values = values_of(prior);
  std::vector<Field> fields;
  for (const FieldFacts& field : prior.kernel->fields()) {
    fields.push_back(
        {field.name, field.low, field.high, values[fields.size()], field.fixed || is_fixed(options, field.name)});
  }
  return fields;
}

KernelConstants from_values(std::span<const double> values, const KernelConstants& start) {
  return {start.kernel, start.kernel->from_numbers(values)};
}

std::vector<double> values_of(const KernelConstants& constants) { return constants.kernel->numbers(constants.block); }

double log_ratio(Seconds predicted, Seconds measured) {
  const double ratio = std::log(predicted / measured);
  return std::isfinite(ratio) ? ratio : 10.0;
}

std::vector<int> folds_of(std::span<const std::uint64_t> groups, int folds) {
  std::map<std::uint64_t, std::size_t> rows_of;
  for (const std::uint64_t group : groups) ++rows_of[group];
  std::vector<std::uint64_t> order;
  for (const auto& [group, rows] : rows_of) order.push_back(group);
  const auto rank = [&](std::uint64_t group) {
    return std::tuple(-static_cast<double>(rows_of[group]), Random(group).bits());
  };
  std::sort(order.begin(), order.end(), [&](std::uint64_t a, std::uint64_t b) { return rank(a) < rank(b); });
  std::vector<std::size_t> filled(static_cast<std::size_t>(std::max(folds, 1)));
  std::map<std::uint64_t, int> fold_of;
  for (const std::uint64_t group : order) {
    const auto emptiest = std::min_element(filled.begin(), filled.end());
    *emptiest += rows_of[group];
    fold_of[group] = static_cast<int>(emptiest - filled.begin());
  }
  std::vector<int> of_rows;
  for (const std::uint64_t group : groups) of_rows.push_back(fold_of[group]);
  return of_rows;
}

std::string few_rows(std::size_t rows, const FitOptions& options) {
  constexpr std::size_t kLeast = 2;
  if (rows >= kLeast) return "";
  return options.what + ": " + std::to_string(rows) + " rows are too few to fit its constants; at least " +
         std::to_string(kLeast) + " are needed";
}

bool leans_on_priors(std::size_t rows, std::span<const FieldReport> fields) {
  const auto fitted = std::count_if(fields.begin(), fields.end(), [](const FieldReport& field) {
    return field.state != FieldState::kFixed && field.state != FieldState::kPooled;
  });
  return rows < std::max<std::size_t>(20, 3 * static_cast<std::size_t>(fitted));
}

Solution solve(std::span<const Field> fields, std::span<const std::size_t> rows, const Residuals& residuals,
               const FitOptions& options, bool statistics) {
  std::vector<Field> mine(fields.begin(), fields.end());
  const std::vector<std::size_t> seen = sample(rows, options);
  std::vector<double> units;
  Solution solution;
  {
    Objective objective(mine, seen, residuals, options);
    units = best_of_starts(objective, options);
    solution.values = objective.values(units);
  }
  if (!statistics) return solution;
  std::vector<bool> unknown(mine.size(), false);
  if (options.pools && !units.empty()) {
    units = Pooling(mine, seen, residuals, options, units).run(unknown);
    solution.values = Objective(mine, seen, residuals, options).values(units);
  }
  // Replace fields that the rows do not determine by their priors, one at a time: of two fields that only act together,
  // the other one is then determined. The remaining fields are refitted.
  while (true) {
    Objective objective(mine, seen, residuals, options);
    const std::vector<double> errors = standard_errors(objective, units, seen.size(), options.huber_width);
    const std::optional<std::size_t> dropped = least_identified(objective, units, errors);
    if (!dropped) {
      solution.reports = report(objective, mine, units, errors);
      break;
    }
    unknown[objective.free()[*dropped]] = mine[objective.free()[*dropped]].fixed = true;
    units.erase(units.begin() + static_cast<std::ptrdiff_t>(*dropped));
    Objective rest(mine, seen, residuals, options);
    if (!units.empty()) units = search(rest, units, 0.02, options.max_evaluations).first;
    solution.values = rest.values(units);
  }
  for (std::size_t i = 0; i < mine.size(); ++i) {
    if (!unknown[i]) continue;
    solution.reports[i].state = options.pools ? FieldState::kPooled : FieldState::kNotIdentified;
    if (options.pools) continue;
    // as uncertain as any value within the bounds
    solution.reports[i].standard_error = (mine[i].high - mine[i].low) / std::sqrt(12.0);
  }
  return solution;
}

ConstantsBlock kept_block(const FitOptions& options, const std::string& block) {
  const ConstantsBlock found = block_at(*options.kept, block);
  if (!found) throw ConfigError(options.what + ": there are no constants to keep");
  return found;
}

ConstantsBlock block_beneath(const FitOptions& options, const std::string& block) {
  if (options.beneath == nullptr) return {};
  const auto found = options.beneath->find(block);
  return found != options.beneath->end() ? found->second : ConstantsBlock{};
}

Solution kept_solution(std::span<const Field> fields, std::span<const double> values, const FitRecord& record) {
  Solution solution{{values.begin(), values.end()}, {}};
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const double error = i < record.standard_errors.size() ? record.standard_errors[i] : 0.0;
    const FieldState state = error > 0.0 ? FieldState::kFitted : FieldState::kFixed;
    solution.reports.push_back({fields[i].name, values[i], error, state});
  }
  return solution;
}

FitRecord renewed(FitRecord record, const FitOptions& options, const ErrorSummary& own, double scatter) {
  if (!options.source.empty()) record.source = options.source;
  record.rows = static_cast<int>(own.rows);
  record.mape = own.mape;
  record.discrepancy = scatter;
  return record;
}

FitRecord make_record(const FitOptions& options, const Solution& solution, const ErrorSummary& own, double scatter) {
  FitRecord record;
  record.provenance = Provenance::kMeasured;
  record.source = options.source;
  record.rows = static_cast<int>(own.rows);
  record.mape = own.mape;
  record.discrepancy = scatter;
  for (const FieldReport& field : solution.reports)
    record.standard_errors.push_back(field.is_determined() ? field.standard_error : 0.0);
  return record;
}

}  // namespace fit_detail
}  // namespace roofcast::calibrate
