#include "calibrate/rows/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include "hw/kernel_rules.h"
#include "hw/kernels/l2.h"

namespace roofcast::calibrate {
namespace {

constexpr std::array<std::string_view, 8> kDeltaColumns{"op",          "phase",      "batch",       "seq_len",
                                                        "num_k_heads", "head_k_dim", "num_v_heads", "head_v_dim"};
constexpr std::array<std::string_view, 8> kMambaColumns{"op",      "phase", "batch",    "seq_len",
                                                        "d_state", "heads", "head_dim", "n_groups"};
constexpr std::array<std::string_view, 2> kGroups{"op", "phase"};

StateRow read_call(const KernelTable& table, std::size_t i) {
  StateRow row;
  row.header = table.header(i);
  const std::string_view op = table.text(i, "op"), phase = table.text(i, "phase");
  row.convolution = op.find("conv") != std::string_view::npos;
  if (phase != "context" && phase != "generation") {
    table.fail(i, "phase", fmt::format("unknown phase '{}' (valid: context, generation)", phase));
  }
  row.prompt = phase == "context";
  row.batch = table.number(i, "batch", 1);
  row.query_len = row.prompt ? table.number(i, "seq_len", 1) : 1.0;
  return row;
}

Seconds convolution_row_time(const StateRow& row, const ConvolutionParameters& p, const GpuSpec& gpu) {
  const double channels = row.mixer.conv_channels;
  return row.prompt ? convolution_prefill_time(row.batch, row.query_len, channels, p, gpu)
                    : convolution_decode_time(row.batch, channels, p, gpu);
}

/// The kernel that a row times.
const Kernel& kernel_of(const StateRow& row, const GpuSpec& gpu, const KernelRules& rules) {
  if (row.convolution) return convolution_kernel(row.mixer, gpu, rules);
  return state_kernel(row.mixer, gpu, rules);
}
Seconds time_of(const StateRow& row, const Kernel& kernel, const ConstantsBlock& constants, const GpuSpec& gpu) {
  if (row.convolution)
    return convolution_row_time(row, static_cast<const ConvolutionKernel&>(kernel).parameters(constants), gpu);
  return recurrence_row_time(row, static_cast<const StateKernel&>(kernel).parameters(constants), gpu);
}

Seconds ideal_of(const StateRow& row, const Machine& machine) {
  StateMixer only = row.mixer;
  const Cost whole =
      row.prompt ? state_prefill(row.batch, row.query_len, only, machine) : state_decode(row.batch, only, machine);
  only.conv_channels = 0.0;
  const Cost scan =
      row.prompt ? state_prefill(row.batch, row.query_len, only, machine) : state_decode(row.batch, only, machine);
  return row.convolution ? whole.time - scan.time : scan.time;
}

/// Decode runs in a kernel of its own, with few rows compared with prefill, so it has a separate discrepancy.
bool scored_apart(const StateRow& row) { return !row.convolution && !row.prompt; }

std::vector<Prediction> predict(const std::vector<StateRow>& rows, const BenchmarkedGpu& gpu) {
  std::vector<Prediction> times;
  for (const StateRow& row : rows) {
    const Machine machine = gpu.machine(row.header);
    if (machine.fidelity == Fidelity::kIdeal) {
      times.push_back({ideal_of(row, machine), 0.0});
      continue;
    }
    const Efficiency& e = *machine.efficiency;
    const Kernel& kernel = kernel_of(row, gpu.spec, e.rules());
    times.push_back({time_of(row, kernel, e.constants(kernel, Dtype::kBf16, gpu.spec), gpu.spec),
                     discrepancy_of(e, kernel, Dtype::kBf16, scored_apart(row))});
  }
  return times;
}

/// One size of mixer, for all batches and lengths. A fold leaves it out together.
std::uint64_t size_of(const StateRow& row) {
  return static_cast<std::uint64_t>(row.mixer.conv_channels * 1009.0 + row.mixer.heads);
}

/// A block for each kernel.
std::vector<FittedConstants> fit_rows(const std::vector<StateRow>& all, const GpuSpec& gpu, const KernelRules& rules,
                                      const FitOptions& options) {
  std::map<std::pair<bool, std::size_t>, std::vector<StateRow>> by_kernel;
  for (const StateRow& row : all) {
    if (row.header.belongs_to(rules)) by_kernel[{!row.convolution, kernel_of(row, gpu, rules).id()}].push_back(row);
  }
  std::vector<FittedConstants> out;
  for (const auto& [key, rows] : by_kernel) {
    const Kernel& kernel = *kernels()[key.second];
    FitOptions mine = options;
    mine.what = fmt::format("{} of {}", place_of(kernel, Dtype::kBf16), gpu.name);
    if (!enough_rows(rows.size(), mine)) continue;
    const auto time = [&](const StateRow& row, const ConstantsBlock& p) { return time_of(row, kernel, p, gpu); };
    out.push_back(
        fit_kernel(kernel, Dtype::kBf16, kernel.defaults(), std::span<const StateRow>(rows), time, mine, size_of));
    std::vector<StateRow> apart;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(apart), scored_apart);
    const ConstantsBlock fitted = constants_as(kernel, out.back());
    score_others(
        apart, [&](const StateRow& row) { return time(row, fitted); }, out.back());
  }
  return out;
}

std::vector<Prediction> predict_gated_delta(const CsvTable& table, const BenchmarkedGpu& gpu) {
  return predict(read_gated_delta_rows(table), gpu);
}
std::vector<Prediction> predict_mamba2(const CsvTable& table, const BenchmarkedGpu& gpu) {
  return predict(read_mamba2_rows(table), gpu);
}
std::vector<FittedConstants> fit_gated_delta(const CsvTable& table, const GpuSpec& gpu, const KernelRules& rules,
                                             const FitOptions& options) {
  return fit_rows(read_gated_delta_rows(table), gpu, rules, options);
}
std::vector<FittedConstants> fit_mamba2(const CsvTable& table, const GpuSpec& gpu, const KernelRules& rules,
                                        const FitOptions& options) {
  return fit_rows(read_mamba2_rows(table), gpu, rules, options);
}

}  // namespace

/// The benchmark loop finds in L2 what it just wrote, as far as it fits; in an engine, other layers have evicted it.
Seconds recurrence_row_time(const StateRow& row, const StateParameters& p, const GpuSpec& gpu) {
  if (row.prompt) return scan_prefill_time(row.batch, row.query_len, row.mixer, p, gpu);
  if (row.header.timing != Timing::kBenchmark) return recurrence_decode_time(row.batch, row.mixer, p, gpu);
  const Bytes bytes = decode_state_traffic(row.batch, row.mixer, p);
  const double rate = rate_with_l2(gpu, bytes, gpu.memory_bandwidth.base() * p.decode_bandwidth_fraction);
  return Seconds{1e-6 * p.decode_launch_us + bytes.base() / rate};
}

std::vector<StateRow> read_gated_delta_rows(const CsvTable& table) {
  return read_rows(table, kDeltaColumns, [](const KernelTable& checked, std::size_t i) {
    StateRow row = read_call(checked, i);
    row.mixer = {.kind = StateMixer::Kind::kGatedDelta,
                 .heads = checked.number(i, "num_v_heads", 1),
                 .key_heads = checked.number(i, "num_k_heads", 1),
                 .key_dim = checked.number(i, "head_k_dim", 1),
                 .value_dim = checked.number(i, "head_v_dim", 1),
                 .chunk = 64};
    // TensorRT-LLM's benchmark convolves only the keys' channels; a model convolves queries, keys and values.
    const double keys = row.mixer.key_heads * row.mixer.key_dim;
    const bool keys_only = row.header.maker == Maker::kTrtllm;
    row.mixer.conv_channels = keys_only ? keys : 2.0 * keys + row.mixer.heads * row.mixer.value_dim;
    return row;
  });
}

std::vector<StateRow> read_mamba2_rows(const CsvTable& table) {
  return read_rows(table, kMambaColumns, [](const KernelTable& checked, std::size_t i) {
    StateRow row = read_call(checked, i);
    row.mixer = {.kind = StateMixer::Kind::kMamba2,
                 .heads = checked.number(i, "heads", 1),
                 .key_heads = checked.number(i, "n_groups", 1),
                 .key_dim = checked.number(i, "d_state", 1),
                 .value_dim = checked.number(i, "head_dim", 1)};
    row.mixer.conv_channels = row.mixer.heads * row.mixer.value_dim + 2.0 * row.mixer.key_heads * row.mixer.key_dim;
    return row;
  });
}

KernelOperator gated_delta_operator() {
  return {
      .name = "gated_delta_net",
      .help = "gated delta nets: engine, op, phase, batch, seq_len, num_k_heads, head_k_dim, num_v_heads, head_v_dim",
      .columns = kDeltaColumns,
      .groups = kGroups,
      .predict = predict_gated_delta,
      .fit = fit_gated_delta};
}

KernelOperator mamba2_operator() {
  return {.name = "mamba2",
          .help = "Mamba-2: engine, op, phase, batch, seq_len, d_state, heads, head_dim, n_groups",
          .columns = kMambaColumns,
          .groups = kGroups,
          .predict = predict_mamba2,
          .fit = fit_mamba2};
}

}  // namespace roofcast::calibrate
