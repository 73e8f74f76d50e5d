#include "calibrate/rows/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "calibrate/looped_kernel.h"
#include "calibrate/rows/gemm_loop.h"
#include "hw/kernel_rules.h"
#include "hw/kernels/idle_sms.h"

namespace roofcast::calibrate {
namespace {

constexpr std::array<std::string_view, 4> kColumns{"dtype", "m", "n", "k"};
constexpr std::array<std::string_view, 2> kGroups{"dtype", "kernel"};

struct Formats {
  Dtype weights, activations;
};

Formats formats_of(const KernelTable& table, std::size_t row) {
  const std::string_view name = table.text(row, "dtype");
  if (name == "sq") return {Dtype::kInt8, Dtype::kInt8};
  if (name == "int8_wo") return {Dtype::kInt8, Dtype::kBf16};
  if (name == "int4_wo") return {Dtype::kInt4, Dtype::kBf16};
  const Dtype both = table.dtype(row, "dtype");
  return {both, both};
}

HostLibrary host_library_of(std::string_view kernel) {
  if (kernel.find("DeepGemm") != std::string_view::npos) return HostLibrary::kDeepGemm;
  if (kernel.find("FlashInferFp8") != std::string_view::npos) return HostLibrary::kFlashInfer;
  return HostLibrary::kOther;
}

/// A kernel that only a collector runs: TensorRT-LLM's collector times nvfp4 without tuning first.
const MatmulKernel* asked_of(const GemmRow& row) {
  const bool untuned = row.header.maker == Maker::kTrtllm && row.header.timing == Timing::kBenchmark;
  return untuned && row.block == Dtype::kNvfp4 ? &cutlass_nvfp4_untuned() : nullptr;
}

/// Whether the engine runs the row's kernel. It also runs a library's GEMMs if it calls that library.
bool runs(const KernelRules& rules, const GemmRow& row, const GpuSpec& gpu) {
  if (row.header.belongs_to(rules)) return true;
  const Kernel& kernel = rules.pick_product(gpu.architecture, row.block);
  return row.header.maker == Maker::kCublasLt && static_cast<const MatmulKernel&>(kernel).is_cublaslt();
}

/// Only TensorRT-LLM calls cuBLASLt in fp8.
RowHeader priced_as(const GemmRow& row, const GpuSpec& gpu) {
  RowHeader header = row.header;
  const auto is_run_by = [&](Maker maker) { return runs(*kernel_rules(kernels_of(maker)), row, gpu); };
  if (header.maker == Maker::kCublasLt && !is_run_by(Maker::kVllm) && is_run_by(Maker::kTrtllm))
    header.maker = Maker::kTrtllm;
  return header;
}

/// Shapes of one linear layer, for all m. A fold leaves them out together.
std::uint64_t site(const GemmRow& row) {
  return static_cast<std::uint64_t>(row.shape.n) * 1000003u + static_cast<std::uint64_t>(row.shape.k);
}

/// Throws if the GPU has no unit for the row's format.
void require_unit(const CsvTable& table, const GemmRow& row, const GpuSpec& gpu) {
  if (gpu.compute_dtype(row.shape.weights, row.shape.activations)) return;
  const KernelTable checked(table, kColumns);
  checked.fail(row.header.row, "dtype",
               fmt::format("{} has no unit that computes '{}'", gpu.name, checked.text(row.header.row, "dtype")));
}

std::vector<Prediction> predict(const CsvTable& table, const BenchmarkedGpu& gpu) {
  std::vector<Prediction> times;
  for (const GemmRow& row : read_gemm_rows(table)) {
    require_unit(table, row, gpu.spec);
    const Machine machine = gpu.machine(priced_as(row, gpu.spec));
    const Efficiency& e = *machine.efficiency;
    const double discrepancy = gemm_evidence(row.shape, gpu.spec, e).discrepancy(false);
    if (machine.fidelity == Fidelity::kIdeal) {
      times.push_back({gemm(row.shape, machine).time, discrepancy});
      continue;
    }
    const MatmulKernel& kernel = gemm_kernel(row.shape, gpu.spec, e.rules());
    const GemmParameters constants = gemm_constants(kernel, row.block, gpu.spec, e);
    const GemmLoopParameters loop = gemm_loop_constants(row.block, e);
    const Cost cost =
        with_sms_to_spare(gemm_block_in_force(kernel, row.block, gpu.spec, e), gpu.spec, [&](const GpuSpec& used) {
          return Cost{.time = gemm_row_time(row, kernel, constants, loop, used, collector_of(e.rules()))};
        });
    times.push_back({cost.time, discrepancy});
  }
  return times;
}

/// The prior: the current constants if the fit adjusts them, else the kernel's own prior.
GemmParameters prior_of(const MatmulKernel& kernel, Dtype block, const GpuSpec& gpu,
                        const std::optional<GemmParameters>& wide, const FitOptions& options) {
  if (options.before) {
    if (const ConstantsBlock& before = options.before->block(kernel, block)) return kernel.parameters(before);
  }
  return kernel.prior_beside(gpu, wide ? &*wide : nullptr);
}
GemmLoopParameters loop_prior_of(const GemmLoop& loop, Dtype block, Maker collector, const FitOptions& options) {
  if (options.before) {
    if (const ConstantsBlock& before = options.before->block(loop, block)) return loop.parameters(before);
  }
  return gemm_loop_prior(block, collector);
}

/// Rows of one kernel in one format.
struct GemmBlock {
  const MatmulKernel& kernel;
  Dtype format;
  std::vector<GemmRow> rows;
  std::string name() const { return place_of(kernel, format); }
};

FittedConstants fit_alone(const GemmBlock& block, const GemmParameters& prior, const FitOptions& options,
                          const GpuSpec& gpu, Maker collector) {
  const auto time = [&](const GemmRow& row, const ConstantsBlock& constants) {
    return gemm_row_time(row, block.kernel, block.kernel.parameters(constants), {}, gpu, collector);
  };
  return fit_kernel(block.kernel, block.format, block.kernel.with_parameters(prior),
                    std::span<const GemmRow>(block.rows), time, options, site);
}

std::pair<FittedConstants, FittedConstants> fit_with_loop(const GemmBlock& block, const GemmLoop& loop,
                                                          const GemmParameters& prior, const FitOptions& options,
                                                          const GpuSpec& gpu, Maker collector) {
  const LoopedKernel looped(block.kernel, loop);
  const auto time = [&](const GemmRow& row, const ConstantsBlock& constants) {
    return gemm_row_time(row, block.kernel, block.kernel.parameters(LoopedKernel::kernel_in(constants)),
                         loop.parameters(LoopedKernel::loop_in(constants)), gpu, collector);
  };
  const ConstantsBlock start = looped.block_of(
      block.kernel.with_parameters(prior), loop.with_parameters(loop_prior_of(loop, block.format, collector, options)));
  return looped.fit(block.format, start, std::span<const GemmRow>(block.rows), time, options, site);
}

/// Fits one block and appends it. `wide` are the constants of 16-bit GEMMs, if known. Returns null if there are too few
/// rows.
std::optional<GemmParameters> fit_block(const GemmBlock& block, const GpuSpec& gpu, const KernelRules& rules,
                                        const FitOptions& options, const std::optional<GemmParameters>& wide,
                                        std::vector<FittedConstants>& blocks) {
  const std::vector<GemmRow>& rows = block.rows;
  FitOptions mine = options;
  mine.what = fmt::format("{} of {} under {}", block.name(), gpu.name, rules.name());
  const bool served =
      std::all_of(rows.begin(), rows.end(), [](const GemmRow& row) { return row.header.timing != Timing::kBenchmark; });
  // Rows whose weights are never in L2 say nothing about it.
  if (served) mine.fixed.emplace_back("l2_usable");
  // Rows of a cool GPU say nothing about the clock under load.
  const bool loaded =
      std::any_of(rows.begin(), rows.end(), [](const GemmRow& row) { return row.header.timing != Timing::kCool; });
  if (!loaded) mine.fixed.emplace_back("sustained_clock");
  mine.huber_width = 0.06;  // kernel switches of a library cause heavy tails
  // The launch of a narrow format cannot be separated from the quantization that is always timed with it.
  if (block.format != Dtype::kBf16) mine.fixed.emplace_back("launch_us");
  if (!enough_rows(rows.size(), mine)) return std::nullopt;
  const GemmParameters prior = prior_of(block.kernel, block.format, gpu, wide, options);
  const Maker collector = collector_of(rules);
  const GemmLoop* loop = served ? nullptr : gemm_loop_of(block.format, collector);
  if (loop != nullptr) {
    auto [product, beside] = fit_with_loop(block, *loop, prior, mine, gpu, collector);
    blocks.push_back(std::move(product));
    blocks.push_back(std::move(beside));
    return std::nullopt;
  }
  blocks.push_back(fit_alone(block, prior, mine, gpu, collector));
  return block.kernel.parameters(constants_as(block.kernel, blocks.back()));
}

std::vector<FittedConstants> fit_blocks(const CsvTable& table, const GpuSpec& gpu, const KernelRules& rules,
                                        const FitOptions& options) {
  std::map<std::pair<Dtype, std::size_t>, GemmBlock> grouped;
  for (GemmRow& row : read_gemm_rows(table)) {
    if (!runs(rules, row, gpu)) continue;
    require_unit(table, row, gpu);
    const MatmulKernel& kernel = gemm_kernel(row.shape, gpu, rules);
    grouped.try_emplace({row.block, kernel.id()}, GemmBlock{kernel, row.block, {}})
        .first->second.rows.push_back(std::move(row));
  }
  // bf16 first: its launch and bandwidth hold for the GPU, and the other formats start from them.
  std::vector<FittedConstants> blocks;
  std::optional<GemmParameters> wide;
  for (const auto& [key, block] : grouped) {
    if (block.format == Dtype::kBf16) wide = fit_block(block, gpu, rules, options, std::nullopt, blocks);
  }
  for (const auto& [key, block] : grouped) {
    if (block.format != Dtype::kBf16) fit_block(block, gpu, rules, options, wide, blocks);
  }
  return blocks;
}

}  // namespace

std::vector<GemmRow> read_gemm_rows(const CsvTable& table) {
  return read_rows(table, kColumns, [](const KernelTable& checked, std::size_t i) {
    GemmRow row;
    row.header = checked.header(i);
    const Formats formats = formats_of(checked, i);
    row.shape = {.m = checked.number(i, "m", 1),
                 .n = checked.number(i, "n", 1),
                 .k = checked.number(i, "k", 1),
                 .weights = formats.weights,
                 .activations = formats.activations};
    row.block = gemm_block(formats.weights, formats.activations);
    row.host_library = host_library_of(row.header.kernel);
    row.shape.asked = asked_of(row);
    return row;
  });
}

KernelOperator gemm_operator() {
  return {.name = "gemm",
          .help = "GEMMs of the linear layers: engine, kernel, dtype, m, n, k",
          .columns = kColumns,
          .groups = kGroups,
          .predict = predict,
          .fit = fit_blocks};
}

}  // namespace roofcast::calibrate
