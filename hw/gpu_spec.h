#pragma once
// Vendor figures of one GPU and of the node it sits in (configs/hardware/*.yaml).

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

/// What connects GPUs. Bandwidths are per GPU and direction.
struct NodeSpec {
  int gpus_per_node = 8;
  Fabric fabric = Fabric::kPcie;
  bool switch_reduces = false;        ///< the switches add in flight (NVLink SHARP)
  int fabric_domain = 8;              ///< GPUs that reach each other over the fabric; 72 in a rack, 1 over PCIe alone
  BytesPerSecond fabric_bandwidth{};  ///< of all links of a GPU; 0: the PCIe bandwidth counts
  BytesPerSecond pcie_bandwidth{};
  BytesPerSecond nic_bandwidth{};  ///< network between nodes, per GPU
  int leaf_gpus = 0;               ///< GPUs whose NICs meet below one leaf of the network; 0: all of them
  double oversubscription = 1.0;   ///< bandwidth of a leaf's NICs over that of its links to the spine
  double host_speed = 1.0;         ///< of a core, over that of a DGX H100 (Xeon 8480C): divides the host times of steps
  double launch_speed = 1.0;       ///< of kernel launches, beyond that of the core: divides them too
  Seconds graph_gap{};             ///< between two kernels of a graph, beyond the launch that a kernel's constants hold
  bool peer_to_peer = true;        ///< GPUs without a fabric reach each other's memory; else all passes the host's
};

/// What one machine delivers relative to the GPUs that the constants were measured on; `calibrate fit` finds
/// it. Bandwidths and peaks of a GpuSpec are the vendor's times these.
struct MachineShares {
  double memory_bandwidth = 1.0;  ///< of DRAM
  double clock = 1.0;             ///< of the SMs while they are cool: all peaks, and L2 with them
  double power = 1.0;             ///< clock that the matrix units sustain under load, not the board's watts
  double fabric_bandwidth = 1.0;  ///< of the links between GPUs
  static std::span<const Parameter<MachineShares>> fields();
};

/// Vendor peaks of one GPU. How much of a peak is reached is a separate input (Efficiency).
struct GpuSpec {
  std::string name;
  Architecture architecture = Architecture::kGeneric;
  int sm_count = 0;         ///< streaming multiprocessors, or compute units
  Bytes memory_capacity{};  ///< as the driver shows it: 85.0e9 B for an "80 GB" H100
  BytesPerSecond memory_bandwidth{};
  Bytes l2_cache{};
  Bytes shared_memory_per_sm{};
  PerSecond boost_clock{};             ///< highest SM clock; 0: not known
  double exponentials_per_clock = 16;  ///< of an SM's special function units: what softmax waits for
  Watts board_power{};
  Watts idle_power{};
  UsdPerHour price{};      ///< on demand; the user overrides it
  bool announced = false;  ///< not sold yet: its figures are the vendor's plans
  NodeSpec node;
  MachineShares machine;                            ///< the figures here are multiplied by it
  std::array<FlopsPerSecond, kDtypeCount> dense{};  ///< dense peaks; 0 = the GPU has no such unit

  /// The format a product of these operands is computed in: a stored format without a unit of its
  /// own is unpacked to the activations' (int4 weights with bf16 activations run in bf16). Null
  /// when the GPU has no unit for the activations' format either.
  std::optional<Dtype> compute_dtype(Dtype weights, Dtype activations) const;
  FlopsPerSecond peak(Dtype compute) const { return dense[static_cast<std::size_t>(compute)]; }
};

/// `like: GPU` takes what the document does not say from that GPU of configs/hardware, and that GPU's constants, if it
/// has any, as carried over from it, unless the document has constants; never its price, nor the shares of one machine.
/// The document without `like`.
ConfigTree with_sibling(const ConfigTree& document);

/// Follows `like`.
GpuSpec parse_gpu_spec(ConfigReader in);
/// The same GPU on a machine whose figures are multiplied by `shares`.
GpuSpec on_machine(GpuSpec gpu, const MachineShares& shares);

}  // namespace roofcast
