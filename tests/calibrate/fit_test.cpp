#include "calibrate/fit.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <string>

#include "base/error.h"
#include "base/error_summary.h"
#include "base/random.h"

using namespace roofcast;
using namespace roofcast::calibrate;

namespace {

/// A made-up kernel: launch cost, then bytes over a part of 1000 GB/s.
struct StreamParameters {
  double launch_us = 5.0;
  double bandwidth_fraction = 0.7;
  double idle = 0.5;  ///< plays no part
  static std::span<const Parameter<StreamParameters>> fields() {
    static constexpr std::array<Parameter<StreamParameters>, 3> kFields{{
        {"launch_us", &StreamParameters::launch_us, 0.0, 100.0, Transfer::kCycles, "launch"},
        {"bandwidth_fraction", &StreamParameters::bandwidth_fraction, 0.05, 1.0, Transfer::kMemoryShare, "of the peak"},
        {"idle", &StreamParameters::idle, 0.0, 1.0, Transfer::kKept, "nothing"},
    }};
    return kFields;
  }
};

struct Header {
  Seconds latency;
};
struct StreamRow {
  Header header;
  double bytes;
};

Seconds stream(const StreamRow& row, const StreamParameters& p) {
  return p.launch_us * kMicrosecond + Bytes(row.bytes) / (1e12 * p.bandwidth_fraction * (kByte / kSecond));
}

std::vector<StreamRow> rows_of(const StreamParameters& truth, double noise, int outlier_every) {
  Random random(42);
  std::vector<StreamRow> rows;
  for (int i = 0; i < 300; ++i) {
    StreamRow row{{}, std::pow(10.0, 4.0 + 5.0 * random.uniform())};
    double factor = std::exp(noise * random.normal());
    if (outlier_every > 0 && i % outlier_every == 0) factor *= 5.0;
    row.header.latency = stream(row, truth) * factor;
    rows.push_back(row);
  }
  return rows;
}

}  // namespace

TEST_CASE("fit: recovers the constants of made-up noisy samples") {
  const StreamParameters truth{12.0, 0.85, 0.5};
  const std::vector<StreamRow> rows = rows_of(truth, 0.05, 0);
  FitOptions options;
  options.what = "stream";
  const auto result = fit<StreamParameters>(std::span<const StreamRow>(rows), stream, options);
  CHECK(result.value.launch_us == doctest::Approx(12.0).epsilon(0.02));
  CHECK(result.value.bandwidth_fraction == doctest::Approx(0.85).epsilon(0.02));
  // noise of 5 %: mean |error| = 0.05 * sqrt(2 / pi) = 4 %, scatter 5 %
  CHECK(result.on_rows.mape == doctest::Approx(0.04).epsilon(0.15));
  CHECK(result.left_out.rows > 30);
  CHECK(result.record.discrepancy == doctest::Approx(0.05).epsilon(0.2));
  // standard error of a mean of about 150 rows at 5 %: 0.4 % of the value, so the truth lies within a few
  CHECK(std::abs(result.value.launch_us - 12.0) < 4.0 * result.fields[0].standard_error);
  CHECK(result.fields[0].standard_error < 0.2);
  CHECK(result.fields[1].standard_error < 0.02);
}

TEST_CASE("fit: one row in ten five times too slow moves it little") {
  const StreamParameters truth{12.0, 0.85, 0.5};
  FitOptions options;
  options.folds = 0;
  const std::vector<StreamRow> rows = rows_of(truth, 0.02, 10);
  const auto result = fit<StreamParameters>(std::span<const StreamRow>(rows), stream, options);
  CHECK(result.value.launch_us == doctest::Approx(12.0).epsilon(0.05));
  CHECK(result.value.bandwidth_fraction == doctest::Approx(0.85).epsilon(0.05));
  CHECK(result.left_out.rows == 0);
}

TEST_CASE("fit: what the rows do not tell keeps its prior and says so") {
  const std::vector<StreamRow> rows = rows_of({12.0, 0.85, 0.5}, 0.05, 0);
  FitOptions options;
  options.folds = 0;
  auto result = fit<StreamParameters>(std::span<const StreamRow>(rows), stream, options);
  CHECK(result.fields[2].state == FieldState::kNotIdentified);
  CHECK(result.value.idle == 0.5);
  CHECK(result.fields[0].state == FieldState::kFitted);

  options.fixed = {"launch_us"};
  result = fit<StreamParameters>(std::span<const StreamRow>(rows), stream, options);
  CHECK(result.value.launch_us == 5.0);
  CHECK(result.fields[0].state == FieldState::kFixed);
}

TEST_CASE("fit: a constant that the data push past its bound stops there and is flagged") {
  // Faster than 1000 GB/s: the fraction would be 1.3.
  const std::vector<StreamRow> rows = rows_of({12.0, 1.3, 0.5}, 0.02, 0);
  FitOptions options;
  options.folds = 0;
  const auto result = fit<StreamParameters>(std::span<const StreamRow>(rows), stream, options);
  CHECK(result.value.bandwidth_fraction == doctest::Approx(1.0).epsilon(1e-3));
  CHECK(result.fields[1].state == FieldState::kAtBound);
}

TEST_CASE("fit: the same seed gives the same constants") {
  const std::vector<StreamRow> rows = rows_of({12.0, 0.85, 0.5}, 0.05, 0);
  FitOptions options;
  options.max_rows = 100;
  const auto a = fit<StreamParameters>(std::span<const StreamRow>(rows), stream, options);
  const auto b = fit<StreamParameters>(std::span<const StreamRow>(rows), stream, options);
  CHECK(a.value.launch_us == b.value.launch_us);
  CHECK(a.left_out.mape == b.left_out.mape);
}

TEST_CASE("fit: refuses too few rows") {
  std::vector<StreamRow> rows = rows_of({12.0, 0.85, 0.5}, 0.05, 0);
  rows.resize(1);
  FitOptions options;
  options.what = "stream of x100";
  try {
    fit<StreamParameters>(std::span<const StreamRow>(rows), stream, options);
    FAIL("accepted one row");
  } catch (const ConfigError& error) {
    CHECK(std::string(error.what()) ==
          "stream of x100: 1 rows are too few to fit its constants; at least 2 are needed");
  }
}

TEST_CASE("fit: constants that are kept stay, and their discrepancy holds nine of ten rows") {
  const std::vector<StreamRow> rows = rows_of({12.0, 0.85, 0.5}, 0.05, 0);
  const Fitted<StreamParameters> kept{{12.5, 0.85, 0.25},
                                      {.provenance = Provenance::kCarriedOver,
                                       .source = "elsewhere",
                                       .rows = 7,
                                       .mape = 0.5,
                                       .discrepancy = 0.3,
                                       .standard_errors = {0.2, 0.01, 0.0}}};
  FitOptions options;
  options.folds = 0;
  const auto each = [&](const StreamRow& row) { return static_cast<std::uint64_t>(&row - rows.data()); };
  const std::span<const StreamRow> all(rows);
  const auto result = fit<StreamParameters>(all, stream, options, each, {}, &kept);
  CHECK(result.value.launch_us == 12.5);
  CHECK(result.value.idle == 0.25);
  CHECK(result.record.provenance == Provenance::kCarriedOver);
  CHECK(result.record.source == "elsewhere");
  CHECK(result.record.standard_errors == kept.record.standard_errors);
  CHECK(result.fields[0].state == FieldState::kFitted);
  CHECK(result.fields[2].state == FieldState::kFixed);
  CHECK(result.record.rows == 300);
  CHECK(result.record.mape == doctest::Approx(result.on_rows.mape));
  std::size_t within = 0;
  for (const StreamRow& row : rows) {
    const double off = std::abs(std::log(stream(row, kept.value) / row.header.latency));
    if (off <= kNinetyPercent * result.record.discrepancy) ++within;
  }
  CHECK(within == 270);

  // Fits that did not see a fold score it; constants kept that are wrong for these rows count on all of them.
  options.folds = 5, options.folds_run = 5, options.source = "a new table";
  const auto folded = fit<StreamParameters>(all, stream, options, each, {}, &kept);
  CHECK(folded.left_out.rows == 300);
  CHECK(folded.record.discrepancy >= result.record.discrepancy);
  CHECK(folded.record.source == "a new table");
  Fitted<StreamParameters> wrong = kept;
  wrong.value.launch_us = 50.0;
  CHECK(fit<StreamParameters>(all, stream, options, each, {}, &wrong).record.discrepancy > 0.5);
}

TEST_CASE("fit: few large groups are left out one by one, many small ones in folds of a size") {
  // 40, 30, 20 and 2 rows: one fold each, the fifth stays empty
  std::vector<std::uint64_t> groups;
  for (const auto& [group, rows] : {std::pair{7u, 20}, {3u, 40}, {9u, 2}, {4u, 30}})
    groups.insert(groups.end(), rows, group);
  const std::vector<int> folds = fit_detail::folds_of(groups, 5);
  CHECK(folds[0] == 2);
  CHECK(folds[20] == 0);
  CHECK(folds[60] == 3);
  CHECK(folds[62] == 1);
  for (std::size_t i = 1; i < groups.size(); ++i) {
    if (groups[i] == groups[i - 1]) CHECK(folds[i] == folds[i - 1]);
  }
  // 100 groups of three rows, whatever their order: 60 rows a fold
  groups.clear();
  for (std::uint64_t i = 0; i < 300; ++i) groups.push_back(i % 100);
  std::array<int, 5> rows{};
  for (const int fold : fit_detail::folds_of(groups, 5)) ++rows[static_cast<std::size_t>(fold)];
  CHECK(rows == std::array<int, 5>{60, 60, 60, 60, 60});
}

TEST_CASE("fit: the scatter of errors is such that nine of ten lie within 1.645 of it, however wrong the tenth") {
  std::vector<double> predicted(11, 10.0), measured(11, 10.0);
  for (std::size_t i = 0; i < 10; ++i) measured[i] = 10.0 * std::exp(0.01 * static_cast<double>(i + 1));
  measured[10] = 1000.0;
  CHECK(log_scatter(predicted, measured) == doctest::Approx(0.10 / 1.645));
}

TEST_CASE("error summary: worked numbers") {
  // errors +10 %, -20 %, 0, +30 % of 10, 10, 20, 40
  const std::vector<double> predicted{11, 8, 20, 52}, measured{10, 10, 20, 40};
  const ErrorSummary s = summarize(predicted, measured);
  CHECK(s.mape == doctest::Approx((0.1 + 0.2 + 0.0 + 0.3) / 4));
  CHECK(s.bias == doctest::Approx((0.1 - 0.2 + 0.0 + 0.3) / 4));
  CHECK(s.median == doctest::Approx(0.15));
  CHECK(s.p90 == doctest::Approx(0.27));  // 0.7 of the way from 0.2 to 0.3
  CHECK(s.time_weighted == doctest::Approx((1 + 2 + 0 + 12) / 80.0));
  CHECK(summarize({}, {}).rows == 0);
}
