#include "cli/calibrate_charts.h"

#include <algorithm>
#include <functional>
#include <map>

#include <fmt/format.h>

namespace roofcast::cli {
namespace {

double seconds_of(const calibrate::Record& r) { return calibrate::statistics_of(r.samples_us).median_us * 1e-6; }

/// One line per name, with points ordered by x.
struct Curve {
  std::string name;
  double x = 0, y = 0;
};

reports::Chart chart_of(const calibrate::RecordFile& file, reports::Chart chart,
                        const std::function<std::optional<Curve>(const calibrate::Record&)>& read) {
  std::map<std::string, std::map<double, double>> curves;
  for (const calibrate::Record& record : file.records) {
    if (!record.has_time()) continue;
    if (const std::optional<Curve> curve = read(record)) curves[curve->name][curve->x] = curve->y;
  }
  for (const auto& [name, points] : curves) {
    reports::Series series{.name = name, .shape = reports::Shape::kLinePoints};
    for (const auto& [x, y] : points) {
      series.x.push_back(x);
      series.y.push_back(y);
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

/// The largest number of blocks, used by the sweep over working sets.
std::int64_t most_blocks(const calibrate::RecordFile& file) {
  std::int64_t most = 0;
  for (const calibrate::Record& r : file.records) {
    if (r.point.op == "stream") most = std::max(most, r.point.number("blocks"));
  }
  return most;
}

reports::Chart residual_chart(const calibrate::MeasuredTable& measured, const calibrate::KernelValidation& found) {
  reports::Chart chart{.id = "residuals-gemm", .title = "Predicted over measured time of products"};
  chart.x = {.title = "m, rows", .log = true};
  chart.y = {.title = "predicted / measured", .log = true};
  const CsvTable& table = measured.table;
  std::map<std::string, reports::Series> series;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const std::string dtype(table.at(row, table.column("dtype")));
    reports::Series& one = series[dtype];
    one.name = dtype;
    one.shape = reports::Shape::kPoints;
    one.x.push_back(table.number(row, table.column("m")));
    one.y.push_back(found.predicted[row].in(kMicrosecond) / table.number(row, table.column("latency_us")));
  }
  for (auto& [dtype, one] : series) chart.series.push_back(std::move(one));
  chart.lines.push_back({.at = 1.0, .label = "exact"});
  return chart;
}

}  // namespace

std::vector<reports::Chart> measurement_charts(const calibrate::RecordFile& file,
                                               const std::vector<calibrate::MeasuredTable>& tables,
                                               const std::vector<calibrate::KernelValidation>& found) {
  std::vector<reports::Chart> charts;
  const std::int64_t blocks = most_blocks(file);
  reports::Chart by_size{.id = "bandwidth-by-working-set", .title = "Bandwidth by working set"};
  by_size.x = {.title = "bytes", .log = true};
  by_size.y = {.title = "TB/s"};
  charts.push_back(chart_of(file, std::move(by_size), [&](const calibrate::Record& r) -> std::optional<Curve> {
    if (r.point.op != "stream" || r.point.number("blocks") != blocks) return std::nullopt;
    return Curve{r.point.word("kind"), static_cast<double>(r.point.number("bytes")), r.bytes / seconds_of(r) / 1e12};
  }));
  reports::Chart by_blocks{.id = "bandwidth-by-blocks", .title = "Bandwidth by resident blocks"};
  by_blocks.x = {.title = "blocks", .log = true};
  by_blocks.y = {.title = "TB/s"};
  charts.push_back(chart_of(file, std::move(by_blocks), [](const calibrate::Record& r) -> std::optional<Curve> {
    const bool swept =
        r.point.op == "stream" && (r.point.number("bytes") == 16 << 20 || r.point.number("bytes") == 1 << 30);
    if (!swept) return std::nullopt;
    return Curve{fmt::format("{} {} MiB", r.point.word("kind"), r.point.number("bytes") >> 20),
                 static_cast<double>(r.point.number("blocks")), r.bytes / seconds_of(r) / 1e12};
  }));
  reports::Chart products{.id = "product-rate", .title = "Rate of products by m, largest layer"};
  products.x = {.title = "m, rows", .log = true};
  products.y = {.title = "TFLOP/s", .log = true};
  charts.push_back(chart_of(file, std::move(products), [](const calibrate::Record& r) -> std::optional<Curve> {
    if (r.point.op != "gemm" || r.point.number("n") != 28672) return std::nullopt;
    return Curve{r.point.dtype, static_cast<double>(r.point.number("m")), r.flops / seconds_of(r) / 1e12};
  }));
  reports::Chart decode{.id = "decode-attention", .title = "Decode attention: bytes per second by context"};
  decode.x = {.title = "context, tokens", .log = true};
  decode.y = {.title = "TB/s"};
  charts.push_back(chart_of(file, std::move(decode), [](const calibrate::Record& r) -> std::optional<Curve> {
    if (r.point.op != "attention_decode" || r.point.number("head_dim") != 128 || r.point.number("heads") != 32)
      return std::nullopt;
    return Curve{fmt::format("batch {}", r.point.number("batch")), static_cast<double>(r.point.number("context_len")),
                 r.bytes / seconds_of(r) / 1e12};
  }));
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (tables[i].op == "gemm") charts.push_back(residual_chart(tables[i], found[i]));
  }
  return charts;
}

std::vector<reports::Chart> constants_charts(const std::vector<calibrate::Ceiling>& ceilings) {
  reports::Chart chart{.id = "ceilings", .title = "Share of the datasheet's peak"};
  chart.horizontal = true;
  chart.x = {.title = "share, %", .low = 0.0, .high = 100.0};
  reports::Series series{.name = "reached", .shape = reports::Shape::kBars};
  for (const calibrate::Ceiling& c : ceilings) {
    if (!c.datasheet) continue;
    series.x.push_back(static_cast<double>(chart.y.categories.size()));
    series.y.push_back(100 * c.value / *c.datasheet);
    chart.y.categories.push_back(c.name);
  }
  chart.series.push_back(std::move(series));
  return {std::move(chart)};
}

}  // namespace roofcast::cli
