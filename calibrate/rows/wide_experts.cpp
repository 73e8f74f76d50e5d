#include "calibrate/rows/wide_experts.h"

#include <array>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "calibrate/looped_kernel.h"
#include "hw/kernel_rules.h"

namespace roofcast::calibrate {
namespace {

constexpr std::array<std::string_view, 11> kColumns{"op_name",     "moe_dtype",    "num_tokens",  "hidden_size",
                                                    "inter_size",  "topk",         "num_experts", "moe_tp_size",
                                                    "moe_ep_size", "distribution", "latency"};
constexpr std::array<std::string_view, 2> kGroups{"op_name", "moe_ep_size"};

ExpertLayout layout_of(const KernelTable& table, std::size_t row) {
  const std::string_view name = table.text(row, "op_name");
  if (name == "moe_generation") return ExpertLayout::kMasked;
  if (name == "moe_context") return ExpertLayout::kContiguous;
  if (name == "wideep_moe" || name == "wideep_moe_eplb") return ExpertLayout::kReceived;
  table.fail(
      row, "op_name",
      fmt::format("unknown operator '{}' (valid: moe_generation, moe_context, wideep_moe, wideep_moe_eplb)", name));
}

/// In uniform rows every expert gets floor(T k / E) tokens; if that is below one, as many experts get one token each.
Routing routing_of(const KernelTable& table, std::size_t row) {
  std::string_view name = table.text(row, "distribution");
  constexpr std::string_view kLevelled = "_eplb";
  const bool levelled = name.ends_with(kLevelled);
  if (levelled) name.remove_suffix(kLevelled.size());
  if (name == "uniform" && !levelled) return {.kind = Routing::Kind::kBalanced, .exponent = 0.0};
  Routing routing = power_law_named(table, row, name);
  routing.levelled = levelled;
  return routing;
}

/// Whether an engine would run this layout. DeepEP pads the tokens of each expert to a tile of 128. The benchmark's
/// uniform draw of a prompt does not, so that a tile has tokens of several experts but reads the weights of one.
bool is_laid_out(const MoeRow& row) {
  const MoeShape& s = row.shape;
  if (s.layout != ExpertLayout::kContiguous || s.routing.kind != Routing::Kind::kBalanced) return true;
  return std::fmod(s.tokens * s.top_k / s.experts, 128.0) == 0.0;
}

std::vector<Prediction> predict(const CsvTable& table, const BenchmarkedGpu& gpu) {
  std::vector<Prediction> times;
  for (const MoeRow& row : read_wide_expert_rows(table)) {
    if (!is_laid_out(row)) {
      times.push_back({});
      continue;
    }
    const Machine machine = gpu.machine(row.header);
    times.push_back({experts_row_time(row, machine), experts_evidence(row.shape, machine).discrepancy(true)});
  }
  return times;
}

/// Compares versions with their numbers as numbers: sglang-0.5.10 is later than sglang-0.5.6.post2.
bool is_later(std::string_view a, std::string_view b) {
  const auto numbers = [](std::string_view name) {
    std::vector<int> out;
    bool inside = false;
    for (const char c : name) {
      const bool digit = c >= '0' && c <= '9';
      if (digit && !inside) out.push_back(0);
      if (digit) out.back() = std::min(out.back(), 100'000'000) * 10 + (c - '0');
      inside = digit;
    }
    return out;
  };
  return numbers(a) > numbers(b);
}

/// One group size and expert shape. A fold leaves them out together.
std::uint64_t group_of(const MoeRow& row) {
  const MoeShape& s = row.shape;
  return static_cast<std::uint64_t>((s.ep * 8192.0 + s.hidden) * 1024.0 + s.experts);
}

std::vector<FittedConstants> fit_layouts(const CsvTable& table, const GpuSpec& gpu, const KernelRules& rules,
                                         const FitOptions& options) {
  std::map<std::pair<const ExpertsKernel*, Dtype>, std::vector<MoeRow>> blocks;
  std::string newest;
  for (const MoeRow& row : read_wide_expert_rows(table)) {
    if (row.header.library_of(rules) && (newest.empty() || is_later(row.header.engine, newest)))
      newest = row.header.engine;
  }
  for (MoeRow& row : read_wide_expert_rows(table)) {
    if (row.header.engine != newest || !is_laid_out(row)) continue;
    blocks[{&named_experts(row.shape, gpu, rules), row.shape.weights}].push_back(std::move(row));
  }
  std::vector<FittedConstants> out;
  for (const auto& [key, rows] : blocks) {
    const ExpertsKernel& kernel = *key.first;
    FitOptions mine = options;
    mine.what = fmt::format("{}.{} of {} under {}", kernel.name(), name_of(key.second), gpu.name, rules.name());
    mine.fixed.insert(mine.fixed.end(), {"router_us_per_choice", "expert_map_us"});
    if (!enough_rows(rows.size(), mine)) continue;
    const ConstantsBlock prior = kernel.assumed(gpu, key.second);
    const KernelOf<ExpertsLoopParameters>* loop = experts_loop_of(kernel);
    if (loop == nullptr) {
      const auto time = [&](const MoeRow& row, const ConstantsBlock& constants) {
        return experts_row_time(row, kernel, kernel.parameters(constants), {}, gpu);
      };
      out.push_back(fit_kernel(kernel, key.second, prior, std::span<const MoeRow>(rows), time, mine, group_of));
      continue;
    }
    const LoopedKernel looped(kernel, *loop);
    const auto time = [&](const MoeRow& row, const ConstantsBlock& constants) {
      return experts_row_time(row, kernel, kernel.parameters(LoopedKernel::kernel_in(constants)),
                              KernelOf<ExpertsLoopParameters>::in(LoopedKernel::loop_in(constants))->value, gpu);
    };
    const ConstantsBlock start =
        looped.block_of(prior, KernelOf<ExpertsLoopParameters>::block_of({experts_loop_prior(), {}}));
    auto [experts, beside] = looped.fit(key.second, start, std::span<const MoeRow>(rows), time, mine, group_of);
    out.push_back(std::move(experts));
    out.push_back(std::move(beside));
  }
  return out;
}

}  // namespace

std::vector<MoeRow> read_wide_expert_rows(const CsvTable& table) {
  return read_rows(table, kColumns, [](const KernelTable& checked, std::size_t i) {
    MoeRow row;
    row.header = checked.header(i);
    const Dtype dtype = checked.dtype(i, "moe_dtype");
    row.shape = {.tokens = checked.number(i, "num_tokens", 1),
                 .hidden = checked.number(i, "hidden_size", 1),
                 .inter = checked.number(i, "inter_size", 1),
                 .top_k = checked.number(i, "topk", 1),
                 .experts = checked.number(i, "num_experts", 1),
                 .tp = checked.number(i, "moe_tp_size", 1),
                 .ep = checked.number(i, "moe_ep_size", 1),
                 .layout = layout_of(checked, i),
                 .weights = dtype,
                 .activations = dtype,
                 .routing = routing_of(checked, i)};
    row.shape.slots = checked.number(i, "num_slots", row.shape.experts, 0.0);
    if (row.shape.top_k > row.shape.experts) checked.fail(i, "topk", "'topk' exceeds the number of experts");
    if (row.shape.ep > row.shape.experts) checked.fail(i, "moe_ep_size", "'moe_ep_size' exceeds the number of experts");
    // The benchmark of prompts gives every rank all tokens of the group.
    row.shape.received = row.shape.layout == ExpertLayout::kContiguous ? row.shape.tokens
                                                                       : checked.number(i, "rank0_num_tokens", 1, 0.0);
    return row;
  });
}

KernelOperator wide_experts_operator() {
  return {.name = "wide_experts",
          .help =
              "routed experts after an all-to-all: engine, op_name, moe_dtype, num_tokens, hidden_size, inter_size, "
              "topk, num_experts, moe_tp_size, moe_ep_size, distribution, latency (ms)",
          .columns = kColumns,
          .groups = kGroups,
          .predict = predict,
          .fit = fit_layouts};
}

}  // namespace roofcast::calibrate
