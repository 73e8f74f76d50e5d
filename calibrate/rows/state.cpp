#include "calibrate/rows/state.h"

#include <fmt/format.h>

#include <array>

#include "hw/kernels/l2.h"

namespace roofcast {
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

Seconds time_of(const StateRow& row, const ConvolutionParameters& p, const GpuSpec& gpu) {
  const double channels = row.mixer.conv_channels;
  return row.prompt ? convolution_prefill_time(row.batch, row.query_len, channels, p, gpu)
                    : convolution_decode_time(row.batch, channels, p, gpu);
}

Seconds time_of(const StateRow& row, const StateParameters& p, const GpuSpec& gpu) {
  return recurrence_row_time(row, p, gpu);
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

constexpr const char* kStateBlock = "state.bf16";

std::vector<Prediction> predict(const std::vector<StateRow>& rows, const BenchedGpu& gpu) {
  std::vector<Prediction> times;
  for (const StateRow& row : rows) {
    const Machine machine = gpu.machine(row.header);
    const Efficiency& e = *machine.efficiency;
    const bool mamba = row.mixer.kind == StateMixer::Kind::kMamba2 && e.has(mamba_convolution_kernel());
    if (machine.fidelity == Fidelity::kIdeal) {
      times.push_back({ideal_of(row, machine), 0.0});
    } else if (row.convolution) {
      times.push_back({time_of(row, convolution_parameters(row.mixer.kind, &e), gpu.spec),
                       discrepancy_of(e, mamba ? mamba_convolution_kernel() : convolution_kernel(), Dtype::kBf16)});
    } else {
      times.push_back({recurrence_row_time(row, state_parameters(&e), gpu.spec),
                       discrepancy_of(e, state_kernel(), Dtype::kBf16, !row.prompt)});
    }
  }
  return times;
}

/// A token a sequence runs in a kernel of its own, few rows beside those of prompts: it gets a discrepancy of its own.
void score_decode(const std::vector<StateRow>& scans, const GpuSpec& gpu, std::vector<FittedConstants>& fitted) {
  if (fitted.empty() || fitted.back().block != kStateBlock) return;
  std::vector<StateRow> decode;
  for (const StateRow& row : scans) {
    if (!row.prompt) decode.push_back(row);
  }
  const auto predict_row = [&](const StateRow& row, const StateParameters& p) {
    return recurrence_row_time(row, p, gpu);
  };
  score_elsewhere<StateParameters>(decode, predict_row, fitted.back());
}

/// One size of mixer, whatever the batch and length: left out of a fit together.
std::uint64_t size_of(const StateRow& row) {
  return static_cast<std::uint64_t>(row.mixer.conv_channels * 1009.0 + row.mixer.heads);
}

/// vLLM's scan of a prompt is one fused kernel (FlashInfer), TensorRT-LLM's a chain of Triton kernels. What an engine
/// does not do is 0.
StateParameters scan_prior(KernelFamily family) {
  StateParameters prior;
  if (family == KernelFamily::kTrtllm) {
    prior.start_us = prior.chunk_us = 0.0;
    prior.serial_us = 1.0;
    prior.chunk_sm_us = 8.0;
    prior.intermediate_passes = 2.0;
    prior.prefill_launch_us = 15.0;
  } else {
    prior.serial_us = prior.chunk_sm_us = prior.intermediate_passes = 0.0;
    prior.chunk_us = 2.9;
    prior.prefill_launch_us = 3.0;
  }
  return prior;
}

template <class P>
void fit_part(const std::string& block, std::span<const StateRow> rows, const P& prior,
              std::initializer_list<const char*> absent, const GpuSpec& gpu, const FitOptions& options,
              std::vector<FittedConstants>& out) {
  if (rows.empty()) return;
  FitOptions mine = options;
  mine.what = fmt::format("{} of {}", block, gpu.name);
  mine.fixed.insert(mine.fixed.end(), absent.begin(), absent.end());
  const auto predict_row = [&](const StateRow& row, const P& p) { return time_of(row, p, gpu); };
  if (!enough_rows(rows.size(), mine)) return;
  out.push_back(fit_block_of(block, rows, predict_row, mine, size_of, prior));
}

std::vector<FittedConstants> fit_rows(const std::vector<StateRow>& all, const std::string& convolution_block,
                                      const GpuSpec& gpu, KernelFamily family, const FitOptions& options) {
  std::vector<StateRow> convolutions, scans;
  for (const StateRow& row : all) {
    if (row.header.belongs_to(family)) (row.convolution ? convolutions : scans).push_back(row);
  }
  std::vector<FittedConstants> out;
  const bool strips = family == KernelFamily::kTrtllm;
  const ConvolutionParameters before = convolution_prior(family);
  const StateParameters scan = scan_prior(family);
  if (strips) {
    fit_part(convolution_block, std::span<const StateRow>(convolutions), before, {"ramp_us", "issue_ns_per_kb"}, gpu,
             options, out);
    fit_part(kStateBlock, std::span<const StateRow>(scans), scan, {"start_us", "chunk_us"}, gpu, options, out);
  } else {
    fit_part(convolution_block, std::span<const StateRow>(convolutions), before,
             {"strip_start_us", "strip_us", "strips_per_sm"}, gpu, options, out);
    fit_part(kStateBlock, std::span<const StateRow>(scans), scan, {"serial_us", "chunk_sm_us", "intermediate_passes"},
             gpu, options, out);
  }
  score_decode(scans, gpu, out);
  return out;
}

std::vector<Prediction> predict_gated_delta(const CsvTable& table, const BenchedGpu& gpu) {
  return predict(read_gated_delta_rows(table), gpu);
}
std::vector<Prediction> predict_mamba2(const CsvTable& table, const BenchedGpu& gpu) {
  return predict(read_mamba2_rows(table), gpu);
}
std::vector<FittedConstants> fit_gated_delta(const CsvTable& table, const GpuSpec& gpu, KernelFamily family,
                                             const FitOptions& options) {
  return fit_rows(read_gated_delta_rows(table), "convolution.bf16", gpu, family, options);
}
std::vector<FittedConstants> fit_mamba2(const CsvTable& table, const GpuSpec& gpu, KernelFamily family,
                                        const FitOptions& options) {
  return fit_rows(read_mamba2_rows(table), "mamba_convolution.bf16", gpu, family, options);
}

}  // namespace

/// A loop finds in L2 what it wrote just before, as far as it fits; an engine's other layers have evicted it.
Seconds recurrence_row_time(const StateRow& row, const StateParameters& p, const GpuSpec& gpu) {
  if (row.prompt) return scan_prefill_time(row.batch, row.query_len, row.mixer, p, gpu);
  if (row.header.timing != Timing::kBenchmark) return recurrence_decode_time(row.batch, row.mixer, p, gpu);
  const Bytes bytes = decode_state_traffic(row.batch, row.mixer, p);
  const double rate = rate_with_l2(gpu, bytes, gpu.memory_bandwidth.base() * p.decode_bandwidth_fraction);
  return Seconds{1e-6 * p.decode_launch_us + bytes.base() / rate};
}

std::vector<StateRow> read_gated_delta_rows(const CsvTable& table) {
  const KernelTable checked(table, kDeltaColumns);
  std::vector<StateRow> rows;
  for (std::size_t i = 0; i < checked.rows(); ++i) {
    StateRow row = read_call(checked, i);
    row.mixer = {.kind = StateMixer::Kind::kGatedDelta,
                 .heads = checked.number(i, "num_v_heads", 1),
                 .key_heads = checked.number(i, "num_k_heads", 1),
                 .key_dim = checked.number(i, "head_k_dim", 1),
                 .value_dim = checked.number(i, "head_v_dim", 1),
                 .chunk = 64};
    // TensorRT-LLM's benchmark convolves the keys' channels only; a model convolves queries, keys and values.
    const double keys = row.mixer.key_heads * row.mixer.key_dim;
    const bool keys_only = row.header.maker == Maker::kTrtllm;
    row.mixer.conv_channels = keys_only ? keys : 2.0 * keys + row.mixer.heads * row.mixer.value_dim;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<StateRow> read_mamba2_rows(const CsvTable& table) {
  const KernelTable checked(table, kMambaColumns);
  std::vector<StateRow> rows;
  for (std::size_t i = 0; i < checked.rows(); ++i) {
    StateRow row = read_call(checked, i);
    row.mixer = {.kind = StateMixer::Kind::kMamba2,
                 .heads = checked.number(i, "heads", 1),
                 .key_heads = checked.number(i, "n_groups", 1),
                 .key_dim = checked.number(i, "d_state", 1),
                 .value_dim = checked.number(i, "head_dim", 1)};
    row.mixer.conv_channels = row.mixer.heads * row.mixer.value_dim + 2.0 * row.mixer.key_heads * row.mixer.key_dim;
    rows.push_back(std::move(row));
  }
  return rows;
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

}  // namespace roofcast
