#pragma once
// How GPUs reach each other where no link of the fabric leads: over PCIe, or a network of leaves and a spine.

#include <algorithm>
#include <cmath>

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

/// How a group lies below the leaves of its network.
struct Spine {
  double below = 0;       ///< GPUs of the group below one leaf: all of them where nothing passes the spine
  double narrower = 1.0;  ///< bandwidth of a leaf's NICs over that of its links up
};

/// A group of `gpus` takes as few leaves as hold it, evenly. Each of its GPUs has its share of a leaf's links up, as if
/// others filled the rest of the leaf.
inline Spine spine_of(const GpuSpec& gpu, double gpus) {
  const NodeSpec& node = gpu.node;
  if (node.leaf_gpus <= 0 || gpus <= node.leaf_gpus) return {.below = gpus};
  return {.below = gpus / std::ceil(gpus / node.leaf_gpus), .narrower = node.oversubscription};
}

/// How much longer the NICs of `gpus` GPUs that follow each other take where all send up to the spine at once. A leaf
/// has the NICs of no more of them than lie below it.
inline double spine_slowdown(const Spine& spine, double gpus) {
  return std::max(1.0, spine.narrower * std::min(gpus, spine.below) / spine.below);
}

/// What the GPUs of an all-to-all of n send through their NICs, at the NIC's rate, in parts of n: those that leave the
/// `local` GPUs, or what passes the narrower spine.
inline double all_to_all_parts(const Spine& spine, double n, double local) {
  return std::max(n - local, spine.narrower * (n - spine.below));
}

}  // namespace roofcast
