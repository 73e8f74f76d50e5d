#pragma once
// How GPUs reach each other where no link of the fabric leads: over PCIe, or a network.

#include "hw/gpu_spec.h"

namespace roofcast {

/// The share of a PCIe link's bandwidth that each GPU of a group reaches. A ring passes switches and the bridge of a
/// socket, which several GPUs and both directions share. Eight GPUs without NVLink reach 28 of 64 GB/s, four of them
/// 35 (github.com/NVIDIA/nccl/issues/1639).
inline double pcie_share(double gpus) { return gpus > 4.0 ? 0.45 : 0.55; }

struct Crossing {
  double bandwidth = 0;  ///< bytes per second of one GPU, on the datasheet
  double share = 1.0;    ///< the share of it that is reached
  bool network = true;   ///< it leaves the node
};

/// The way between the domains of a group of `gpus`. Bridged cards (H100 NVL: pairs) form several domains in one node.
/// These reach each other over PCIe, and other nodes over the NIC. `network_share` is the share that a NIC reaches.
inline Crossing crossing_of(const GpuSpec& gpu, int gpus, double network_share) {
  const NodeSpec& node = gpu.node;
  const bool bridged = node.fabric_bandwidth.base() > 0.0 && node.fabric_domain < node.gpus_per_node;
  const Crossing network{.bandwidth = node.nic_bandwidth.base(), .share = network_share, .network = true};
  const Crossing pcie{.bandwidth = node.pcie_bandwidth.base(), .share = pcie_share(gpus), .network = false};
  if (!bridged || gpus > node.gpus_per_node) return network;
  return pcie;
}

}  // namespace roofcast
