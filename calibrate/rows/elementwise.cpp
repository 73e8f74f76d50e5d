#include "calibrate/rows/elementwise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "hw/kernels/elementwise.h"

namespace roofcast::calibrate {
namespace {

constexpr std::array<std::string_view, 2> kColumns{"operation", "bytes"};
constexpr std::array<std::string_view, 1> kGroups{"operation"};

Seconds price(const ElementwiseRow& row, const Machine& machine) {
  return (row.host_copy ? host_copy(row.bytes, machine) : elementwise(row.bytes, Flops{}, 1.0, machine)).time;
}

std::vector<Prediction> predict(const CsvTable& table, const BenchmarkedGpu& gpu) {
  std::vector<Prediction> times;
  for (const ElementwiseRow& row : read_elementwise_rows(table)) {
    const Machine machine = gpu.machine(row.header);
    times.push_back({price(row, machine), discrepancy_of(*machine.efficiency, elementwise_kernel(), Dtype::kBf16)});
  }
  return times;
}

/// One size, for all kernels. A fold leaves it out together.
std::uint64_t size_of(const ElementwiseRow& row) { return static_cast<std::uint64_t>(row.bytes.base()); }

std::vector<FittedConstants> fit_block(const CsvTable& table, const GpuSpec& gpu, const KernelRules& rules,
                                       const FitOptions& options) {
  std::vector<ElementwiseRow> rows;
  for (ElementwiseRow& row : read_elementwise_rows(table)) {
    // our own streaming kernels determine the machine's bandwidth, launch time and PCIe
    if (row.header.belongs_to(rules) || row.header.maker == Maker::kRoofcast) rows.push_back(std::move(row));
  }
  if (rows.empty()) return {};
  FitOptions mine = options;
  mine.what = fmt::format("elementwise of {} under {}", gpu.name, rules.name());
  mine.fixed.emplace_back("flops_fraction");  // only streams
  const auto is_copy = [](const ElementwiseRow& row) { return row.host_copy; };
  if (std::none_of(rows.begin(), rows.end(), is_copy))
    mine.fixed.insert(mine.fixed.end(), {"host_copy_us", "host_copy_fraction"});
  if (std::all_of(rows.begin(), rows.end(), is_copy))
    mine.fixed.insert(mine.fixed.end(), {"launch_us", "bandwidth_fraction"});
  if (!enough_rows(rows.size(), mine)) return {};
  Efficiency efficiency;
  const auto with = [&](const ElementwiseRow& row, const ElementwiseParameters& p) {
    efficiency.put(elementwise_kernel(), Dtype::kBf16, {p, {}});
    return price(row, {.gpu = &gpu, .efficiency = &efficiency});
  };
  return {fit_block_of<ElementwiseParameters>("elementwise.bf16", std::span<const ElementwiseRow>(rows), with, mine,
                                              size_of)};
}

}  // namespace

std::vector<ElementwiseRow> read_elementwise_rows(const CsvTable& table) {
  return read_rows(table, kColumns, [](const KernelTable& checked, std::size_t i) {
    const std::string_view operation = checked.text(i, "operation");
    return ElementwiseRow{checked.header(i), Bytes{checked.number(i, "bytes", 1)},
                          operation == "host_to_device" || operation == "device_to_host"};
  });
}

KernelOperator elementwise_operator() {
  return {.name = "elementwise",
          .help = "norms, rope, activations, quantization, copies over PCIe: operation, bytes read and written",
          .columns = kColumns,
          .groups = kGroups,
          .predict = predict,
          .fit = fit_block};
}

}  // namespace roofcast::calibrate
