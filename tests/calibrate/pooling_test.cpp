#include "calibrate/pooling.h"

#include <doctest/doctest.h>

#include "calibrate/fit.h"
#include "hw/parameters.h"

using namespace roofcast;
using namespace roofcast::calibrate;

TEST_CASE("pooling: what it costs to put constants back while the others follow") {
  // l = x^2 + y^2 + x y - 3 y  about (-1, 2), where l = -3; H = {{2, 1}, {1, 2}}, H^-1 = {{2, -1}, {-1, 2}} / 3.
  // x back to 0: y = 1.5, l = -2.25, a cost of 0.75 = 1 / (2 x 2/3). Then y back to 0: l = 0, 3 in all.
  Eigen::MatrixXd curvature(2, 2);
  curvature << 2.0, 1.0, 1.0, 2.0;
  const PoolingOrder order = pooling_order(curvature, {-1.0, 2.0}, {0.0, 0.0});
  REQUIRE(order.which == std::vector<std::size_t>{0, 1});
  CHECK(order.cost[0] == doctest::Approx(0.75));
  CHECK(order.cost[1] == doctest::Approx(3.0));
  CHECK(order.minimum[0][0] == doctest::Approx(0.0));
  CHECK(order.minimum[0][1] == doctest::Approx(1.5));
  CHECK(order.minimum[1][1] == doctest::Approx(0.0));
}

namespace {

/// t = launch + x / rate + squares x^2
struct Toy {
  double launch = 2.0, rate = 1.0, squares = 0.5;
  static std::span<const Parameter<Toy>> fields() {
    static constexpr Parameter<Toy> kFields[] = {{"launch", &Toy::launch, 0.5, 20.0, Transfer::kKept, ""},
                                                 {"rate", &Toy::rate, 0.1, 20.0, Transfer::kKept, ""},
                                                 {"squares", &Toy::squares, 0.0, 2.0, Transfer::kKept, ""}};
    return kFields;
  }
};
struct ToyRow {
  double x = 0;
  struct {
    Seconds latency{};
  } header;
};
Seconds time_of(const ToyRow& row, const Toy& p) {
  return Seconds(p.launch + row.x / p.rate + p.squares * row.x * row.x);
}

std::vector<ToyRow> rows_of(const Toy& truth, int count, double noise) {
  std::vector<ToyRow> rows;
  for (int i = 0; i < count; ++i) {
    ToyRow row{.x = 0.1 + 5.0 * i / count, .header = {}};
    row.header.latency = time_of(row, truth) * (1.0 + noise * ((i * 7919 % 101) / 50.0 - 1.0));
    rows.push_back(row);
  }
  return rows;
}

FitResult<Toy> fit_toy(const std::vector<ToyRow>& rows, const Toy& beneath, bool pools) {
  FitOptions options;
  options.pools = pools;
  return fit<Toy>(
      std::span<const ToyRow>(rows), time_of, options,
      [](const ToyRow& row) { return static_cast<std::uint64_t>(row.x * 4); }, beneath);
}

}  // namespace

TEST_CASE("pooling: a fit frees the constant that differs, and leaves the others as they are beneath") {
  const Toy beneath{.launch = 3.0, .rate = 2.0, .squares = 0.2};
  const std::vector<ToyRow> rows = rows_of({.launch = 4.5, .rate = 2.0, .squares = 0.2}, 200, 0.02);
  const FitResult<Toy> pooled = fit_toy(rows, beneath, true);
  CHECK(pooled.fields[0].state == FieldState::kFitted);
  CHECK(pooled.value.launch == doctest::Approx(4.5).epsilon(0.01));
  CHECK(pooled.fields[1].state == FieldState::kPooled);
  CHECK(pooled.value.rate == 2.0);
  CHECK(pooled.fields[2].state == FieldState::kPooled);
  CHECK(pooled.value.squares == 0.2);
  CHECK(pooled.fields[1].standard_error == 0.0);
  CHECK(pooled.on_rows.mape < 1.03 * fit_toy(rows, beneath, false).on_rows.mape);
  // Alone, the same rows tell all three.
  for (const FieldReport& field : fit_toy(rows, beneath, false).fields) CHECK(field.state == FieldState::kFitted);
}

TEST_CASE("pooling: where nothing differs nothing is told, and where all differs all is") {
  const Toy beneath{.launch = 3.0, .rate = 2.0, .squares = 0.2};
  for (const FieldReport& field : fit_toy(rows_of(beneath, 100, 0.03), beneath, true).fields)
    CHECK(field.state == FieldState::kPooled);
  const FitResult<Toy> other = fit_toy(rows_of({.launch = 6.0, .rate = 1.0, .squares = 0.6}, 200, 0.01), beneath, true);
  for (const FieldReport& field : other.fields) CHECK(field.state == FieldState::kFitted);
  CHECK(other.value.rate == doctest::Approx(1.0).epsilon(0.05));
}
