#include "calibrate/rows/latent_attention.h"

#include <algorithm>
#include <array>

#include "calibrate/rows/attention_fit.h"
#include "hw/kernel_rules.h"

namespace roofcast::calibrate {
namespace {

constexpr std::array<std::string_view, 5> kPrefillColumns{"attn_dtype", "kv_dtype", "batch", "seq_len", "heads"};
constexpr std::array<std::string_view, 5> kDecodeColumns{"attn_dtype", "kv_dtype", "batch", "context_len", "heads"};
constexpr std::array<std::string_view, 3> kGroups{"kernel", "attn_dtype", "kv_dtype"};

LatentHeads heads_of(const KernelTable& table, std::size_t row) {
  LatentHeads heads;
  heads.heads = table.number(row, "heads", 1);
  heads.compute = table.dtype(row, "attn_dtype");
  heads.kv = table.dtype(row, "kv_dtype");
  return heads;
}

/// The format of the cache and its GEMMs. A GPU without fp8 units uses 16 bit whatever the flag says.
Dtype block_of(const LatentHeads& heads, const GpuSpec& gpu) {
  const bool narrow = element_bits(heads.kv) <= 8 && gpu.peak(Dtype::kFp8) > FlopsPerSecond{};
  return narrow ? Dtype::kFp8 : Dtype::kBf16;
}

/// Rows with equal heads and batch. A fold leaves them out together.
template <class Row>
std::uint64_t layer(const Row& row) {
  return static_cast<std::uint64_t>(row.heads.heads * 100003 + row.shape.batch);
}

std::vector<Prediction> predict_prefill(const CsvTable& table, const BenchmarkedGpu& gpu) {
  std::vector<Prediction> times;
  for (const LatentPrefillRow& row : read_latent_prefill_rows(table)) {
    const Machine machine = gpu.machine(row.header);
    const Efficiency& e = *machine.efficiency;
    const bool decodes = runs_as_decode(row.shape, row.heads, gpu.spec, e.rules());
    const attention::LatentPrefillKernel& prefill = latent_prefill_kernel(row.heads, gpu.spec, e.rules());
    times.push_back({attention_row_time(row, machine),
                     decodes ? discrepancy_of(e, latent_decode_kernel(row.heads, gpu.spec, e.rules()),
                                              block_of(row.heads, gpu.spec))
                             : discrepancy_of(e, prefill, prefill.format(row.heads, gpu.spec))});
  }
  return times;
}
std::vector<Prediction> predict_decode(const CsvTable& table, const BenchmarkedGpu& gpu) {
  std::vector<Prediction> times;
  for (const LatentDecodeRow& row : read_latent_decode_rows(table)) {
    const Machine machine = gpu.machine(row.header);
    const Efficiency& e = *machine.efficiency;
    times.push_back(
        {attention_row_time(row, machine),
         discrepancy_of(e, latent_decode_kernel(row.heads, gpu.spec, e.rules()), block_of(row.heads, gpu.spec))});
  }
  return times;
}

/// Fixes the constants that the rows cannot determine: a loop without a CUDA graph does not show the launch in a graph,
/// and a loop with one does not show host time.
template <class Row>
void fix_undetermined(FitOptions& options, const Kernel& kernel, const std::vector<Row>&) {
  if (!is_timed_eagerly(kernel)) {
    options.fixed.insert(options.fixed.end(), {"eager_device_us", "eager_host_us"});
    return;
  }
  options.fixed.emplace_back("launch_us");
  if (kernel.kind() == KernelKind::kLatentDecode)
    options.fixed.insert(options.fixed.end(),
                         {"launch_heads_us", "sequence_ns", "combine_us", "l2_share", "l2_bandwidth_tb_per_s"});
}

/// Rows that the engine runs as decode say nothing about prefill.
std::vector<FittedConstants> fit_prefill(const CsvTable& table, const GpuSpec& gpu, const KernelRules& rules,
                                         const FitOptions& options) {
  RowsByKernel<LatentPrefillRow> by_kernel;
  for (const LatentPrefillRow& row : read_latent_prefill_rows(table)) {
    const double absorbed = latent_decode_kernel(row.heads, gpu, rules).absorbed_queries();
    if (!row.header.belongs_to(rules) || row.shape.query_len <= std::max(1.0, absorbed)) continue;
    const attention::LatentPrefillKernel& kernel = latent_prefill_kernel(row.heads, gpu, rules);
    by_kernel[{kernel.id(), kernel.format(row.heads, gpu)}].rows.push_back(row);
  }
  return fit_kernels<attention::LatentPrefillKernel>(by_kernel, gpu, options, fix_undetermined<LatentPrefillRow>,
                                                     layer<LatentPrefillRow>);
}

std::vector<FittedConstants> fit_decode(const CsvTable& table, const GpuSpec& gpu, const KernelRules& rules,
                                        const FitOptions& options) {
  RowsByKernel<LatentDecodeRow> by_kernel;
  for (const LatentDecodeRow& row : read_latent_decode_rows(table)) {
    if (!row.header.belongs_to(rules)) continue;
    by_kernel[{latent_decode_kernel(row.heads, gpu, rules).id(), block_of(row.heads, gpu)}].rows.push_back(row);
  }
  return fit_kernels<attention::LatentDecodeKernel>(by_kernel, gpu, options, fix_undetermined<LatentDecodeRow>,
                                                    layer<LatentDecodeRow>);
}

}  // namespace

std::vector<LatentPrefillRow> read_latent_prefill_rows(const CsvTable& table) {
  return read_prompts<LatentPrefillRow>(table, kPrefillColumns, heads_of);
}

std::vector<LatentDecodeRow> read_latent_decode_rows(const CsvTable& table) {
  return read_steps<LatentDecodeRow>(table, kDecodeColumns, heads_of);
}

KernelOperator latent_prefill_operator() {
  return {.name = "mla_prefill",
          .help = "latent attention of whole prompts, over expanded heads: batch, seq_len, heads",
          .columns = kPrefillColumns,
          .groups = kGroups,
          .predict = predict_prefill,
          .fit = fit_prefill};
}

KernelOperator latent_decode_operator() {
  return {.name = "mla_decode",
          .help = "absorbed latent attention of one new token per sequence: batch, context_len, heads",
          .columns = kDecodeColumns,
          .groups = kGroups,
          .predict = predict_decode,
          .fit = fit_decode};
}

}  // namespace roofcast::calibrate
