#include "hw/gpu_spec.h"

#include <cmath>
#include <filesystem>

#include <fmt/format.h>
#include <algorithm>
#include <initializer_list>

#include "base/config_library.h"
#include "base/error.h"
#include "base/text.h"
#include "hw/changed_gpu.h"
#include "hw/parameters.h"

namespace roofcast {
namespace {

bool is_wide(Dtype dtype) { return element_bits(dtype) >= 16.0; }

/// The format in which two operands are multiplied. Weights are unpacked to the activations' format inside the kernel.
/// Only if the weights have 16 or more bits and the activations fewer, the activations are converted to the weights'
/// format. Block scales of weights are applied to the products, whatever scales the activations have, at the rate of
/// block fp8.
Dtype common_format(Dtype weights, Dtype activations) {
  if (is_wide(activations)) return activations;
  if (weights == Dtype::kFp8Block && activations == Dtype::kFp8) return weights;
  return is_wide(weights) || element_bits(weights) > element_bits(activations) ? weights : activations;
}

/// A quantity that every GPU must have.
template <class Q>
Q positive(Q value, const ConfigReader& in, std::string_view key) {
  if (value.base() <= 0.0) in.fail(key, "must be above 0");
  return value;
}

/// NVLink has its own keys; every other fabric uses `fabric_bandwidth` and `fabric_domain`.
void read_fabric(ConfigReader& in, NodeSpec& node, Architecture architecture) {
  const MatrixUnits units = traits_of(architecture).matrix_units;
  const bool nvidia = units != MatrixUnits::kNone && units != MatrixUnits::kMfma;
  const bool given = in.has("fabric");
  if (given) node.fabric = parse_fabric(in.text("fabric"), in.location_of("fabric"));
  const bool by_nvlink = given ? is_nvlink(node.fabric) : in.has("nvlink_bandwidth") || in.has("nvlink_domain");
  const char* bandwidth = by_nvlink ? "nvlink_bandwidth" : "fabric_bandwidth";
  const char* domain = by_nvlink ? "nvlink_domain" : "fabric_domain";
  for (const char* key : {"nvlink_bandwidth", "nvlink_domain"}) {
    if (given && !by_nvlink && in.has(key))
      in.fail(key, fmt::format("cannot be combined with the fabric '{}'", name_of(node.fabric)));
  }
  node.fabric_bandwidth = in.bandwidth(bandwidth, BytesPerSecond{});
  const bool linked = node.fabric_bandwidth.base() > 0.0;
  node.fabric_domain = static_cast<int>(in.integer(domain, linked ? node.gpus_per_node : 1, Range{1, 1 << 20}));
  if (node.fabric_domain > 1 && !linked) in.fail(domain, fmt::format("above 1 needs a '{}'", bandwidth));
  if (given && node.fabric == Fabric::kPcie && linked) in.fail(bandwidth, "PCIe has only 'pcie_bandwidth'");
  if (!given && linked) {
    node.fabric = units == MatrixUnits::kMfma               ? Fabric::kXgmiMesh
                  : !nvidia                                 ? Fabric::kMesh
                  : node.fabric_domain > node.gpus_per_node ? Fabric::kNvlDomain
                  : node.fabric_domain < node.gpus_per_node ? Fabric::kNvlinkMesh  // bridges between a few cards
                                                            : Fabric::kNvSwitch;
  }
  if (given && node.fabric != Fabric::kPcie && !linked)
    in.fail("fabric", fmt::format("'{}' needs '{}'", name_of(node.fabric), bandwidth));
  if (!linked) node.fabric = Fabric::kPcie;
  const bool adds = units == MatrixUnits::kWgmma || units == MatrixUnits::kTcgen05;  // NVLink SHARP came with Hopper
  const bool switched = traits_of(node.fabric).switched;
  node.switch_reduces = in.boolean("switch_reduces", switched && adds);
  if (node.switch_reduces && !switched) in.fail("switch_reduces", "needs a fabric with a switch");
}

/// If the number of links is given, they must add up to the bandwidth and, in a mesh, divide evenly between the peers.
void check_links(ConfigReader& in, const NodeSpec& node) {
  const auto links = static_cast<int>(in.integer("fabric_links", 0, Range{1, 1 << 10}));
  const BytesPerSecond one = in.bandwidth("link_bandwidth", BytesPerSecond{});
  const bool counted = links > 0, rated = one.base() > 0.0;
  if (counted != rated) {
    in.fail(counted ? "fabric_links" : "link_bandwidth",
            fmt::format("needs '{}', too", counted ? "link_bandwidth" : "fabric_links"));
  }
  if (!counted) return;
  const double sum = links * one.base(), whole = node.fabric_bandwidth.base();
  if (std::abs(sum - whole) > 0.01 * whole) {
    in.fail("fabric_links", fmt::format("{} links of {:g} GB/s are {:g} GB/s, not the {:g} GB/s of the fabric: set its "
                                        "bandwidth to {:g} GB/s",
                                        links, one.base() / 1e9, sum / 1e9, whole / 1e9, sum / 1e9));
  }
  const int peers = node.fabric_domain - 1;
  if (!traits_of(node.fabric).switched && peers > 0 && links % peers != 0) {
    in.fail("fabric_links", fmt::format("a mesh of {} GPUs has a multiple of {} links per GPU, got {}: set "
                                        "'fabric_domain' to {}",
                                        node.fabric_domain, peers, links, links + 1));
  }
}

/// A domain lies within a node, or consists of whole nodes.
void check_domain(const ConfigReader& in, const NodeSpec& node) {
  const bool beyond = node.fabric_domain > node.gpus_per_node;
  const char* key = is_nvlink(node.fabric) ? "nvlink_domain" : "fabric_domain";
  if (beyond && node.fabric == Fabric::kNvSwitch) {
    in.fail(key,
            fmt::format("the switches of a node connect its {} GPUs, not {}: set 'fabric: nvl_domain' for a rack, or "
                        "'{}: {}'",
                        node.gpus_per_node, node.fabric_domain, key, node.gpus_per_node));
  }
  if (beyond && node.fabric_domain % node.gpus_per_node != 0) {
    in.fail(key, fmt::format("must be a multiple of the {} GPUs of a node, got {}: set it to {}", node.gpus_per_node,
                             node.fabric_domain, node.fabric_domain / node.gpus_per_node * node.gpus_per_node));
  }
}

/// Leaf switches and their spine. A leaf has whole nodes, or whole domains if these are larger.
void read_network(ConfigReader& in, NodeSpec& node) {
  node.nic_bandwidth = positive(in.bandwidth("nic_bandwidth"), in, "nic_bandwidth");
  node.leaf_gpus = static_cast<int>(in.integer("leaf_gpus", 0, Range{1, 1 << 20}));
  node.oversubscription = in.number("oversubscription", 1.0, Range{1.0, 64.0});
  if (node.oversubscription > 1.0 && node.leaf_gpus == 0)
    in.fail("oversubscription", "needs 'leaf_gpus': the number of GPUs whose NICs share one leaf switch");
  const int whole = std::max(node.gpus_per_node, node.fabric_domain);
  if (node.leaf_gpus % whole != 0) {
    in.fail("leaf_gpus", fmt::format("must be a multiple of {}, the GPUs of a fabric domain or node, got {}: set "
                                     "it to {}",
                                     whole, node.leaf_gpus, (node.leaf_gpus / whole + 1) * whole));
  }
}

NodeSpec parse_node(ConfigReader in, Architecture architecture) {
  NodeSpec node;
  node.gpus_per_node = static_cast<int>(in.integer("gpus_per_node", node.gpus_per_node, Range{1, 1 << 20}));
  read_fabric(in, node, architecture);
  check_links(in, node);
  check_domain(in, node);
  node.pcie_bandwidth = positive(in.bandwidth("pcie_bandwidth"), in, "pcie_bandwidth");
  read_network(in, node);
  node.host_speed = in.number("host_speed", node.host_speed, Range{0.05, 20.0});
  node.launch_speed = in.number("launch_speed", node.launch_speed, Range{0.05, 20.0});
  node.graph_gap = in.time("graph_gap", Seconds{});
  if (node.graph_gap.base() < 0.0) in.fail("graph_gap", "must be at least 0");
  node.peer_to_peer = in.boolean("peer_to_peer", node.peer_to_peer);
  if (!node.peer_to_peer && node.fabric_bandwidth.base() > 0.0)
    in.fail("peer_to_peer", "GPUs on a fabric access each other's memory: 'false' is allowed only with 'fabric: pcie'");
  in.finish();
  return node;
}

std::array<FlopsPerSecond, kDtypeCount> parse_dense(ConfigReader in) {
  std::array<FlopsPerSecond, kDtypeCount> dense{};
  for (std::size_t i = 0; i < kDtypeCount; ++i) {
    dense[i] = in.flop_rate(name_of(static_cast<Dtype>(i)), FlopsPerSecond{});
  }
  in.finish();
  // The same units, with other scales.
  FlopsPerSecond& block = dense[static_cast<std::size_t>(Dtype::kFp8Block)];
  if (block.base() == 0.0) block = dense[static_cast<std::size_t>(Dtype::kFp8)];
  // Engines run models of either 16-bit format in the one that the GPU supports (a V100 has no bf16).
  FlopsPerSecond& bf16 = dense[static_cast<std::size_t>(Dtype::kBf16)];
  FlopsPerSecond& fp16 = dense[static_cast<std::size_t>(Dtype::kFp16)];
  if (bf16.base() == 0.0) bf16 = fp16;
  if (fp16.base() == 0.0) fp16 = bf16;
  // Every GPU has CUDA cores; on A100 and H100 their fp32 rate is a sixteenth of the bf16 peak.
  FlopsPerSecond& single = dense[static_cast<std::size_t>(Dtype::kFp32)];
  if (single.base() == 0.0) single = dense[static_cast<std::size_t>(Dtype::kBf16)] * (1.0 / 16.0);
  return dense;
}

/// Reports all missing keys of a new file at once.
void require_keys(ConfigReader& in) {
  std::vector<std::string> needed{"name", "architecture", "memory_capacity", "memory_bandwidth"};
  if (!in.has("architecture") ||
      !by_roofline(parse_architecture(in.text("architecture"), in.location_of("architecture"))))
    needed.insert(needed.end(), {"sm_count", "l2_cache", "shared_memory_per_sm"});
  std::vector<std::string> missing;
  for (const std::string& key : needed) {
    if (!in.has(key)) missing.push_back(key);
  }
  const std::optional<ConfigReader> node = in.has("node") ? std::optional(in.child("node")) : std::nullopt;
  for (const char* key : {"pcie_bandwidth", "nic_bandwidth"}) {
    if (!node || !node->has(key)) missing.push_back(std::string("node.") + key);
  }
  if (!in.has("dense")) missing.push_back("dense");
  if (missing.size() > 1)  // a single missing key is reported where it is read, with its possible misspelling
    throw ConfigError(in.location(), fmt::format("missing keys of a GPU: {}", join(missing, ", ")));
}

}  // namespace

std::optional<Dtype> GpuSpec::compute_dtype(Dtype weights, Dtype activations) const {
  const auto has_unit = [this](Dtype dtype) { return peak(dtype).base() > 0.0; };
  if (!has_unit(activations)) return std::nullopt;
  const Dtype common = common_format(weights, activations);
  if (!has_unit(common)) return std::nullopt;
  return common;
}

namespace {

ConfigTree without(const ConfigTree& map, std::initializer_list<std::string_view> keys) {
  std::vector<ConfigNode::Entry> kept;
  for (const ConfigNode::Entry& entry : map->entries) {
    if (std::find(keys.begin(), keys.end(), entry.key) == keys.end()) kept.push_back(entry);
  }
  return make_map(std::move(kept), map->location);
}

/// A relative path is relative to the file that names it. A name is unchanged.
std::string beside_its_file(const std::string& name, const SourceLocation& named_at) {
  const std::filesystem::path path(name);
  const bool file = name.find('/') != std::string::npos || name.ends_with(".yaml");
  if (!file || path.is_absolute() || named_at.path.str().starts_with("-")) return name;
  return (std::filesystem::path(named_at.path.str()).parent_path() / path).lexically_normal().string();
}

constexpr int kLongestFamily = 4;  ///< of GPUs that each name another in `like`; stops at a circle

ConfigTree with_sibling(const ConfigTree& document, int depth) {
  const ConfigTree* like = document->find("like");
  if (like == nullptr || !*like || (*like)->kind == ConfigNode::Kind::kNull) return document;
  if ((*like)->kind != ConfigNode::Kind::kScalar) throw ConfigError((*like)->location, "'like' must name a GPU");
  if (depth >= kLongestFamily) throw ConfigError((*like)->location, "GPUs name each other in 'like' in a circle");
  const std::string name = beside_its_file((*like)->scalar, (*like)->location);
  const ConfigTree sibling = with_sibling(load_named("hardware", name, (*like)->location), depth + 1);
  const ConfigTree own = without(document, {"like"});
  ConfigTree shared = without(sibling, {"name", "price", "machine"});
  const bool own_constants = own->find("efficiency") != nullptr;
  shared = own_constants ? without(shared, {"efficiency"}) : with_constants_of(shared, name, (*like)->location);
  return overlay(shared, own);
}

}  // namespace

ConfigTree with_sibling(const ConfigTree& document) { return with_sibling(document, 0); }

GpuSpec parse_gpu_spec(ConfigReader document) {
  ConfigReader in(with_sibling(document.whole()), "a GPU");
  GpuSpec gpu;
  require_keys(in);
  gpu.name = in.text("name");
  gpu.architecture = parse_architecture(in.text("architecture"), in.location_of("architecture"));
  // A roofline needs neither SMs nor L2.
  const bool generic = by_roofline(gpu.architecture);
  gpu.sm_count = static_cast<int>(generic ? in.integer("sm_count", 1, Range{1, 1 << 20})
                                          : in.integer("sm_count", Range{1, 1 << 20}));
  gpu.memory_capacity = positive(in.bytes("memory_capacity"), in, "memory_capacity");
  gpu.memory_bandwidth = positive(in.bandwidth("memory_bandwidth"), in, "memory_bandwidth");
  gpu.l2_cache = positive(generic ? in.bytes("l2_cache", Bytes(kMebibyte)) : in.bytes("l2_cache"), in, "l2_cache");
  gpu.shared_memory_per_sm =
      positive(generic ? in.bytes("shared_memory_per_sm", Bytes(kMebibyte)) : in.bytes("shared_memory_per_sm"), in,
               "shared_memory_per_sm");
  gpu.boost_clock = in.clock("boost_clock", PerSecond{});
  gpu.exponentials_per_clock = in.number("exponentials_per_clock", gpu.exponentials_per_clock, Range{1.0, 1024.0});
  gpu.board_power = in.power("board_power", Watts{});
  gpu.idle_power = in.power("idle_power", Watts{});
  if (gpu.idle_power > gpu.board_power) in.fail("idle_power", "must not be above 'board_power'");
  gpu.price = in.price("price", UsdPerHour{});
  gpu.announced = in.boolean("announced", false);
  gpu.node = parse_node(in.child("node"), gpu.architecture);
  gpu.dense = parse_dense(in.child("dense"));
  if (gpu.peak(Dtype::kBf16).base() + gpu.peak(Dtype::kFp16).base() == 0.0) in.fail("dense", "must have bf16 or fp16");
  MachineShares shares;
  if (std::optional<ConfigReader> machine = in.optional_child("machine")) {
    for (const Parameter<MachineShares>& share : MachineShares::fields())
      shares.*share.member = machine->number(share.name, 1.0, Range{share.low, share.high});
    machine->text("source", "");
    machine->finish();
  }
  in.ignore("efficiency");  // load_gpu reads it
  in.finish();
  return on_machine(std::move(gpu), shares);
}

GpuSpec on_machine(GpuSpec gpu, const MachineShares& shares) {
  gpu.memory_bandwidth *= shares.memory_bandwidth;
  gpu.boost_clock *= shares.clock;
  for (FlopsPerSecond& peak : gpu.dense) peak *= shares.clock;
  gpu.node.fabric_bandwidth *= shares.fabric_bandwidth;
  for (const Parameter<MachineShares>& share : MachineShares::fields())
    gpu.machine.*share.member *= shares.*share.member;
  return gpu;
}

/// Bounds: machines that differ by more are of another kind or faulty.
std::span<const Parameter<MachineShares>> MachineShares::fields() {
  using P = MachineShares;
  static constexpr std::array<Parameter<P>, 4> fields{{
      {"memory_bandwidth", &P::memory_bandwidth, 0.5, 1.5, Transfer::kKept, "of DRAM"},
      {"clock", &P::clock, 0.5, 1.5, Transfer::kKept,
       "clock of the SMs below the power limit; scales all peaks and L2"},
      {"power", &P::power, 0.3, 2.0, Transfer::kKept, "clock that the matrix units sustain under load"},
      {"fabric_bandwidth", &P::fabric_bandwidth, 0.3, 1.5, Transfer::kKept, "bandwidth of the links between GPUs"},
  }};
  return fields;
}

}  // namespace roofcast
