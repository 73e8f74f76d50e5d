#include "calibrate/rows/collectives.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/text.h"

namespace roofcast::calibrate {
namespace {

constexpr std::array<std::string_view, 3> kAllReduceColumns{"dtype", "gpus", "elements"};
constexpr std::array<std::string_view, 2> kAllReduceGroups{"mode", "gpus"};
constexpr std::array<std::string_view, 4> kNcclColumns{"op", "dtype", "gpus", "elements"};
constexpr std::array<std::string_view, 2> kNcclGroups{"op", "gpus"};
constexpr std::array<Collective, 4> kMeasured{Collective::kAllReduce, Collective::kAllGather,
                                              Collective::kReduceScatter, Collective::kAllToAll};

/// Reads dtype, gpus and elements, which both tables have. The ranks share one NVLink domain.
CollectiveRow read_message(const KernelTable& table, std::size_t i) {
  CollectiveRow row;
  row.header = table.header(i);
  const Dtype dtype = table.dtype(i, "dtype");
  const double gpus = table.number(i, "gpus", 1);
  if (gpus != std::floor(gpus) || gpus > 1e6)
    table.fail(i, "gpus", fmt::format("'gpus' must be a whole number, got {}", gpus));
  row.group.gpus = row.group.gpus_per_node = static_cast<int>(gpus);
  row.group.summable = dtype != Dtype::kInt8;
  row.bytes = Bytes{table.number(i, "elements", 1) * element_bits(dtype) / 8.0};
  return row;
}

Collective parse_collective(const KernelTable& table, std::size_t i) {
  const std::string_view name = table.text(i, "op");
  if (name == "alltoall") return Collective::kAllToAll;
  std::vector<std::string> valid;
  for (const Collective kind : {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter,
                                Collective::kAllToAll, Collective::kSend}) {
    if (name == name_of(kind)) return kind;
    valid.emplace_back(name_of(kind));
  }
  table.fail(i, "op", unknown_name("collective", name, valid));
}

/// One message size, for all numbers of ranks. A fold leaves it out together.
std::uint64_t size_of(const CollectiveRow& row) { return static_cast<std::uint64_t>(row.bytes.base()); }

std::vector<Prediction> predict_all_reduce(const CsvTable& table, const BenchmarkedGpu& gpu) {
  std::vector<Prediction> times;
  for (const CollectiveRow& row : read_all_reduce_rows(table)) {
    const Machine machine = gpu.machine(row.header);
    times.push_back({collective(row.kind, row.bytes, row.group, machine).time,
                     discrepancy_of(*machine.efficiency, custom_all_reduce_kernel(), Dtype::kBf16)});
  }
  return times;
}

std::vector<Prediction> predict_nccl(const CsvTable& table, const BenchmarkedGpu& gpu) {
  std::vector<Prediction> times;
  for (const CollectiveRow& row : read_nccl_rows(table)) {
    const Machine machine = gpu.machine(row.header);
    times.push_back({nccl(row.kind, row.bytes, row.group, machine).time,
                     discrepancy_of(*machine.efficiency, nccl_kernel(row.kind), Dtype::kBf16)});
  }
  return times;
}

/// The size limit of each engine's kernel is set by the engine and not fitted.
CustomAllReduceParameters all_reduce_prior(const GpuSpec& gpu, const KernelRules& rules) {
  const bool trtllm = collector_of(rules) == Maker::kTrtllm;
  CustomAllReduceParameters prior;
  prior.size_limit_mb = 16.0;
  if (gpu.architecture == Architecture::kAmpere) prior.size_limit_mb = trtllm ? 1.5 : 6.0;
  if (gpu.architecture == Architecture::kBlackwell && !trtllm) {
    prior.size_limit_mb = 0.0;
    prior.switch_fraction = 0.4;
  }
  return prior;
}

std::vector<FittedConstants> fit_all_reduce(const CsvTable& table, const GpuSpec& gpu, const KernelRules& rules,
                                            const FitOptions& options) {
  std::vector<CollectiveRow> rows;
  for (CollectiveRow& row : read_all_reduce_rows(table)) {
    if (row.header.belongs_to(rules) && row.group.gpus > 1) rows.push_back(std::move(row));
  }
  if (rows.empty()) return {};
  FitOptions mine = options;
  mine.what = fmt::format("custom_all_reduce of {} under {}", gpu.name, rules.name());
  mine.fixed.emplace_back("size_limit_mb");
  const CustomAllReduceParameters prior = all_reduce_prior(gpu, rules);
  if (prior.switch_fraction == 0.0) mine.fixed.insert(mine.fixed.end(), {"switch_us", "switch_fraction"});
  const NcclParameters library = nccl_prior(Collective::kAllReduce, gpu);
  const auto predict = [&](const CollectiveRow& row, const CustomAllReduceParameters& p) {
    return custom_all_reduce_time(row.bytes, row.group, p, library, gpu);
  };
  if (!enough_rows(rows.size(), mine)) return {};
  return {fit_block_of("custom_all_reduce.bf16", std::span<const CollectiveRow>(rows), predict, mine, size_of, prior)};
}

/// NCCL belongs to no engine: its constants go to the files of every kernel set.
std::vector<FittedConstants> fit_nccl(const CsvTable& table, const GpuSpec& gpu, const KernelRules&,
                                      const FitOptions& options) {
  std::vector<FittedConstants> blocks;
  const std::vector<CollectiveRow> all = read_nccl_rows(table);
  for (const Collective kind : kMeasured) {
    std::vector<CollectiveRow> rows;
    for (const CollectiveRow& row : all) {
      if (row.kind == kind && row.group.gpus > 1 && row.header.maker != Maker::kRoofcast) rows.push_back(row);
    }
    if (rows.empty()) continue;
    FitOptions mine = options;
    mine.what = fmt::format("nccl {} of {}", name_of(kind), gpu.name);
    mine.fixed.insert(mine.fixed.end(), {"network_us", "network_fraction"});
    const NcclParameters prior = nccl_prior(kind, gpu);
    if (prior.switch_fraction == 0.0) mine.fixed.insert(mine.fixed.end(), {"switch_us", "switch_fraction"});
    if (!enough_rows(rows.size(), mine)) continue;
    const auto predict = [&](const CollectiveRow& row, const NcclParameters& p) {
      return nccl_time(row.kind, row.bytes, row.group, p, gpu);
    };
    blocks.push_back(fit_block_of(fmt::format("{}.bf16", nccl_kernel(kind).name()),
                                  std::span<const CollectiveRow>(rows), predict, mine, size_of, prior));
  }
  return blocks;
}

}  // namespace

std::vector<CollectiveRow> read_all_reduce_rows(const CsvTable& table) {
  return read_rows(table, kAllReduceColumns, [](const KernelTable& checked, std::size_t i) {
    CollectiveRow row = read_message(checked, i);
    row.group.captured = checked.text_if_any(i, "mode").find("eager") == std::string_view::npos;
    return row;
  });
}

std::vector<CollectiveRow> read_nccl_rows(const CsvTable& table) {
  return read_rows(table, kNcclColumns, [](const KernelTable& checked, std::size_t i) {
    CollectiveRow row = read_message(checked, i);
    row.kind = parse_collective(checked, i);
    if (row.kind == Collective::kAllGather) row.bytes = row.bytes / static_cast<double>(row.group.gpus);
    return row;
  });
}

KernelOperator all_reduce_operator() {
  return {.name = "allreduce",
          .help = "the engines' own all-reduce: engine, dtype, gpus, elements, mode",
          .columns = kAllReduceColumns,
          .groups = kAllReduceGroups,
          .predict = predict_all_reduce,
          .fit = fit_all_reduce};
}

KernelOperator nccl_operator() {
  return {.name = "nccl",
          .help = "NCCL: engine, op (all_reduce, all_gather, reduce_scatter, alltoall), dtype, gpus, elements",
          .columns = kNcclColumns,
          .groups = kNcclGroups,
          .predict = predict_nccl,
          .fit = fit_nccl};
}

}  // namespace roofcast::calibrate
