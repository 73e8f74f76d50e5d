#include "calibrate/rows/attention.h"

#include <array>

#include "calibrate/rows/attention_fit.h"
#include "hw/kernel_rules.h"

namespace roofcast::calibrate {
namespace {

constexpr std::array<std::string_view, 7> kPrefillColumns{"attn_dtype", "kv_dtype", "batch",   "seq_len",
                                                          "heads",      "kv_heads", "head_dim"};
constexpr std::array<std::string_view, 7> kDecodeColumns{"attn_dtype", "kv_dtype", "batch",   "context_len",
                                                         "heads",      "kv_heads", "head_dim"};
constexpr std::array<std::string_view, 3> kGroups{"kernel", "attn_dtype", "kv_dtype"};

AttentionHeads heads_of(const KernelTable& table, std::size_t row) {
  AttentionHeads heads;
  heads.heads = table.number(row, "heads", 1);
  heads.kv_heads = table.number(row, "kv_heads", 1);
  if (heads.kv_heads > heads.heads) table.fail(row, "kv_heads", "must not be above 'heads'");
  heads.head_dim = heads.value_dim = table.number(row, "head_dim", 1);
  heads.window = table.number(row, "sliding_window", 0, 0);
  heads.compute = table.dtype(row, "attn_dtype");
  heads.kv = table.dtype(row, "kv_dtype");
  return heads;
}

/// Whether it is the engine's main kernel. Kernels for other shapes do not enter its constants.
bool is_main(std::string_view kernel) {
  for (const std::string_view other :
       {"fa4", "flashinfer_trtllmdecode_prefill", "triton_attn", "torch_flow_flashinfer"}) {
    if (kernel.find(other) != std::string_view::npos) return false;
  }
  return true;
}

/// Shapes of one model's layer, for all batches and lengths. A fold leaves them out together.
template <class Row>
std::uint64_t layer(const Row& row) {
  const AttentionHeads& h = row.heads;
  return static_cast<std::uint64_t>(((h.heads * 1009 + h.kv_heads) * 1013 + h.head_dim) * 100003 + h.window);
}

double discrepancy(const Efficiency& e, const Kernel& kernel, Dtype format) {
  return discrepancy_of(e, kernel, format, kernel.facts().scored_apart);
}

double discrepancy_of_prompt(const Efficiency& e, const PrefillRow& row, const GpuSpec& gpu) {
  if (runs_as_decode(row.shape, row.heads, e.rules()))
    return discrepancy(e, decode_kernel(as_decode(row.shape), row.heads, gpu, e.rules()), row.heads.kv);
  const attention::PrefillKernel& kernel = prefill_kernel(row.shape, row.heads, gpu, e.rules());
  return discrepancy(e, kernel, prefill_products(row.heads, kernel, gpu));
}

std::vector<Prediction> predict_prefill(const CsvTable& table, const BenchmarkedGpu& gpu) {
  std::vector<Prediction> times;
  for (const PrefillRow& row : read_prefill_rows(table)) {
    const Machine machine = gpu.machine(row.header);
    times.push_back({attention_row_time(row, machine), discrepancy_of_prompt(*machine.efficiency, row, gpu.spec)});
  }
  return times;
}

std::vector<Prediction> predict_decode(const CsvTable& table, const BenchmarkedGpu& gpu) {
  std::vector<Prediction> times;
  for (const DecodeRow& row : read_decode_rows(table)) {
    const Machine machine = gpu.machine(row.header);
    times.push_back(
        {attention_row_time(row, machine),
         discrepancy(*machine.efficiency, decode_kernel(row.shape, row.heads, gpu.spec, machine.efficiency->rules()),
                     row.heads.kv)});
  }
  return times;
}

/// Rows of a single head dimension cannot separate a cost from its growth with the dimension, nor exponentials from
/// GEMMs.
template <class Row>
void fix_dimension_costs(FitOptions& options, const Kernel&, const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    if (row.heads.head_dim != rows.front().heads.head_dim) return;
  }
  options.fixed.insert(options.fixed.end(), {"launch_head_dim_us", "tile_growth", "row_growth", "score_ns"});
}

template <class Row>
void put(RowsByKernel<Row>& by_kernel, const Kernel* kernel, Dtype format, const Row& row) {
  const bool apart = kernel->facts().scored_apart || !is_main(row.header.kernel);
  while (kernel->facts().scored_apart) kernel = kernel->facts().lenders[0];
  KernelRows<Row>& of = by_kernel[{kernel->id(), format}];
  (apart ? of.others : of.rows).push_back(row);
}

/// A block for each format of the GEMMs. Prompts of one token say nothing about tiles.
std::vector<FittedConstants> fit_prefill(const CsvTable& table, const GpuSpec& gpu, const KernelRules& rules,
                                         const FitOptions& options) {
  RowsByKernel<PrefillRow> by_kernel;
  for (const PrefillRow& row : read_prefill_rows(table)) {
    if (!row.header.belongs_to(rules) || row.shape.query_len <= 1) continue;
    const attention::PrefillKernel& kernel = prefill_kernel(row.shape, row.heads, gpu, rules);
    put(by_kernel, &kernel, prefill_products(row.heads, kernel, gpu), row);
  }
  return fit_kernels<attention::PrefillKernel>(by_kernel, gpu, options, fix_dimension_costs<PrefillRow>,
                                               layer<PrefillRow>);
}

/// A block for each format of the cache.
std::vector<FittedConstants> fit_decode(const CsvTable& table, const GpuSpec& gpu, const KernelRules& rules,
                                        const FitOptions& options) {
  RowsByKernel<DecodeRow> by_kernel;
  for (const DecodeRow& row : read_decode_rows(table)) {
    if (row.header.belongs_to(rules))
      put(by_kernel, &decode_kernel(row.shape, row.heads, gpu, rules), row.heads.kv, row);
  }
  return fit_kernels<attention::DecodeKernel>(by_kernel, gpu, options, fix_dimension_costs<DecodeRow>,
                                              layer<DecodeRow>);
}

}  // namespace

std::vector<PrefillRow> read_prefill_rows(const CsvTable& table) {
  return read_prompts<PrefillRow>(table, kPrefillColumns, heads_of);
}

std::vector<DecodeRow> read_decode_rows(const CsvTable& table) {
  return read_steps<DecodeRow>(table, kDecodeColumns, heads_of);
}

KernelOperator attention_prefill_operator() {
  return {.name = "attention_prefill",
          .help = "causal attention of whole prompts: batch, seq_len, heads, kv_heads, head_dim, sliding_window",
          .columns = kPrefillColumns,
          .groups = kGroups,
          .predict = predict_prefill,
          .fit = fit_prefill};
}

KernelOperator attention_decode_operator() {
  return {
      .name = "attention_decode",
      .help = "attention of one new token per sequence: batch, context_len, heads, kv_heads, head_dim, sliding_window",
      .columns = kDecodeColumns,
      .groups = kGroups,
      .predict = predict_decode,
      .fit = fit_decode};
}

}  // namespace roofcast::calibrate
