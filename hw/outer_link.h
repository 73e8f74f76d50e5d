#pragma once
// Links between GPUs outside a fabric domain: PCIe, or a leaf-spine network.

#include <algorithm>
#include <cmath>

#include "hw/gpu_spec.h"

namespace roofcast {

/// The share of its PCIe bandwidth that each GPU of a group reaches. A ring crosses switches and a socket's host
/// bridge, which several GPUs and both directions share. Without NVLink, eight GPUs reach 28 of 64 GB/s, four reach 35
/// (github.com/NVIDIA/nccl/issues/1639).
inline double pcie_share(double gpus) { return gpus > 4.0 ? 0.45 : 0.55; }

struct OuterLink {
  double bandwidth = 0;  ///< per GPU, from the datasheet, in B/s
  double share = 1.0;    ///< the share of it that is reached
  bool network = true;   ///< it leaves the node
};

/// The link between the fabric domains of a group of `gpus`. Bridged cards (H100 NVL: pairs) form several domains in
/// one node. These communicate over PCIe within the node, and over the NIC between nodes. `network_share` is the share
/// that a NIC reaches.
inline OuterLink outer_link_of(const GpuSpec& gpu, int gpus, double network_share) {
  const NodeSpec& node = gpu.node;
  const bool bridged = node.fabric_bandwidth.base() > 0.0 && node.fabric_domain < node.gpus_per_node;
  const OuterLink network{.bandwidth = node.nic_bandwidth.base(), .share = network_share, .network = true};
  const OuterLink pcie{.bandwidth = node.pcie_bandwidth.base(), .share = pcie_share(gpus), .network = false};
  if (!bridged || gpus > node.gpus_per_node) return network;
  return pcie;
}

/// The placement of a group below the leaf switches of its network.
struct Spine {
  double below = 0;       ///< GPUs of the group per leaf; all of them if no traffic crosses the spine
  double narrower = 1.0;  ///< oversubscription: NIC bandwidth of a leaf over that of its uplinks
};

/// A group of `gpus` uses as few leaves as possible, evenly filled. Each GPU gets its share of the uplinks of a full
/// leaf, as if other traffic came from the rest of the leaf.
inline Spine spine_of(const GpuSpec& gpu, double gpus) {
  const NodeSpec& node = gpu.node;
  if (node.leaf_gpus <= 0 || gpus <= node.leaf_gpus) return {.below = gpus};
  return {.below = gpus / std::ceil(gpus / node.leaf_gpus), .narrower = node.oversubscription};
}

/// The slowdown of `gpus` neighbouring GPUs that all send through the spine at the same time. A leaf has the NICs of at
/// most `spine.below` of them.
inline double spine_slowdown(const Spine& spine, double gpus) {
  return std::max(1.0, spine.narrower * std::min(gpus, spine.below) / spine.below);
}

/// The NIC time of an all-to-all of n GPUs, in units of one GPU's part at full NIC rate: the data that leave the
/// `local` GPUs, or the data that cross the slower spine.
inline double all_to_all_parts(const Spine& spine, double n, double local) {
  return std::max(n - local, spine.narrower * (n - spine.below));
}

}  // namespace roofcast
