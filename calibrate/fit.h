#pragma once
// Bounded, robust, derivative-free fit of a kernel's constants to measured times.
//   auto result = fit<StateParameters>(rows, [&](const StateRow& row, const StateParameters& p) { return seconds; },
//                                     options, [](const StateRow& row) { return family_of_shapes(row); });
// A Row has `.header.latency` (Seconds). The predictor must be a pure function; it is called about 1e6 times.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/error_summary.h"
#include "base/units.h"
#include "calibrate/field_report.h"
#include "hw/constants_file.h"
#include "hw/kernel.h"
#include "hw/parameters.h"

namespace roofcast::calibrate {

struct FitOptions {
  std::string what;    ///< named in errors and notes: "gemm bf16, h100-sxm, trtllm"
  std::string source;  ///< stored in the record: data set, engine version, date
  int starts = 3;      ///< the first from the priors, the others from random points around them
  std::uint64_t seed = 1;
  int max_evaluations = 1500;  ///< of the loss, per start; the best start gets the same number again
  int max_rows = 1200;         ///< the search uses at most this many rows, evenly sampled; the statistics use all
  double huber_width = 0.10;   ///< in log(predicted / measured): larger errors count linearly
  double prior_weight = 1e-4;  ///< pull towards the priors (squared distance, bounds = 0..1); stronger with few rows
  int folds = 5;               ///< groups of rows to leave out; 0 or 1: leave nothing out
  int folds_run = 1;           ///< how many folds are actually fitted and scored
  std::vector<std::string> fixed;               ///< fields that keep their priors
  std::vector<std::string>* too_few = nullptr;  ///< if set, blocks with too few rows are listed here instead of refused
  const class Efficiency* before = nullptr;     ///< current constants, from which fits start; null: start from priors
  /// Constants to keep, with their standard errors, provenance and source. Rows, mape and discrepancy are recomputed
  /// for the given rows; discrepancy from folds that did not see them. Null: keep none.
  const class Efficiency* kept = nullptr;
  /// The inherited constants of each block (hw/constants_file.h), from which fits start. Null: start from priors.
  const BlocksBeneath* beneath = nullptr;
  bool pools = false;                                ///< the prior is such a block
  std::vector<double> other_start;                   ///< a further starting point of the search; empty: none
  std::function<void(const std::string&)> begins{};  ///< called with "gemm bf16, h100-sxm, trtllm, search 2 of 3"
};

/// Constants of a kernel that is known only at run time; takes the place of P in a fit.
struct KernelConstants {
  const Kernel* kernel = nullptr;
  ConstantsBlock block;
};

template <class P>
struct FitResult {
  P value;
  FitRecord record;                 ///< provenance: measured; discrepancy from the left-out rows
  std::vector<FieldReport> fields;  ///< fields that do not affect the predictions keep their prior and are marked
  ErrorSummary on_rows;             ///< of the fit on its own rows
  ErrorSummary left_out;            ///< of fits that did not see these rows; rows = 0 if nothing was left out
};

namespace fit_detail {

struct Field {
  std::string_view name;
  double low = 0, high = 1, prior = 0;
  bool fixed = false;
};
/// log(predicted / measured) of the listed rows for these values.
using Residuals =
    std::function<void(std::span<const double> values, std::span<const std::size_t> rows, std::span<double> out)>;
struct Solution {
  std::vector<double> values;
  std::vector<FieldReport> reports;
};
Solution solve(std::span<const Field> fields, std::span<const std::size_t> rows, const Residuals& residuals,
               const FitOptions& options, bool statistics);
/// Empty if there are enough rows for a fit, else the reason.
std::string few_rows(std::size_t rows, const FitOptions& options);
/// The fold of each row. Groups go to the fold with the fewest rows so far, largest first, so that a few large groups
/// are left out one by one. Groups of equal size are ordered by a hash, which separates neighbours.
std::vector<int> folds_of(std::span<const std::uint64_t> groups, int folds);
FitRecord make_record(const FitOptions& options, const Solution& solution, const ErrorSummary& own, double scatter);

bool is_fixed(const FitOptions& options, std::string_view field);

template <class P>
std::vector<Field> fields_of(const P& prior, const FitOptions& options) {
  std::vector<Field> fields;
  for (const Parameter<P>& field : P::fields()) {
    const bool fixed = field.fixed || is_fixed(options, field.name);
    fields.push_back({field.name, field.low, field.high, prior.*field.member, fixed});
  }
  return fields;
}

std::vector<Field> fields_of(const KernelConstants& prior, const FitOptions& options);
KernelConstants from_values(std::span<const double> values, const KernelConstants& start);
std::vector<double> values_of(const KernelConstants& constants);

template <class P>
P from_values(std::span<const double> values, P start) {
  std::size_t i = 0;
  for (const Parameter<P>& field : P::fields()) start.*field.member = values[i++];
  return start;
}

template <class P>
std::vector<double> values_of(const P& constants) {
  std::vector<double> values;
  for (const Parameter<P>& field : P::fields()) values.push_back(constants.*field.member);
  return values;
}

/// Whether the priors decide more than the rows: fewer than three rows per free constant, or 20 in all.
bool leans_on_priors(std::size_t rows, std::span<const FieldReport> fields);

/// The block "KERNEL.FORMAT" of `options.kept` (throws ConfigError if missing), or of `options.beneath` (else null).
ConstantsBlock kept_block(const FitOptions& options, const std::string& block);
ConstantsBlock block_beneath(const FitOptions& options, const std::string& block);
/// The constants of a block in the form of a fit's result. Those without a standard error were fixed.
Solution kept_solution(std::span<const Field> fields, std::span<const double> values, const FitRecord& record);
/// `record` with new rows, mape and discrepancy, and with the new source if there is one.
FitRecord renewed(FitRecord record, const FitOptions& options, const ErrorSummary& own, double scatter);

double log_ratio(Seconds predicted, Seconds measured);  ///< an invalid prediction counts as wrong by a factor of e^10

}  // namespace fit_detail

/// Whether the number of rows is enough for a fit. If not, adds to `options.too_few`; without that list, returns true
/// and `fit` throws.
inline bool enough_rows(std::size_t rows, const FitOptions& options) {
  const std::string few = fit_detail::few_rows(rows, options);
  if (few.empty() || !options.too_few) return true;
  options.too_few->push_back(few);
  return false;
}

/// Minimises the mean Huber loss of log(predicted / measured) (NLopt's subplex within bounds, several starts). Then
/// leaves out whole groups in folds to score the model on unseen shapes. `kept`, if given, replaces the minimum.
template <class P, class Row, class Predict, class Group>
FitResult<P> fit(std::span<const Row> rows, Predict predict, const FitOptions& options, Group group, P prior = {},
                 const Fitted<P>* kept = nullptr) {
  using namespace fit_detail;
  std::vector<Field> fields = fields_of(prior, options);
  if (const std::string few = few_rows(rows.size(), options); !few.empty()) throw ConfigError(few);
  const Residuals residuals = [&](std::span<const double> values, std::span<const std::size_t> which,
                                  std::span<double> out) {
    const P p = from_values(values, prior);
    for (std::size_t i = 0; i < which.size(); ++i) {
      out[i] = log_ratio(predict(rows[which[i]], p), rows[which[i]].header.latency);
    }
  };
  const auto score = [&](std::span<const double> values, std::span<const std::size_t> which,
                         std::vector<double>& predicted, std::vector<double>& measured) {
    const P p = from_values(values, prior);
    for (const std::size_t i : which) {
      predicted.push_back(predict(rows[i], p).base());
      measured.push_back(rows[i].header.latency.base());
    }
  };
  std::vector<std::size_t> all(rows.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;

  FitResult<P> result;
  const Solution solution =
      kept ? kept_solution(fields, values_of(kept->value), kept->record) : solve(fields, all, residuals, options, true);
  result.value = from_values(solution.values, prior);
  result.fields = solution.reports;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (result.fields[i].state == FieldState::kPooled) fields[i].fixed = true;
  }
  std::vector<double> predicted, measured;
  score(solution.values, all, predicted, measured);
  result.on_rows = summarize(predicted, measured);
  double scatter = log_scatter(predicted, measured);
  predicted.clear();
  measured.clear();
  std::vector<std::uint64_t> groups;
  for (const Row& row : rows) groups.push_back(group(row));
  const std::vector<int> folds = folds_of(groups, options.folds);
  for (int fold = 0; options.folds > 1 && fold < std::min(options.folds_run, options.folds); ++fold) {
    std::vector<std::size_t> seen, unseen;
    for (const std::size_t i : all) (folds[i] == fold ? unseen : seen).push_back(i);
    if (unseen.empty() || seen.size() < all.size() / 2) continue;
    score(solve(fields, seen, residuals, options, false).values, unseen, predicted, measured);
  }
  result.left_out = summarize(predicted, measured);
  if (!predicted.empty()) scatter = std::max(scatter, log_scatter(predicted, measured));
  if (leans_on_priors(rows.size(), result.fields)) scatter = std::max(scatter, FitRecord{}.discrepancy);
  result.record = kept ? renewed(kept->record, options, result.on_rows, scatter)
                       : make_record(options, solution, result.on_rows, scatter);
  return result;
}

/// Without groups, every row is its own group.
template <class P, class Row, class Predict>
FitResult<P> fit(std::span<const Row> rows, Predict predict, const FitOptions& options) {
  return fit<P>(rows, predict, options, [&](const Row& row) { return static_cast<std::uint64_t>(&row - rows.data()); });
}

}  // namespace roofcast::calibrate
