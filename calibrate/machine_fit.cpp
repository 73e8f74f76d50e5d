#include "calibrate/machine_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <variant>

#include "base/config_library.h"
#include "calibrate/rows/collectives.h"
#include "calibrate/rows/gemm_loop.h"
#include "hw/carry_over.h"
#include "hw/kernel_rules.h"
#include "hw/kernels/gemm/gemm_kernel.h"

namespace roofcast::calibrate {
namespace {

/// Mean error of a fit on unseen shapes: smaller differences do not distinguish machines.
constexpr double kSameWithin = 0.02;

struct MachineRow {
  RowHeader header;
  std::variant<GemmRow, CollectiveRow> row;
  std::string kernels;  ///< the kernel set whose constants price it
};

/// The rows of libraries whose kernel has measured constants.
std::vector<MachineRow> rows_of(const std::vector<MeasuredTable>& tables, const BenchmarkedGpu& gpu) {
  std::vector<MachineRow> out;
  for (const MeasuredTable& table : tables) {
    if (table.op == "gemm") {
      for (GemmRow& row : read_gemm_rows(table.table)) {
        for (const Maker maker : {Maker::kVllm, Maker::kTrtllm}) {
          const Efficiency& known = gpu.of(kernels_of(maker));
          const MatmulKernel& kernel = gemm_kernel(row.shape, gpu.spec, known.rules());
          if (row.header.maker != Maker::kCublasLt || !kernel.is_cublaslt() || !known.block(kernel, row.block))
            continue;
          out.push_back({row.header, row, kernels_of(maker)});
          break;
        }
      }
    }
    if (table.op == "nccl") {
      for (const CollectiveRow& row : read_nccl_rows(table.table)) {
        if (row.header.maker == Maker::kNccl && row.group.gpus > 1) out.push_back({row.header, row, kDefaultKernels});
      }
    }
  }
  return out;
}

/// Prices rows for given shares. Whatever depends only on the shares is computed once for all rows.
class Pricing {
 public:
  explicit Pricing(const BenchmarkedGpu& gpu) : gpu_(gpu) {}

  Seconds operator()(const MachineRow& one, const MachineShares& shares) {
    move_to(shares);
    if (const auto* row = std::get_if<GemmRow>(&one.row)) {
      const KernelRules& rules = gpu_.of(one.kernels).rules();
      const MatmulKernel& kernel = gemm_kernel(row->shape, gpu_.spec, rules);
      return gemm_row_time(*row, kernel, gemm_of(kernel, one.kernels, row->block), {}, here_, collector_of(rules));
    }
    const auto& row = std::get<CollectiveRow>(one.row);
    const auto* fitted = gpu_.of(one.kernels).find(nccl_kernel(row.kind), Dtype::kBf16);
    return nccl_time(row.kind, row.bytes, row.group, fitted ? fitted->value : nccl_prior(row.kind, here_), here_);
  }

 private:
  void move_to(const MachineShares& shares) {
    for (const Parameter<MachineShares>& share : MachineShares::fields()) {
      if (here_.sm_count > 0 && shares.*share.member == at_.*share.member) continue;
      at_ = shares;
      here_ = on_machine(gpu_.spec, shares);
      gemm_.clear();
      return;
    }
  }
  const GemmParameters& gemm_of(const MatmulKernel& kernel, const std::string& kernels, Dtype block) {
    auto& known = gemm_[{kernels, block}];
    if (!known) {
      known = kernel.parameters(kernel.carried_over(gpu_.of(kernels).block(kernel, block),
                                                    carry_over_case(gpu_.spec, here_, {.same_kind = true}, block)));
    }
    return *known;
  }

  const BenchmarkedGpu& gpu_;
  MachineShares at_;
  GpuSpec here_;
  std::map<std::pair<std::string, Dtype>, std::optional<GemmParameters>> gemm_;
};

std::uint64_t group_of(const MachineRow& one) {
  if (const auto* row = std::get_if<GemmRow>(&one.row))
    return static_cast<std::uint64_t>(row->shape.n) * 1000003u + static_cast<std::uint64_t>(row->shape.k);
  return static_cast<std::uint64_t>(std::get<CollectiveRow>(one.row).bytes.base());
}

/// Fixes the shares that the rows cannot determine.
FitOptions options_for(const std::vector<MachineRow>& rows, const FitOptions& options, const GpuSpec& gpu) {
  FitOptions mine = options;
  mine.what = "the machine of " + gpu.name;
  mine.huber_width = 0.06;
  const auto is_product = [](const MachineRow& one) { return std::holds_alternative<GemmRow>(one.row); };
  if (std::none_of(rows.begin(), rows.end(), is_product))
    mine.fixed.insert(mine.fixed.end(), {"memory_bandwidth", "clock"});
  if (std::all_of(rows.begin(), rows.end(), is_product)) mine.fixed.emplace_back("fabric_bandwidth");
  const bool loaded = std::any_of(rows.begin(), rows.end(), [&](const MachineRow& one) {
    return is_product(one) && one.header.timing == Timing::kServed;
  });
  if (!loaded) mine.fixed.emplace_back("power");
  return mine;
}

}  // namespace

FitResult<MachineShares> fit_machine(const std::vector<MeasuredTable>& tables, const BenchmarkedGpu& gpu,
                                     const FitOptions& options) {
  const std::vector<MachineRow> rows = rows_of(tables, gpu);
  const FitOptions mine = options_for(rows, options, gpu.spec);
  FitResult<MachineShares> result;
  if (rows.empty() || !enough_rows(rows.size(), mine)) return result;
  Pricing price(gpu);
  result = fit<MachineShares>(
      std::span<const MachineRow>(rows),
      [&](const MachineRow& row, const MachineShares& shares) { return price(row, shares); }, mine, group_of,
      MachineShares{});
  for (std::size_t i = 0; i < result.fields.size(); ++i) {
    FieldReport& field = result.fields[i];
    const bool told = field.state == FieldState::kFitted || field.state == FieldState::kAtBound;
    const double certain = std::max(kSameWithin, 2.0 * field.standard_error);
    if (told && std::abs(field.value - 1.0) > certain) continue;
    field.value = result.value.*MachineShares::fields()[i].member = 1.0;
  }
  return result;
}

BenchmarkedGpu on_machine(const BenchmarkedGpu& gpu, const MachineShares& shares) {
  BenchmarkedGpu here{on_machine(gpu.spec, shares), gpu.by_set, gpu.fidelity};
  const CarryOver how{.same_kind = true};
  for (auto& [kernels, efficiency] : here.by_set) efficiency = carry_over(efficiency, gpu.spec, here.spec, how);
  return here;
}

ConfigTree with_machine(ConfigTree gpu, const MachineShares& shares, const std::string& source) {
  const GpuSpec before = parse_gpu_spec(ConfigReader(gpu, "a GPU"));
  const bool shipped = shipped_name("hardware", before.name) == before.name &&
                       gpu->location.path == path_of_named("hardware", before.name, SourceLocation{"--gpu", 0, 0});
  std::vector<ConfigNode::Entry> entries;
  for (const Parameter<MachineShares>& share : MachineShares::fields()) {
    const double all = before.machine.*share.member * shares.*share.member;
    entries.push_back({std::string(share.name), {}, make_scalar(fmt::format("{:.4g}", all))});
  }
  ConfigNode text;
  text.kind = ConfigNode::Kind::kScalar;
  text.scalar = source;
  text.quoted = true;
  entries.push_back({"source", {}, std::make_shared<const ConfigNode>(std::move(text))});
  gpu = with_value(gpu, "machine", make_map(std::move(entries)), "calibrate");
  if (!shipped) return gpu;
  return with_value(gpu, "efficiency", make_map({{"carried_over_from", {}, make_scalar(before.name)}}), "calibrate");
}

}  // namespace roofcast::calibrate
