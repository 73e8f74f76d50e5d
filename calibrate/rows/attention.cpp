#include "calibrate/rows/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace roofcast {
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

/// Kernels that an engine uses for other shapes than its main one: their times do not enter its constants.
bool is_main(std::string_view kernel) {
  for (const std::string_view other :
       {"fa4", "flashinfer_trtllmdecode_prefill", "triton_attn", "torch_flow_flashinfer"}) {
    if (kernel.find(other) != std::string_view::npos) return false;
  }
  return true;
}

/// Shapes of one model's layer, whatever the batch and lengths: left out of a fit together.
template <class Row>
std::uint64_t layer(const Row& row) {
  const AttentionHeads& h = row.heads;
  return static_cast<std::uint64_t>(((h.heads * 1009 + h.kv_heads) * 1013 + h.head_dim) * 100003 + h.window);
}

std::vector<Prediction> predict_prefill(const CsvTable& table, const BenchedGpu& gpu) {
  std::vector<Prediction> times;
  for (const PrefillRow& row : read_prefill_rows(table)) {
    const Machine machine = gpu.machine(row.header);
    const Efficiency& e = *machine.efficiency;
    const bool other = is_other_kernel(row.heads, gpu.spec, e.family);
    const double discrepancy =
        runs_as_decode(row.shape, row.heads, e.family)
            ? discrepancy_of(e.attention_decode, row.heads.kv, other)
            : discrepancy_of(e.attention_prefill, prefill_products(row.heads, gpu.spec, e.family), other);
    times.push_back({attention_prefill(row.shape, row.heads, machine).time, discrepancy});
  }
  return times;
}

std::vector<Prediction> predict_decode(const CsvTable& table, const BenchedGpu& gpu) {
  std::vector<Prediction> times;
  for (const DecodeRow& row : read_decode_rows(table)) {
    const Machine machine = gpu.machine(row.header);
    times.push_back({attention_decode(row.shape, row.heads, machine).time,
                     discrepancy_of(machine.efficiency->attention_decode, row.heads.kv,
                                    is_other_kernel(row.heads, gpu.spec, machine.efficiency->family))});
  }
  return times;
}

/// Rows of one head dimension cannot tell a cost from its growth with the dimension, nor exponentials from products.
template <class Row>
FitOptions options_for(const FitOptions& options, const std::string& block, const GpuSpec& gpu, KernelFamily family,
                       const std::vector<std::string_view>& unused, const std::vector<Row>& rows) {
  FitOptions mine = options;
  mine.what = fmt::format("{} of {} under {}", block, gpu.name, name_of(family));
  for (const std::string_view field : unused) mine.fixed.emplace_back(field);
  for (const Row& row : rows) {
    if (row.heads.head_dim != rows.front().heads.head_dim) return mine;
  }
  for (const char* field : {"launch_head_dim_us", "tile_growth", "row_growth", "score_ns"})
    mine.fixed.emplace_back(field);
  return mine;
}

/// Blocks by the format of the products. Prompts of one token tell nothing of the tiles.
std::vector<FittedConstants> fit_prefill(const CsvTable& table, const GpuSpec& gpu, KernelFamily family,
                                         const FitOptions& options) {
  std::vector<FittedConstants> blocks;
  const std::vector<PrefillRow> all = read_prefill_rows(table);
  for (const Dtype products : {Dtype::kBf16, Dtype::kFp8}) {
    std::vector<PrefillRow> rows, others;
    for (const PrefillRow& row : all) {
      const bool mine = row.header.belongs_to(family) && row.shape.query_len > 1;
      if (!mine || prefill_products(row.heads, gpu, family) != products) continue;
      (is_main(row.header.kernel) ? rows : others).push_back(row);
    }
    if (rows.empty()) continue;
    const std::string block = "attention_prefill." + std::string(name_of(products));
    const auto predict = [&](const PrefillRow& row, const PrefillParameters& p) {
      return attention_prefill_with(row.shape, row.heads, p, gpu, family, row.header.timing).time;
    };
    const FitOptions mine =
        options_for(options, block, gpu, family, unused_prefill_fields(gpu, family, products), rows);
    const PrefillParameters prior = attention_prefill_prior(gpu, family, products);
    if (!enough_rows(rows.size(), mine)) continue;
    blocks.push_back(fit_block_of(block, std::span<const PrefillRow>(rows), predict, mine, layer<PrefillRow>, prior));
    score_elsewhere<PrefillParameters>(others, predict, blocks.back());
  }
  return blocks;
}

/// Blocks by the format of the cache.
std::vector<FittedConstants> fit_decode(const CsvTable& table, const GpuSpec& gpu, KernelFamily family,
                                        const FitOptions& options) {
  std::vector<FittedConstants> blocks;
  const std::vector<DecodeRow> all = read_decode_rows(table);
  for (const Dtype kv : {Dtype::kBf16, Dtype::kFp8}) {
    std::vector<DecodeRow> rows, others;
    for (const DecodeRow& row : all) {
      if (!row.header.belongs_to(family) || row.heads.kv != kv) continue;
      (is_main(row.header.kernel) ? rows : others).push_back(row);
    }
    if (rows.empty()) continue;
    const std::string block = "attention_decode." + std::string(name_of(kv));
    const auto predict = [&](const DecodeRow& row, const DecodeParameters& p) {
      return attention_decode_with(row.shape, row.heads, p, gpu, family, row.header.timing).time;
    };
    const FitOptions mine = options_for(options, block, gpu, family, unused_decode_fields(gpu, family, kv), rows);
    const DecodeParameters prior = attention_decode_prior(gpu, family, kv);
    if (!enough_rows(rows.size(), mine)) continue;
    blocks.push_back(fit_block_of(block, std::span<const DecodeRow>(rows), predict, mine, layer<DecodeRow>, prior));
    score_elsewhere<DecodeParameters>(others, predict, blocks.back());
  }
  return blocks;
}

}  // namespace

std::vector<PrefillRow> read_prefill_rows(const CsvTable& table) {
  const KernelTable checked(table, kPrefillColumns);
  std::vector<PrefillRow> rows;
  rows.reserve(checked.rows());
  for (std::size_t i = 0; i < checked.rows(); ++i) {
    const PrefillShape shape{.batch = checked.number(i, "batch", 1), .query_len = checked.number(i, "seq_len", 1)};
    rows.push_back({checked.header(i), shape, heads_of(checked, i)});
  }
  return rows;
}

std::vector<DecodeRow> read_decode_rows(const CsvTable& table) {
  const KernelTable checked(table, kDecodeColumns);
  std::vector<DecodeRow> rows;
  rows.reserve(checked.rows());
  for (std::size_t i = 0; i < checked.rows(); ++i) {
    const double context = checked.number(i, "context_len", 1);
    const DecodeShape shape{.batch = checked.number(i, "batch", 1), .mean_context = context, .max_context = context};
    rows.push_back({checked.header(i), shape, heads_of(checked, i)});
  }
  return rows;
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
      .help = "attention of one new token a sequence: batch, context_len, heads, kv_heads, head_dim, sliding_window",
      .columns = kDecodeColumns,
      .groups = kGroups,
      .predict = predict_decode,
      .fit = fit_decode};
}

}  // namespace roofcast
