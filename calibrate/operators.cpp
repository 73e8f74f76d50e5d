#include "calibrate/operators.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "calibrate/rows/attention.h"
#include "calibrate/rows/collectives.h"
#include "calibrate/rows/elementwise.h"
#include "calibrate/rows/exchange.h"
#include "calibrate/rows/gemm.h"
#include "calibrate/rows/latent_attention.h"
#include "calibrate/rows/moe.h"
#include "calibrate/rows/state.h"
#include "calibrate/rows/wide_experts.h"

namespace roofcast::calibrate {

std::span<const KernelOperator> kernel_operators() {
  static const std::array table{
      gemm_operator(),
      attention_prefill_operator(),
      attention_decode_operator(),
      latent_prefill_operator(),
      latent_decode_operator(),
      moe_operator(),
      wide_experts_operator(),
      low_latency_exchange_operator(),
      normal_exchange_operator(),
      all_reduce_operator(),
      nccl_operator(),
      gated_delta_operator(),
      mamba2_operator(),
      elementwise_operator(),
  };
  return table;
}

const KernelOperator& find_operator(std::string_view name, const SourceLocation& origin) {
  std::vector<std::string> names;
  for (const KernelOperator& op : kernel_operators()) {
    if (op.name == name) return op;
    names.emplace_back(op.name);
  }
  throw ConfigError(origin, unknown_name("operator", name, names));
}

const KernelOperator& operator_of(const CsvTable& table) {
  const KernelOperator* best = nullptr;
  for (const KernelOperator& op : kernel_operators()) {
    const bool fits = std::all_of(op.columns.begin(), op.columns.end(),
                                  [&](std::string_view column) { return table.find(column).has_value(); });
    if (fits && (!best || op.columns.size() > best->columns.size())) best = &op;
  }
  if (best) return *best;
  std::vector<std::string> names;
  for (const KernelOperator& op : kernel_operators()) names.emplace_back(op.name);
  throw ConfigError(SourceLocation{table.path(), 1, 1},
                    "the columns match no operator (operators: " + join(names, ", ") + ")");
}

}  // namespace roofcast::calibrate
