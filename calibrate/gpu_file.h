#pragma once
// Writes fitted constants as YAML: the `efficiency` files of configs/hardware, and whole GPU files.

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config_node.h"
#include "calibrate/fit.h"
#include "hw/constants_file.h"
#include "hw/efficiency.h"
#include "hw/parameters.h"

namespace roofcast::calibrate {

/// The constants of one kernel in one format, to be written to a file.
struct FittedConstants {
  std::string block;  ///< dotted key in the efficiency map: "cublaslt.bf16", "nccl_all_reduce.bf16"
  std::vector<std::pair<std::string, double>> values;  ///< in the order of the fields
  FitRecord record;
  std::vector<FieldReport> fields;  ///< what the fit reports about each field, for printing
  ErrorSummary on_rows, left_out;
};

template <class P>
FittedConstants constants_of(std::string block, const FitResult<P>& result) {
  FittedConstants out{std::move(block), {}, result.record, result.fields, result.on_rows, result.left_out};
  for (const Parameter<P>& field : P::fields()) out.values.emplace_back(field.name, result.value.*field.member);
  return out;
}

/// The constants of a block as a P.
template <class P>
P constants_as(const FittedConstants& block, P value = {}) {
  std::size_t i = 0;
  for (const Parameter<P>& field : P::fields()) value.*field.member = block.values[i++].second;
  return value;
}

/// Fits a block to `rows`, starting from its inherited constants, else from `prior`. If `options.kept` is set, the
/// constants are kept and only scored. P: the constants of the block's kernel.
template <class P, class Row, class Predict, class Group>
FittedConstants fit_block_of(std::string block, std::span<const Row> rows, Predict predict, const FitOptions& options,
                             Group group, const P& prior = {}) {
  const auto in = [](const ConstantsBlock& constants) { return static_cast<const Fitted<P>*>(constants.values.get()); };
  if (options.kept) {
    const ConstantsBlock kept = fit_detail::kept_block(options, block);
    return constants_of(std::move(block), fit<P>(rows, predict, options, group, prior, in(kept)));
  }
  FitOptions mine = options;
  const ConstantsBlock beneath = fit_detail::block_beneath(options, block);
  mine.pools = bool(beneath);
  if (beneath) mine.other_start = fit_detail::values_of(prior);
  return constants_of(std::move(block), fit<P>(rows, predict, mine, group, beneath ? in(beneath)->value : prior));
}

/// The same for a kernel that is known only at run time. `predict` takes (row, ConstantsBlock). `kept_block` and
/// `beneath`: the kernel's blocks in `options`, or null.
template <class Row, class Predict, class Group>
FittedConstants fit_kernel(const Kernel& kernel, Dtype dtype, const ConstantsBlock& prior, std::span<const Row> rows,
                           Predict predict, const FitOptions& options, Group group, const ConstantsBlock& kept_block,
                           const ConstantsBlock& beneath) {
  const std::string name = place_of(kernel, dtype);
  const auto time = [&](const Row& row, const KernelConstants& p) { return predict(row, p.block); };
  FitOptions mine = options;
  KernelConstants start{&kernel, prior};
  std::optional<Fitted<KernelConstants>> kept;
  if (kept_block) {
    kept = Fitted<KernelConstants>{{&kernel, kept_block}, *kept_block.record};
  } else if (beneath) {
    mine.other_start = kernel.numbers(prior);
    start.block = beneath;
    mine.pools = true;
  }
  const FitResult<KernelConstants> result =
      fit<KernelConstants>(rows, time, mine, group, start, kept ? &*kept : nullptr);
  FittedConstants out{name, {}, result.record, result.fields, result.on_rows, result.left_out};
  const std::vector<double> values = kernel.numbers(result.value.block);
  for (const FieldFacts& field : kernel.fields()) out.values.emplace_back(field.name, values[out.values.size()]);
  return out;
}

template <class Row, class Predict, class Group>
FittedConstants fit_kernel(const Kernel& kernel, Dtype dtype, const ConstantsBlock& prior, std::span<const Row> rows,
                           Predict predict, const FitOptions& options, Group group) {
  const std::string name = place_of(kernel, dtype);
  return fit_kernel(kernel, dtype, prior, rows, predict, options, group,
                    options.kept ? fit_detail::kept_block(options, name) : ConstantsBlock{},
                    fit_detail::block_beneath(options, name));
}

/// The constants of a block in the form of its kernel.
inline ConstantsBlock constants_as(const Kernel& kernel, const FittedConstants& block) {
  std::vector<double> values;
  for (const auto& [name, value] : block.values) values.push_back(value);
  return kernel.from_numbers(values);
}

/// Scores the constants of a block on rows of other kernels. `predict` takes (row).
template <class Row, class Predict>
void score_others(const std::vector<Row>& others, Predict predict, FittedConstants& block) {
  if (others.empty()) return;
  std::vector<double> predicted, measured;
  for (const Row& row : others) {
    predicted.push_back(predict(row).base());
    measured.push_back(row.header.latency.base());
  }
  block.record.discrepancy_elsewhere = std::max(block.record.discrepancy, log_scatter(predicted, measured));
}
/// The constants of one kernel set, as fitted.
struct FittedSet {
  std::string kernels;  ///< name of the set
  std::vector<FittedConstants> blocks;
};

/// Writes the blocks into the efficiency files of `folder`, which is created if absent: into GPU-KERNELS.yaml, or into
/// GPU-shared.yaml if only that one has the block. Other blocks and `extends` keys are unchanged. A constant is left
/// out if it equals the inherited one, after all blocks are inserted, to the digits written. `gpu` has the maps that
/// the folder lacks. `moved`, if given, receives blocks ("vllm cublaslt.fp8") that were not fitted but changed, because
/// they inherit from a fitted block.
void write_efficiency_files(const std::string& folder, const ConfigTree& gpu, const std::vector<FittedSet>& fitted,
                            std::set<std::string>* moved = nullptr);

/// `gpu` with the blocks inserted inline under efficiency.<kernels>, as above. Its constants for other operators and
/// sets are also inlined, because a path beside `gpu` is not valid beside a copy. They take precedence over transferred
/// ones.
ConfigTree with_gpu_constants(const ConfigTree& gpu, const std::vector<FittedSet>& fitted,
                              std::set<std::string>* moved = nullptr);

/// Writes a GPU file for `--gpu FILE`.
void write_gpu_file(const std::string& path, const ConfigTree& gpu);

}  // namespace roofcast::calibrate
