#include "calibrate/rows/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "hw/kernels/gemm_tiles.h"

namespace roofcast {
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

GemmKernel kernel_of(std::string_view name) {
  if (name.find("DeepGemm") != std::string_view::npos) return GemmKernel::kDeepGemm;
  if (name.find("FlashInferFp8") != std::string_view::npos) return GemmKernel::kFlashInfer;
  return GemmKernel::kDefault;
}

/// A library's product is the engine's where the engine calls that library.
bool runs(KernelFamily family, const GemmRow& row) {
  return row.header.belongs_to(family) || (row.header.maker == Maker::kCublasLt && runs_cublaslt(row.block, family));
}

/// cuBLASLt's fp8 is TensorRT-LLM's alone.
RowHeader priced_as(const GemmRow& row) {
  RowHeader header = row.header;
  if (header.maker == Maker::kCublasLt && !runs(KernelFamily::kVllm, row) && runs(KernelFamily::kTrtllm, row))
    header.maker = Maker::kTrtllm;
  return header;
}

/// Shapes of one layer site, whatever m: left out of a fit together.
std::uint64_t site(const GemmRow& row) {
  return static_cast<std::uint64_t>(row.shape.n) * 1000003u + static_cast<std::uint64_t>(row.shape.k);
}

/// Refuses a row that the GPU has no unit for.
void require_unit(const CsvTable& table, const GemmRow& row, const GpuSpec& gpu) {
  if (gpu.compute_dtype(row.shape.weights, row.shape.activations)) return;
  const KernelTable checked(table, kColumns);
  checked.fail(row.header.row, "dtype",
               fmt::format("{} has no unit that computes '{}'", gpu.name, checked.text(row.header.row, "dtype")));
}

std::vector<Prediction> predict(const CsvTable& table, const BenchedGpu& gpu) {
  std::vector<Prediction> times;
  for (const GemmRow& row : read_gemm_rows(table)) {
    require_unit(table, row, gpu.spec);
    const Machine machine = gpu.machine(priced_as(row));
    times.push_back({gemm(row.shape, machine).time, discrepancy_of(*machine.efficiency, gemm_kernel(), row.block)});
  }
  return times;
}

/// What a loop adds that finds its weights in L2, waits for its host or quantizes beside the product.
constexpr std::array<std::string_view, 10> kBenchmarkFields{"l2_usable",
                                                            "benchmark_us",
                                                            "quantization_row_us",
                                                            "quantization_step_us",
                                                            "quantization_memory_ratio",
                                                            "quantization_l2_ratio",
                                                            "host_floor_us",
                                                            "host_floor_deep_gemm_us",
                                                            "host_odd_rows_us",
                                                            "host_floor_flash_infer_us"};

/// The constants in force, where the rows are to move those.
GemmParameters prior_of(Dtype block, const GpuSpec& gpu, KernelFamily family, const std::optional<GemmParameters>& wide,
                        const FitOptions& options) {
  const auto* before = options.before ? options.before->find(gemm_kernel(), block) : nullptr;
  return before ? before->value : gemm_prior(block, gpu, family, wide ? &*wide : nullptr);
}

/// Fits one format and appends its block. `wide` are the constants of bf16, where they are known. Null: too few rows.
std::optional<GemmParameters> fit_block(const std::vector<GemmRow>& rows, Dtype block, const GpuSpec& gpu,
                                        KernelFamily family, const FitOptions& options,
                                        const std::optional<GemmParameters>& wide,
                                        std::vector<FittedConstants>& blocks) {
  const std::string name = "gemm." + std::string(name_of(block));
  FitOptions mine = options;
  mine.what = fmt::format("{} of {} under {}", name, gpu.name, name_of(family));
  for (const std::string_view field : unused_gemm_fields(block, gpu, family)) mine.fixed.emplace_back(field);
  const bool served =
      std::all_of(rows.begin(), rows.end(), [](const GemmRow& row) { return row.header.timing != Timing::kBenchmark; });
  if (served) mine.fixed.insert(mine.fixed.end(), kBenchmarkFields.begin(), kBenchmarkFields.end());
  // Cool rows tell nothing of the clock under load.
  const bool loaded =
      std::any_of(rows.begin(), rows.end(), [](const GemmRow& row) { return row.header.timing != Timing::kCool; });
  if (!loaded) mine.fixed.emplace_back("sustained_clock");
  mine.huber_width = 0.06;  // kernels that a library switches between leave heavy tails
  const GemmParameters prior = prior_of(block, gpu, family, wide, options);
  // A narrow format's launch and the quantization beside it always come together.
  if (block != Dtype::kBf16) mine.fixed.emplace_back("launch_us");
  if (!enough_rows(rows.size(), mine)) return std::nullopt;
  const auto predict_row = [&](const GemmRow& row, const GemmParameters& constants) {
    return gemm_with(row.shape, constants, gpu, family, row.header.timing).time;
  };
  blocks.push_back(fit_block_of(name, std::span<const GemmRow>(rows), predict_row, mine, site, prior));
  return held_by<GemmParameters>(blocks.back());
}

std::vector<FittedConstants> fit_blocks(const CsvTable& table, const GpuSpec& gpu, KernelFamily family,
                                        const FitOptions& options) {
  std::array<std::vector<GemmRow>, kDtypeCount> rows;
  for (GemmRow& row : read_gemm_rows(table)) {
    if (!runs(family, row)) continue;
    require_unit(table, row, gpu);
    rows[static_cast<std::size_t>(row.block)].push_back(std::move(row));
  }
  // bf16 first: the launch of a bare kernel and the bandwidth are the GPU's, and its other formats start from them.
  std::vector<FittedConstants> blocks;
  std::optional<GemmParameters> wide;
  const auto bf16 = static_cast<std::size_t>(Dtype::kBf16);
  if (!rows[bf16].empty()) wide = fit_block(rows[bf16], Dtype::kBf16, gpu, family, options, std::nullopt, blocks);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i != bf16 && !rows[i].empty()) fit_block(rows[i], static_cast<Dtype>(i), gpu, family, options, wide, blocks);
  }
  return blocks;
}

}  // namespace

std::vector<GemmRow> read_gemm_rows(const CsvTable& table) {
  const KernelTable checked(table, kColumns);
  std::vector<GemmRow> rows;
  rows.reserve(checked.rows());
  for (std::size_t i = 0; i < checked.rows(); ++i) {
    GemmRow row;
    row.header = checked.header(i);
    const Formats formats = formats_of(checked, i);
    row.shape = {.m = checked.number(i, "m", 1),
                 .n = checked.number(i, "n", 1),
                 .k = checked.number(i, "k", 1),
                 .weights = formats.weights,
                 .activations = formats.activations,
                 .kernel = kernel_of(row.header.kernel)};
    row.block = gemm_block(formats.weights, formats.activations);
    rows.push_back(std::move(row));
  }
  return rows;
}

KernelOperator gemm_operator() {
  return {.name = "gemm",
          .help = "matrix products of the linear layers: engine, kernel, dtype, m, n, k",
          .columns = kColumns,
          .groups = kGroups,
          .predict = predict,
          .fit = fit_blocks};
}

}  // namespace roofcast
