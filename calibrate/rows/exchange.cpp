#include "calibrate/rows/exchange.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include <fmt/format.h>

namespace roofcast::calibrate {
namespace {

constexpr std::array<std::string_view, 7> kLowLatencyColumns{
    "node_num", "hidden_size", "num_token", "num_topk", "num_experts", "dispatch_avg_t_us", "combine_avg_t_us"};
constexpr std::array<std::string_view, 11> kNormalColumns{
    "node_num",           "hidden_size",         "num_token",        "num_topk",
    "num_experts",        "dispatch_sms",        "combine_sms",      "dispatch_transmit_us",
    "dispatch_notify_us", "combine_transmit_us", "combine_notify_us"};
constexpr std::array<std::string_view, 1> kGroups{"node_num"};
/// The benchmark limits a token's choices to this many nodes (DeepEP, tests/test_internode.py, num_topk_groups).
constexpr double kMostNodes = 4.0;

std::span<const std::string_view> columns_of(ExchangeKernel kernel) {
  if (kernel == ExchangeKernel::kLowLatency) return kLowLatencyColumns;
  return kNormalColumns;
}

/// The sum of the two time columns of a direction, in microseconds.
double microseconds(const KernelTable& table, std::size_t row, ExchangeKernel kernel, const std::string& way) {
  if (kernel == ExchangeKernel::kLowLatency) return table.number(row, way + "_avg_t_us", 0.0);
  return table.number(row, way + "_transmit_us", 0.0) + table.number(row, way + "_notify_us", 0.0);
}

std::vector<Prediction> predict(const CsvTable& table, const BenchmarkedGpu& gpu, ExchangeKernel kernel) {
  std::vector<Prediction> times(table.rows());
  for (const ExchangeRow& row : read_exchange_rows(table, kernel, gpu.spec)) {
    const Machine machine = gpu.machine(row.header);
    Prediction& both = times[row.header.row];
    both.time += exchange(row.shape, machine).time;
    both.discrepancy = discrepancy_of(*machine.efficiency, exchange_kernel(kernel), Dtype::kBf16);
  }
  return times;
}

/// With more nodes than a token may go to, the benchmark's normal mode reaches a third of the NIC bandwidth that the
/// low-latency mode reaches on the same nodes, and of what DeepEP publishes for 64 GPUs
/// (docs/equations-moe.md#exchange). Such rows are not fitted.
bool is_plausible(const ExchangeRow& row) {
  return row.shape.kernel != ExchangeKernel::kNormal || row.shape.groups <= kMostNodes;
}

/// A model's shape on one number of nodes. A fold leaves it out together.
std::uint64_t shape_of(const ExchangeRow& row) {
  const ExchangeShape& s = row.shape;
  return static_cast<std::uint64_t>(((s.hidden * 1024.0 + s.experts) * 64.0 + s.top_k) * 1024.0 + s.ranks);
}

std::vector<FittedConstants> fit_exchange(const CsvTable& table, const GpuSpec& gpu, const KernelRules& rules,
                                          const FitOptions& options, ExchangeKernel kind) {
  std::vector<ExchangeRow> rows;
  bool networked = false;
  for (ExchangeRow& row : read_exchange_rows(table, kind, gpu)) {
    if (!row.header.library_of(rules) || !(row.header.latency > Seconds(0)) || !is_plausible(row)) continue;
    networked = networked || row.shape.ranks > gpu.node.fabric_domain;
    rows.push_back(std::move(row));
  }
  const KernelOf<ExchangeParameters>& kernel = exchange_kernel(kind);
  FitOptions mine = options;
  mine.what = fmt::format("{} of {}", kernel.name(), gpu.name);
  if (rows.empty() || !enough_rows(rows.size(), mine)) return {};
  if (!networked) mine.fixed.insert(mine.fixed.end(), {"hop_us", "network_fraction", "network_sm_share"});
  const auto time = [&](const ExchangeRow& row, const ConstantsBlock& constants) {
    return exchange_time(row.shape, KernelOf<ExchangeParameters>::in(constants)->value, gpu);
  };
  return {fit_kernel(kernel, Dtype::kBf16, kernel.assumed(gpu, Dtype::kBf16), std::span<const ExchangeRow>(rows), time,
                     mine, shape_of)};
}

}  // namespace

std::vector<ExchangeRow> read_exchange_rows(const CsvTable& table, ExchangeKernel kernel, const GpuSpec& gpu) {
  const KernelTable checked(table, columns_of(kernel));
  std::vector<ExchangeRow> rows;
  rows.reserve(2 * checked.rows());
  for (std::size_t i = 0; i < checked.rows(); ++i) {
    const double nodes = checked.number(i, "node_num", 1), ranks = nodes * gpu.node.gpus_per_node;
    if (nodes != std::floor(nodes) || ranks > 1e6)
      checked.fail(i, "node_num", fmt::format("'node_num' must be a whole number, got {}", nodes));
    ExchangeRow row;
    row.header = checked.header(i);
    row.shape = {.kernel = kernel,
                 .tokens = checked.number(i, "num_token", 1),
                 .hidden = checked.number(i, "hidden_size", 1),
                 .top_k = checked.number(i, "num_topk", 1),
                 .experts = checked.number(i, "num_experts", 1),
                 .groups = kernel == ExchangeKernel::kNormal ? nodes : 1.0,
                 .groups_kept = kernel == ExchangeKernel::kNormal ? std::min(nodes, kMostNodes) : 1.0,
                 .ranks = static_cast<int>(ranks)};
    if (row.shape.top_k > row.shape.experts) checked.fail(i, "num_topk", "'num_topk' exceeds the number of experts");
    for (const bool back : {false, true}) {
      const std::string way = back ? "combine" : "dispatch";
      row.shape.combine = back;
      row.shape.value_bytes = back ? 2.0 : 1.0 + 4.0 / 128.0;  // 16 bit; fp8 with an fp32 scale per 128 values
      if (kernel == ExchangeKernel::kNormal) row.shape.sms = checked.number(i, way + "_sms", 1);
      row.header.latency = microseconds(checked, i, kernel, way) * kMicrosecond;
      rows.push_back(row);
    }
  }
  return rows;
}

KernelOperator low_latency_exchange_operator() {
  return {.name = "deep_ep_low_latency",
          .help =
              "DeepEP's low-latency mode: engine, node_num, hidden_size, num_token, num_topk, num_experts, "
              "dispatch_avg_t_us, combine_avg_t_us",
          .columns = kLowLatencyColumns,
          .groups = kGroups,
          .predict = [](const CsvTable& table,
                        const BenchmarkedGpu& gpu) { return predict(table, gpu, ExchangeKernel::kLowLatency); },
          .fit =
              [](const CsvTable& table, const GpuSpec& gpu, const KernelRules& rules, const FitOptions& options) {
                return fit_exchange(table, gpu, rules, options, ExchangeKernel::kLowLatency);
              }};
}

KernelOperator normal_exchange_operator() {
  return {.name = "deep_ep_normal",
          .help =
              "DeepEP's normal mode: engine, node_num, hidden_size, num_token, num_topk, num_experts, and sms, "
              "transmit_us and notify_us of dispatch_ and combine_",
          .columns = kNormalColumns,
          .groups = kGroups,
          .predict = [](const CsvTable& table,
                        const BenchmarkedGpu& gpu) { return predict(table, gpu, ExchangeKernel::kNormal); },
          .fit =
              [](const CsvTable& table, const GpuSpec& gpu, const KernelRules& rules, const FitOptions& options) {
                return fit_exchange(table, gpu, rules, options, ExchangeKernel::kNormal);
              }};
}

}  // namespace roofcast::calibrate
