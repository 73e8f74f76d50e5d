#include "calibrate/rows/latent_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "hw/kernels/attention_math.h"

namespace roofcast {
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

/// Without fp8 units a GPU keeps and multiplies 16 bit whatever the flag says.
Dtype block_of(const LatentHeads& heads, const GpuSpec& gpu) {
  const bool narrow = element_bits(heads.kv) <= 8 && gpu.peak(Dtype::kFp8) > FlopsPerSecond{};
  return narrow ? Dtype::kFp8 : Dtype::kBf16;
}

/// Rows of one number of heads and batch are left out of a fit together.
template <class Row>
std::uint64_t layer(const Row& row) {
  return static_cast<std::uint64_t>(row.heads.heads * 100003 + row.shape.batch);
}

std::vector<Prediction> predict_prefill(const CsvTable& table, const BenchedGpu& gpu) {
  std::vector<Prediction> times;
  for (const LatentPrefillRow& row : read_latent_prefill_rows(table)) {
    const Machine machine = gpu.machine(row.header);
    const Efficiency& e = *machine.efficiency;
    const bool decodes = runs_as_decode(row.shape, row.heads, gpu.spec, e.family);
    const Dtype products = latent_prompt_products(row.heads, gpu.spec, e.family);
    times.push_back({latent_prefill(row.shape, row.heads, machine).time,
                     decodes ? discrepancy_of(e.latent_decode, block_of(row.heads, gpu.spec))
                             : discrepancy_of(e.latent_prefill, products)});
  }
  return times;
}
std::vector<Prediction> predict_decode(const CsvTable& table, const BenchedGpu& gpu) {
  std::vector<Prediction> times;
  for (const LatentDecodeRow& row : read_latent_decode_rows(table)) {
    const Machine machine = gpu.machine(row.header);
    times.push_back({latent_decode(row.shape, row.heads, machine).time,
                     discrepancy_of(machine.efficiency->latent_decode, block_of(row.heads, gpu.spec))});
  }
  return times;
}

/// A block a format: of the cache in decode, of the products in prefill.
template <class P, class Row, class FormatOf, class Price, class Prior, class Unused>
std::vector<FittedConstants> fit_blocks(const std::string& name, const std::vector<Row>& all, const GpuSpec& gpu,
                                        KernelFamily family, const FitOptions& options, FormatOf format_of, Price price,
                                        Prior prior, Unused unused) {
  std::vector<FittedConstants> blocks;
  for (const Dtype format : {Dtype::kBf16, Dtype::kFp8}) {
    std::vector<Row> rows;
    for (const Row& row : all) {
      if (row.header.belongs_to(family) && format_of(row.heads) == format) rows.push_back(row);
    }
    if (rows.empty()) continue;
    const std::string block = name + "." + std::string(name_of(format));
    FitOptions mine = options;
    mine.what = fmt::format("{} of {} under {}", block, gpu.name, name_of(family));
    for (const std::string_view field : unused(gpu, family, format)) mine.fixed.emplace_back(field);
    const auto predict_row = [&](const Row& row, const P& constants) {
      return price(row.shape, row.heads, constants, gpu, family, Timing::kBenchmark).time;
    };
    if (!enough_rows(rows.size(), mine)) continue;
    blocks.push_back(
        fit_block_of<P>(block, std::span<const Row>(rows), predict_row, mine, layer<Row>, prior(gpu, family, format)));
  }
  return blocks;
}

std::vector<FittedConstants> fit_prefill(const CsvTable& table, const GpuSpec& gpu, KernelFamily family,
                                         const FitOptions& options) {
  std::vector<LatentPrefillRow> rows = read_latent_prefill_rows(table);
  std::erase_if(rows, [&](const LatentPrefillRow& row) {
    const double absorbed = attention::absorbed_queries(gpu, family, block_of(row.heads, gpu));
    return row.shape.query_len <= std::max(1.0, absorbed);
  });
  const auto format_of = [&](const LatentHeads& heads) { return latent_prompt_products(heads, gpu, family); };
  return fit_blocks<LatentPrefillParameters>("latent_prefill", rows, gpu, family, options, format_of,
                                             latent_prefill_with, latent_prefill_prior, unused_latent_prefill_fields);
}

std::vector<FittedConstants> fit_decode(const CsvTable& table, const GpuSpec& gpu, KernelFamily family,
                                        const FitOptions& options) {
  const auto format_of = [&](const LatentHeads& heads) { return block_of(heads, gpu); };
  return fit_blocks<LatentDecodeParameters>("latent_decode", read_latent_decode_rows(table), gpu, family, options,
                                            format_of, latent_decode_with, latent_decode_prior,
                                            unused_latent_decode_fields);
}

}  // namespace

std::vector<LatentPrefillRow> read_latent_prefill_rows(const CsvTable& table) {
  const KernelTable checked(table, kPrefillColumns);
  std::vector<LatentPrefillRow> rows;
  rows.reserve(checked.rows());
  for (std::size_t i = 0; i < checked.rows(); ++i) {
    const PrefillShape shape{.batch = checked.number(i, "batch", 1), .query_len = checked.number(i, "seq_len", 1)};
    rows.push_back({checked.header(i), shape, heads_of(checked, i)});
  }
  return rows;
}

std::vector<LatentDecodeRow> read_latent_decode_rows(const CsvTable& table) {
  const KernelTable checked(table, kDecodeColumns);
  std::vector<LatentDecodeRow> rows;
  rows.reserve(checked.rows());
  for (std::size_t i = 0; i < checked.rows(); ++i) {
    const double context = checked.number(i, "context_len", 1);
    const DecodeShape shape{.batch = checked.number(i, "batch", 1), .mean_context = context, .max_context = context};
    rows.push_back({checked.header(i), shape, heads_of(checked, i)});
  }
  return rows;
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
          .help = "absorbed latent attention of one new token a sequence: batch, context_len, heads",
          .columns = kDecodeColumns,
          .groups = kGroups,
          .predict = predict_decode,
          .fit = fit_decode};
}

}  // namespace roofcast
