#include "hw/gpu_spec.h"

#include "base/error.h"

namespace roofcast {
namespace {

bool is_wide(Dtype dtype) { return element_bits(dtype) >= 16.0; }

/// The format that both operands can be turned into without loss of the wider one. Weights are
/// unpacked to the activations' format inside the kernel; only weights of 16 or more bits with narrower
/// activations pull the activations up.
Dtype common_format(Dtype weights, Dtype activations) {
  if (is_wide(activations)) return activations;
  return is_wide(weights) || element_bits(weights) > element_bits(activations) ? weights : activations;
}

/// A quantity that a GPU cannot be without.
template <class Q>
Q positive(Q value, const ConfigReader& in, std::string_view key) {
  if (value.base() <= 0.0) in.fail(key, "must be above 0");
  return value;
}

NodeSpec parse_node(ConfigReader in) {
  NodeSpec node;
  node.gpus_per_node = static_cast<int>(in.integer("gpus_per_node", node.gpus_per_node, Range{1, 1 << 20}));
  node.nvlink_bandwidth = in.bandwidth("nvlink_bandwidth", BytesPerSecond{});
  const bool linked = node.nvlink_bandwidth.base() > 0.0;
  node.nvlink_domain =
      static_cast<int>(in.integer("nvlink_domain", linked ? node.gpus_per_node : 1, Range{1, 1 << 20}));
  if (node.nvlink_domain > 1 && !linked) in.fail("nvlink_domain", "above 1 needs an 'nvlink_bandwidth'");
  node.pcie_bandwidth = positive(in.bandwidth("pcie_bandwidth"), in, "pcie_bandwidth");
  node.nic_bandwidth = positive(in.bandwidth("nic_bandwidth"), in, "nic_bandwidth");
  node.host_speed = in.number("host_speed", node.host_speed, Range{0.05, 20.0});
  node.launch_speed = in.number("launch_speed", node.launch_speed, Range{0.05, 20.0});
  in.finish();
  return node;
}

std::array<FlopsPerSecond, kDtypeCount> parse_dense(ConfigReader in) {
  std::array<FlopsPerSecond, kDtypeCount> dense{};
  for (std::size_t i = 0; i < kDtypeCount; ++i) {
    dense[i] = in.flop_rate(name_of(static_cast<Dtype>(i)), FlopsPerSecond{});
  }
  in.finish();
  // Same units, other scales.
  FlopsPerSecond& block = dense[static_cast<std::size_t>(Dtype::kFp8Block)];
  if (block.base() == 0.0) block = dense[static_cast<std::size_t>(Dtype::kFp8)];
  // Every GPU has CUDA cores; A100 and H100 do a sixteenth of bf16 on them.
  FlopsPerSecond& single = dense[static_cast<std::size_t>(Dtype::kFp32)];
  if (single.base() == 0.0) single = dense[static_cast<std::size_t>(Dtype::kBf16)] * (1.0 / 16.0);
  return dense;
}

}  // namespace

std::optional<Dtype> GpuSpec::compute_dtype(Dtype weights, Dtype activations) const {
  const auto has_unit = [this](Dtype dtype) { return peak(dtype).base() > 0.0; };
  if (!has_unit(activations)) return std::nullopt;
  const Dtype common = common_format(weights, activations);
  if (!has_unit(common)) return std::nullopt;
  return common;
}

GpuSpec parse_gpu_spec(ConfigReader in) {
  GpuSpec gpu;
  gpu.name = in.text("name");
  gpu.architecture = in.text("architecture");
  gpu.sm_count = static_cast<int>(in.integer("sm_count", Range{1, 1 << 20}));
  gpu.memory_capacity = positive(in.bytes("memory_capacity"), in, "memory_capacity");
  gpu.memory_bandwidth = positive(in.bandwidth("memory_bandwidth"), in, "memory_bandwidth");
  gpu.l2_cache = positive(in.bytes("l2_cache"), in, "l2_cache");
  gpu.shared_memory_per_sm = positive(in.bytes("shared_memory_per_sm"), in, "shared_memory_per_sm");
  gpu.boost_clock = in.clock("boost_clock", PerSecond{});
  gpu.exponentials_per_clock = in.number("exponentials_per_clock", gpu.exponentials_per_clock, Range{1.0, 1024.0});
  gpu.board_power = in.power("board_power", Watts{});
  gpu.idle_power = in.power("idle_power", Watts{});
  if (gpu.idle_power > gpu.board_power) in.fail("idle_power", "must not be above 'board_power'");
  gpu.price = in.price("price", UsdPerHour{});
  gpu.node = parse_node(in.child("node"));
  gpu.dense = parse_dense(in.child("dense"));
  if (gpu.peak(Dtype::kBf16).base() + gpu.peak(Dtype::kFp16).base() == 0.0) in.fail("dense", "must have bf16 or fp16");
  in.ignore("efficiency");  // load_gpu reads it
  in.finish();
  return gpu;
}

}  // namespace roofcast
