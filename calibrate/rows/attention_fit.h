#pragma once
// Reads and fits rows of attention: what grouped and latent attention have in common.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "calibrate/gpu_file.h"
#include "calibrate/kernel_rows.h"
#include "calibrate/looped_kernel.h"
#include "calibrate/rows/attention_loop.h"
#include "hw/kernels/attention.h"

namespace roofcast::calibrate {

/// Rows of whole prompts: batch and seq_len, beside the columns of `heads_of`.
template <class Row, class Columns, class HeadsOf>
std::vector<Row> read_prompts(const CsvTable& table, const Columns& columns, HeadsOf heads_of) {
  return read_rows(table, columns, [&](const KernelTable& checked, std::size_t i) {
    const PrefillShape shape{.batch = checked.number(i, "batch", 1), .query_len = checked.number(i, "seq_len", 1)};
    return Row{checked.header(i), shape, heads_of(checked, i)};
  });
}

/// Rows of decode steps: batch and context_len.
template <class Row, class Columns, class HeadsOf>
std::vector<Row> read_steps(const CsvTable& table, const Columns& columns, HeadsOf heads_of) {
  return read_rows(table, columns, [&](const KernelTable& checked, std::size_t i) {
    const double context = checked.number(i, "context_len", 1);
    const DecodeShape shape{.batch = checked.number(i, "batch", 1), .mean_context = context, .max_context = context};
    return Row{checked.header(i), shape, heads_of(checked, i)};
  });
}

/// Rows of one kernel in one format, and rows of kernels that borrow its constants.
template <class Row>
struct KernelRows {
  std::vector<Row> rows, others;
};
template <class Row>
using RowsByKernel = std::map<std::pair<std::size_t, Dtype>, KernelRows<Row>>;

/// Fits the block of a kernel to rows that it runs, and that of its loop if rows were timed in it. `price` takes (row,
/// constants, constants of the loop).
template <class Row, class Price, class Group>
std::vector<FittedConstants> fit_with_attention_loop(const Kernel& kernel, Dtype format, const GpuSpec& gpu,
                                                     std::span<const Row> rows, Price price, const FitOptions& options,
                                                     Group group) {
  const Kernel* loop = attention_loop_of(kernel);
  const ConstantsBlock prior = kernel.assumed(gpu, format), prior_loop = assumed_attention_loop(kernel, format, gpu);
  const bool repeated =
      std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.header.timing == Timing::kBenchmark; });
  if (loop == nullptr || !repeated) {
    const auto time = [&](const Row& row, const ConstantsBlock& constants) {
      return price(row, constants, prior_loop);
    };
    return {fit_kernel(kernel, format, prior, rows, time, options, group)};
  }
  const LoopedKernel looped(kernel, *loop);
  const auto time = [&](const Row& row, const ConstantsBlock& both) {
    return price(row, LoopedKernel::kernel_in(both), LoopedKernel::loop_in(both));
  };
  auto [own, beside] = looped.fit(format, looped.block_of(prior, prior_loop), rows, time, options, group);
  return {std::move(own), std::move(beside)};
}

/// A block for each kernel and format, and one for its loop. `KernelType`: what such rows run. `adjust` changes the
/// options of a kernel with these rows; rows of one `group` are left out together.
template <class KernelType, class Row, class Adjust, class Group>
std::vector<FittedConstants> fit_kernels(const RowsByKernel<Row>& by_kernel, const GpuSpec& gpu,
                                         const FitOptions& options, Adjust adjust, Group group) {
  std::vector<FittedConstants> blocks;
  for (const auto& entry : by_kernel) {
    const Kernel& kernel = *kernels()[entry.first.first];
    const Dtype format = entry.first.second;
    const std::vector<Row>& rows = entry.second.rows;
    FitOptions mine = options;
    mine.what = fmt::format("{}.{} of {}", kernel.name(), name_of(format), gpu.name);
    if (rows.empty() || !enough_rows(rows.size(), mine)) continue;
    adjust(mine, kernel, rows);
    const auto predict = [&](const Row& row, const ConstantsBlock& constants, const ConstantsBlock& loop) {
      return attention_row_time(row, static_cast<const KernelType&>(kernel), constants, loop, gpu);
    };
    std::vector<FittedConstants> fitted =
        fit_with_attention_loop(kernel, format, gpu, std::span<const Row>(rows), predict, mine, group);
    const ConstantsBlock own = constants_as(kernel, fitted.front()),
                         beside = fitted.size() > 1 ? constants_as(*attention_loop_of(kernel), fitted.back())
                                                    : assumed_attention_loop(kernel, format, gpu);
    score_others(
        entry.second.others, [&](const Row& row) { return predict(row, own, beside); }, fitted.front());
    for (FittedConstants& block : fitted) blocks.push_back(std::move(block));
  }
  return blocks;
}

}  // namespace roofcast::calibrate
