#include "library/grid.h"

#include <algorithm>
#include <limits>
#include <map>

#include "sim/plan/parallel.h"

namespace roofcast::library {
namespace {

/// Columns that grow row by row. A name that first appears later gets blanks for the earlier rows.
class Columns {
 public:
  explicit Columns(std::size_t rows) : rows_(rows) {}

  void set(std::size_t row, const std::string& name, const MetricValue& value) {
    const std::size_t column = positions_.try_emplace(name, columns_.size()).first->second;
    if (column == columns_.size()) columns_.emplace_back(name, blank(value));
    std::visit(
        [&](const auto& plain) {
          using Plain = std::decay_t<decltype(plain)>;
          using Cell = std::conditional_t<std::is_same_v<Plain, bool>, std::uint8_t, Plain>;
          std::get<std::vector<Cell>>(columns_[column].second)[row] = plain;
        },
        value);
  }
  std::vector<std::pair<std::string, Column>> take() { return std::move(columns_); }

 private:
  Column blank(const MetricValue& like) const {
    if (std::holds_alternative<double>(like))
      return std::vector<double>(rows_, std::numeric_limits<double>::quiet_NaN());
    if (std::holds_alternative<bool>(like)) return std::vector<std::uint8_t>(rows_);
    return std::vector<std::string>(rows_);
  }

  std::size_t rows_;
  std::map<std::string, std::size_t> positions_;
  std::vector<std::pair<std::string, Column>> columns_;
};

std::vector<std::vector<std::uint32_t>> positions_of(const SweepSpec& sweep, const std::vector<std::uint64_t>& points) {
  std::vector<std::vector<std::uint32_t>> positions(sweep.axes.size());
  std::uint64_t faster = 1;  // number of points before this axis advances
  for (std::size_t axis = sweep.axes.size(); axis-- > 0;) {
    const std::uint64_t values = sweep.axes[axis].values.size();
    for (const std::uint64_t point : points)
      positions[axis].push_back(static_cast<std::uint32_t>(point / faster % values));
    faster *= values;
  }
  return positions;
}

}  // namespace

Grid estimate_grid(const SweepSpec& sweep, bool ideal,
                   const std::function<void(std::uint64_t done, std::uint64_t of)>& progress) {
  constexpr std::size_t kChunk = 2048;  // number of points whose results are held as lists at one time
  const std::vector<std::uint64_t> points = kept_points(sweep);
  const Fidelity fidelity = ideal ? Fidelity::kIdeal : Fidelity::kCalibrated;
  SpecCache specs;
  PointRunner runner(false, fidelity, specs);
  Columns columns(points.size());
  std::size_t failed = 0;
  std::string first_error;
  for (std::size_t begin = 0; begin < points.size(); begin += kChunk) {
    const std::size_t count = std::min(kChunk, points.size() - begin);
    std::vector<MetricsList> results(count);
    parallel_for_each_index(count, [&](std::size_t i) {
      try {
        results[i] = runner.run(point_scenario(sweep, points[begin + i]));
      } catch (const ConfigError& error) {
        results[i] = {{"error", std::string(error.what())}};
      }
    });
    for (std::size_t i = 0; i < count; ++i) {
      for (const auto& [name, value] : results[i]) columns.set(begin + i, name, value);
      if (results[i].size() != 1 || results[i].front().first != "error") continue;
      if (failed++ == 0) first_error = std::get<std::string>(results[i].front().second);
    }
    if (progress) progress(begin + count, points.size());
  }
  if (failed == points.size()) throw ConfigError(first_error);
  return {.positions = positions_of(sweep, points), .columns = columns.take()};
}

}  // namespace roofcast::library
