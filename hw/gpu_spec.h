#pragma once
// Datasheet figures of one GPU and its node (configs/hardware/*.yaml).

#include <array>
#include <optional>
#include <span>
#include <string>

#include "base/config_node.h"
#include "base/config_reader.h"
#include "base/units.h"
#include "hw/architecture.h"
#include "hw/dtype.h"
#include "hw/fabric.h"

namespace roofcast {

template <class P>
struct Parameter;

/// The interconnect. Bandwidths are per GPU and direction.
struct NodeSpec {
  int gpus_per_node = 8;
  Fabric fabric = Fabric::kPcie;
  bool switch_reduces = false;        ///< the switches reduce in-network (NVLink SHARP)
  int fabric_domain = 8;              ///< GPUs connected by the fabric; 72 in a rack, 1 with PCIe only
  BytesPerSecond fabric_bandwidth{};  ///< of all fabric links of a GPU; 0: pcie_bandwidth applies
  BytesPerSecond pcie_bandwidth{};
  BytesPerSecond nic_bandwidth{};  ///< network between nodes, per GPU
  int leaf_gpus = 0;               ///< GPUs whose NICs share one leaf switch; 0: all of them
  double oversubscription = 1.0;   ///< NIC bandwidth of a leaf over that of its uplinks to the spine
  double host_speed = 1.0;         ///< of a core, relative to a DGX H100 (Xeon 8480C); divides the host time of steps
  double launch_speed = 1.0;  ///< of kernel launches, relative to the core's; also divides the host time of launches
  Seconds graph_gap{};        ///< between two kernels of a graph, beyond the launch in a kernel's constants
  bool peer_to_peer = true;   ///< GPUs without a fabric can access each other's memory; else data go through the host
};

/// What one machine delivers relative to the machines that the constants were measured on; found by `calibrate fit`. A
/// GpuSpec has the vendor's bandwidths and peaks times these.
struct MachineShares {
  double memory_bandwidth = 1.0;  ///< of DRAM
  double clock = 1.0;             ///< of the SMs below the power limit: scales all peaks and L2
  double power = 1.0;             ///< clock that the matrix units sustain under load (not the board's watts)
  double fabric_bandwidth = 1.0;  ///< of the links between GPUs
  static std::span<const Parameter<MachineShares>> fields();
};

/// Datasheet peaks of one GPU. The share of a peak that is reached is a separate input (Efficiency).
struct GpuSpec {
  std::string name;
  Architecture architecture = Architecture::kGeneric;
  int sm_count = 0;         ///< streaming multiprocessors, or compute units
  Bytes memory_capacity{};  ///< as reported by the driver: 85.0e9 B for an "80 GB" H100
  BytesPerSecond memory_bandwidth{};
  Bytes l2_cache{};
  Bytes shared_memory_per_sm{};
  PerSecond boost_clock{};             ///< highest SM clock; 0: unknown
  double exponentials_per_clock = 16;  ///< of the special function units of an SM; limits softmax
  Watts board_power{};
  Watts idle_power{};
  UsdPerHour price{};      ///< on demand; users can override it
  bool announced = false;  ///< not sold yet: the figures are the vendor's announcements
  NodeSpec node;
  MachineShares machine;                            ///< the figures of this struct are multiplied by it
  std::array<FlopsPerSecond, kDtypeCount> dense{};  ///< dense peaks; 0: no unit for this format

  /// The format in which a product of these operands is computed. Stored formats without a unit are unpacked to the
  /// activations' format (int4 weights with bf16 activations run in bf16). Null if the GPU has no unit for that format
  /// either.
  std::optional<Dtype> compute_dtype(Dtype weights, Dtype activations) const;
  FlopsPerSecond peak(Dtype compute) const { return dense[static_cast<std::size_t>(compute)]; }
};

/// Resolves `like: GPU`. Keys that the document lacks are taken from that GPU of configs/hardware, except for its price
/// and machine shares. Its constants are transferred, unless the document has its own. Returns the document without
/// `like`.
ConfigTree with_sibling(const ConfigTree& document);

/// Parses a GPU file; resolves `like`.
GpuSpec parse_gpu_spec(ConfigReader in);
/// The same GPU on a machine with these shares.
GpuSpec on_machine(GpuSpec gpu, const MachineShares& shares);

}  // namespace roofcast
