#include "hw/collectives.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "hw/efficiency.h"
#include "hw/gpu_spec.h"
#include "hw/kernels/elementwise.h"
#include "hw/outer_link.h"

namespace roofcast {
namespace {

/// Bytes that a ring over n ranks sends through one GPU's link, as a multiple of the message S (all-reduce: the tensor;
/// all-gather: the gathered tensor; else: the input). All-reduce = reduce-scatter + all-gather, (n-1)/n each (Patarasuk
/// and Yuan 2009).
double link_share(Collective kind, double n) {
  switch (kind) {
    case Collective::kAllReduce:
      return 2.0 * (n - 1.0) / n;
    case Collective::kAllGather:
    case Collective::kReduceScatter:
    case Collective::kAllToAll:
      return (n - 1.0) / n;
    case Collective::kSend:
      return 1.0;
  }
  fail_check("kind", __FILE__, __LINE__, "no such collective");
}

/// Consecutive steps of a ring. The steps of a direct exchange grow only with log2 n.
double ring_steps(Collective kind, double n) {
  switch (kind) {
    case Collective::kAllReduce:
      return 2.0 * (n - 1.0);
    case Collective::kAllGather:
    case Collective::kReduceScatter:
      return n - 1.0;
    case Collective::kAllToAll:
      return std::log2(n);
    case Collective::kSend:
      return 1.0;
  }
  fail_check("kind", __FILE__, __LINE__, "no such collective");
}

double message(Collective kind, Bytes bytes, double n) {
  return kind == Collective::kAllGather ? bytes.base() * n : bytes.base();
}

bool has_fabric(const GpuSpec& gpu) { return gpu.node.fabric_bandwidth.base() > 0.0; }

/// Bandwidth in B/s from one GPU to `local` - 1 peers.
double link_of(const GpuSpec& gpu, double local) {
  const NodeSpec& node = gpu.node;
  const double link = has_fabric(gpu) ? node.fabric_bandwidth.base() : node.pcie_bandwidth.base();
  SIM_CHECK(link > 0.0, "a group of GPUs without any link");
  return has_fabric(gpu) ? link * share_of_links(node.fabric, local, node.fabric_domain) : link;
}

/// GPUs without peer-to-peer access send every byte through host memory. Two such GPUs get 0.63 of their PCIe
/// bandwidth; more of them share the host's memory bandwidth. Eight L40S without peer-to-peer access move 20 GB/s
/// together as four ranks, and 12 to 17 as eight (aiconfigurator tables of NCCL 2.27; a single machine).
constexpr double kPairThroughHost = 0.63;
constexpr BytesPerSecond kThroughHost{18e9};
double share_through_host(double local, const GpuSpec& gpu) {
  const double shared = kThroughHost / local / gpu.node.pcie_bandwidth;
  return local > 2.0 ? std::min(kPairThroughHost, shared) : kPairThroughHost;
}
double link_share_reached(double fraction, double local, const GpuSpec& gpu) {
  if (has_fabric(gpu)) return fraction;
  if (!gpu.node.peer_to_peer) return share_through_host(local, gpu);
  return std::min(fraction, pcie_share(local));
}

/// Ranks per domain, ranks per node of the domain, number of domains. Without NVLink a domain is a node with PCIe.
struct Layout {
  double local = 1, beside = 1, nodes = 1;
};
Layout layout_of(const Group& group, const GpuSpec& gpu) {
  SIM_CHECK(group.gpus >= 1 && group.gpus_per_node >= 1, "a group needs a GPU");
  const int local = std::min(group.gpus, has_fabric(gpu) ? group.gpus_per_node : std::max(gpu.node.gpus_per_node, 1));
  const int beside = std::min(local, std::max(gpu.node.gpus_per_node, 1));
  return {static_cast<double>(local), static_cast<double>(beside), std::ceil(static_cast<double>(group.gpus) / local)};
}

constexpr int kMeasuredNode = 8;
constexpr double kTray = 4.0;

/// Steps inside a domain. NCCL treats the nodes of one NVLink domain (NVL72) like nodes of a network: a ring or chain
/// within each, and a tree over them, whose hops are steps on the links (double binary trees, Sanders et al. 2009). A
/// ring through all 72 GPUs would take 142 consecutive steps. Within a switch, a node of more GPUs than the measured
/// eight is treated as trays of four, because all its GPUs are equally far apart. In a torus they are not.
double steps(Collective kind, const Layout& at, const GpuSpec& gpu) {
  if (kind == Collective::kAllToAll || kind == Collective::kSend) return ring_steps(kind, at.local);
  const bool beyond = has_fabric(gpu) && gpu.node.fabric != Fabric::kTorus && gpu.node.fabric_domain > kMeasuredNode;
  const double ring = beyond ? std::min(at.beside, kTray) : at.beside;
  const double over = std::log2(std::max(1.0, at.local / ring));
  return ring_steps(kind, ring) + over * (kind == Collective::kAllReduce ? 2.0 : 1.0);
}

/// Seconds that the network between domains takes: `latency` is added, `transfer` overlaps with the links' own
/// transfer. A ring crosses the border of a domain on all of its NICs at once, so a ring collective has all NICs of a
/// domain. An all-to-all sends the part that is not local, (n - local)/n of the message, through the GPU's own NIC.
/// Over the spine, a ring passes from leaf to leaf once, on the NICs of one domain. An all-to-all sends (n - below)/n
/// through the GPU's share of the uplinks.
struct Network {
  double latency = 0, transfer = 0;
};
Network network_of(Collective kind, double s, const Layout& at, const GpuSpec& gpu, double nic, double hop_seconds) {
  if (at.nodes <= 1.0) return {};
  SIM_CHECK(nic > 0.0, "a group over several nodes without a network");
  const double n = at.local * at.nodes;
  const Spine spine = spine_of(gpu, n);
  const double hops = std::log2(at.nodes) * (kind == Collective::kAllReduce ? 2.0 : 1.0);
  double bytes = link_share(kind, n) * s / at.local * spine_slowdown(spine, at.local);
  if (kind == Collective::kAllToAll) bytes = s * all_to_all_parts(spine, n, at.local) / n;
  if (kind == Collective::kSend) bytes = s;
  return {hops * hop_seconds, bytes / nic};
}

/// The ideal time: bytes over the slowest link on their path.
Seconds ideal_time(Collective kind, Bytes bytes, const Group& group, const GpuSpec& gpu) {
  const Layout at = layout_of(group, gpu);
  const double n = static_cast<double>(group.gpus), s = message(kind, bytes, n);
  const Network network = network_of(kind, s, at, gpu, outer_link_of(gpu, group.gpus, 1.0).bandwidth, 0.0);
  const double local = at.local > 1.0 ? link_share(kind, n) * s / link_of(gpu, at.local) : 0.0;
  return Seconds{std::max(local, network.transfer)};
}

Cost network_cost(Seconds time, Collective kind, Bytes bytes, const Group& group) {
  const double n = static_cast<double>(group.gpus);
  return {.time = time,
          .flops = Flops{},
          .bytes = Bytes{link_share(kind, n) * message(kind, bytes, n)},
          .bound = Bound::kNetwork};
}

NcclParameters nccl_parameters(Collective kind, const Machine& machine) {
  // Point-to-point sends use the protocols of an all-gather between two GPUs.
  const Collective like = kind == Collective::kSend ? Collective::kAllGather : kind;
  for (const Collective measured : {kind, like}) {
    const auto* fitted = efficiency_of(machine).find(nccl_kernel(measured), Dtype::kBf16);
    if (fitted) return fitted->value;
  }
  return nccl_prior(like, *machine.gpu);
}

const CustomAllReduceParameters& custom_parameters(const Efficiency& efficiency) {
  static const CustomAllReduceParameters priors;
  const auto* fitted = efficiency.find(custom_all_reduce_kernel(), Dtype::kBf16);
  return fitted ? fitted->value : priors;
}

/// The constants of the kernel that also normalizes the sum. An engine that takes it from another library has separate
/// constants for its own kernel.
const CustomAllReduceParameters& fused_parameters(const Efficiency& efficiency) {
  const auto* fitted = efficiency.find(fused_all_reduce_kernel(), Dtype::kBf16);
  return fitted ? fitted->value : custom_parameters(efficiency);
}

constexpr int kCustomRanks = 8;

}  // namespace

std::string_view name_of(Collective collective) {
  switch (collective) {
    case Collective::kAllReduce:
      return "all_reduce";
    case Collective::kAllGather:
      return "all_gather";
    case Collective::kReduceScatter:
      return "reduce_scatter";
    case Collective::kAllToAll:
      return "all_to_all";
    case Collective::kSend:
      return "send";
  }
  fail_check("collective", __FILE__, __LINE__, "no such collective");
}

const KernelOf<CustomAllReduceParameters>& custom_all_reduce_kernel() {
  static const KernelOf<CustomAllReduceParameters> kernel({"custom_all_reduce",
                                                           "the engines' own all-reduce, one-shot and two-shot",
                                                           "equations-collectives.md",
                                                           {0.05, 0.33, 0.0}});
  return kernel;
}
const KernelOf<CustomAllReduceParameters>& fused_all_reduce_kernel() {
  static const KernelOf<CustomAllReduceParameters> kernel({"fused_all_reduce",
                                                           "the engines' own all-reduce fused with the norm",
                                                           "equations-collectives.md",
                                                           {0.05, 0.33, 0.0}});
  return kernel;
}
const KernelOf<NcclParameters>& nccl_kernel(Collective kind) {
  static const std::array<KernelOf<NcclParameters>, 5> kernels{{
      KernelOf<NcclParameters>({"nccl_all_reduce", "NCCL's all-reduce", "equations-collectives.md"}),
      KernelOf<NcclParameters>({"nccl_all_gather", "NCCL's all-gather", "equations-collectives.md"}),
      KernelOf<NcclParameters>({"nccl_reduce_scatter", "NCCL's reduce-scatter", "equations-collectives.md"}),
      KernelOf<NcclParameters>({"nccl_all_to_all", "NCCL's all-to-all", "equations-collectives.md"}),
      KernelOf<NcclParameters>({"nccl_send", "NCCL from one GPU to another", "equations-collectives.md"}),
  }};
  return kernels[static_cast<std::size_t>(kind)];
}

std::span<const Parameter<CustomAllReduceParameters>> CustomAllReduceParameters::fields() {
  using P = CustomAllReduceParameters;
  using enum Transfer;
  static constexpr std::array<Parameter<P>, 11> fields{{
      {"launch_us", &P::launch_us, 0.5, 30.0, kCycles, "launch and first barrier"},
      {"peer_us", &P::peer_us, 0.0, 5.0, kCycles, "barrier, per further rank"},
      {"one_shot_fraction", &P::one_shot_fraction, 0.02, 1.0, kKept,
       "share of the link reached when reading all peers"},
      {"two_shot_us", &P::two_shot_us, 0.0, 100.0, kCycles, "second barrier of the two-shot kernel"},
      {"two_shot_fraction", &P::two_shot_fraction, 0.02, 1.0, kKept,
       "share of the link reached by the two-shot kernel"},
      {"size_limit_mb", &P::size_limit_mb, 0.0, 1024.0, kKept,
       "above this size the engine calls NCCL, MB; 0: no limit, the faster of both"},
      {"switch_us", &P::switch_us, 0.0, 100.0, kCycles, "launch of the kernel that reduces in the NVLink switch"},
      {"switch_fraction", &P::switch_fraction, 0.0, 1.0, kKept, "share of the link that it reaches; 0: no such kernel"},
      {"eager_us", &P::eager_us, 0.0, 100.0, kHost, "minimum time of a launch from the host, two ranks"},
      {"eager_us_per_doubling", &P::eager_us_per_doubling, 0.0, 20.0, kHost,
       "additional minimum time per doubling of ranks"},
      {"copy_fraction", &P::copy_fraction, 0.1, 1.0, kKept, "share of the memory bandwidth in the out-of-place copy"},
  }};
  return fields;
}

std::span<const Parameter<NcclParameters>> NcclParameters::fields() {
  using P = NcclParameters;
  using enum Transfer;
  static constexpr std::array<Parameter<P>, 14> fields{{
      {"launch_us", &P::launch_us, 0.5, 40.0, kCycles, "launch, protocol LL"},
      {"step_us", &P::step_us, 0.0, 10.0, kCycles, "time per step, protocol LL"},
      {"ll_fraction", &P::ll_fraction, 0.005, 1.0, kKept, "share of the link, protocol LL"},
      {"ll128_us", &P::ll128_us, 0.0, 40.0, kCycles, "additional start time, LL128"},
      {"ll128_step_us", &P::ll128_step_us, 0.0, 10.0, kCycles, "additional time per step, LL128"},
      {"ll128_fraction", &P::ll128_fraction, 0.02, 1.0, kKept, "share of the link, LL128"},
      {"simple_us", &P::simple_us, 0.0, 60.0, kCycles, "additional start time, Simple"},
      {"simple_step_us", &P::simple_step_us, 0.0, 20.0, kCycles, "additional time per step, Simple"},
      {"simple_fraction", &P::simple_fraction, 0.05, 1.0, kKept, "share of the link, Simple"},
      {"own_copy", &P::own_copy, 0.0, 3.0, kKept,
       "copies of the rank's own shard that add to the link's time, in shards"},
      {"switch_us", &P::switch_us, 0.0, 200.0, kCycles, "additional start time of a reduction in the NVLink switch"},
      {"switch_fraction", &P::switch_fraction, 0.0, 1.0, kKept,
       "share of the link in that reduction; 0: the switch does not reduce"},
      {"network_us", &P::network_us, 0.0, 100.0, kKept, "latency per doubling of nodes, one way"},
      {"network_fraction", &P::network_fraction, 0.1, 1.0, kKept, "share of the NICs' bandwidth"},
  }};
  return fields;
}

/// Bandwidths of a new generation scale with its link. Latencies do not: they fell from Ampere to Hopper and rose again
/// on Blackwell, so an unmeasured GPU takes those of the most similar generation. Switches reduce since Hopper's
/// NVSwitch; on Blackwell the fit finds that NCCL does not use it. Source: docs/equations-collectives.md.
NcclParameters nccl_prior(Collective kind, const GpuSpec& gpu) {
  NcclParameters p;
  const bool hopper = gpu.architecture == Architecture::kHopper;
  p.launch_us = hopper ? 5.3 : 8.5;
  p.step_us = gpu.architecture == Architecture::kBlackwell ? 1.3 : 0.85;
  if (kind == Collective::kAllToAll) {
    p.ll_fraction = 0.03;
    p.simple_fraction = 0.7;
  }
  if (kind == Collective::kAllReduce && hopper) p.switch_fraction = 0.6;
  if (kind == Collective::kAllReduce && gpu.architecture == Architecture::kAmpere) {
    p.launch_us = 10.2;
    p.ll_fraction = 0.27;
    p.ll128_us = 5.9;
    p.ll128_step_us = 0.0;
    p.ll128_fraction = 0.43;
    p.simple_us = 26.0;
    p.simple_step_us = 0.1;
    p.simple_fraction = 0.73;
  }
  return p;
}

/// NCCL is modelled as choosing the fastest of its protocols:
///   LL      a + s w                + W / B_ll        W = (share + own copy / n) S,  s = steps
///   LL128   a + m0 + s (w + m1)    + W / B_ll128
///   Simple  a + b0 + s (w + b1)    + W / B_simple
///   NVLS    a + v0                 + S / B_switch    all-reduce over a whole switch of eight or more
/// B are shares of the link. Between nodes: see network_of. Source: docs/equations-collectives.md; protocols as in
/// NCCL's tuning model (Hu et al., "Demystifying NCCL", arXiv 2507.04786). The real protocol switches are jumps, up to
/// 35 % off this minimum near 2 MB.
Seconds nccl_time(Collective kind, Bytes bytes, const Group& group, const NcclParameters& p, const GpuSpec& gpu) {
  if (group.gpus <= 1) return Seconds{};
  const Layout at = layout_of(group, gpu);
  const double n = static_cast<double>(group.gpus), s = message(kind, bytes, n);
  const OuterLink across = outer_link_of(gpu, group.gpus, p.network_fraction);
  const Network network =
      network_of(kind, s, at, gpu, across.bandwidth * across.share, 1e-6 * (across.network ? p.network_us : p.step_us));
  const double link = at.local > 1.0 ? link_of(gpu, at.local) : 0.0;
  const double hops = at.local > 1.0 ? steps(kind, at, gpu) : 0.0;
  const double moved = (link_share(kind, n) + (kind == Collective::kSend ? 0.0 : p.own_copy / n)) * s;
  const auto protocol = [&](double start_us, double step_us, double fraction) {
    const double transfer = link > 0.0 ? moved / (link * link_share_reached(fraction, at.local, gpu)) : 0.0;
    return 1e-6 * (p.launch_us + start_us + hops * (p.step_us + step_us)) + std::max(transfer, network.transfer);
  };
  double best = std::min({protocol(0.0, 0.0, p.ll_fraction), protocol(p.ll128_us, p.ll128_step_us, p.ll128_fraction),
                          protocol(p.simple_us, p.simple_step_us, p.simple_fraction)});
  const bool in_switch = kind == Collective::kAllReduce && p.switch_fraction > 0.0 && group.summable &&
                         at.nodes <= 1.0 && group.gpus >= 8 && gpu.node.switch_reduces;
  if (in_switch) best = std::min(best, 1e-6 * (p.launch_us + p.switch_us) + s / (link * p.switch_fraction));
  return Seconds{best + network.latency};
}

/// vLLM uses the switch from eight ranks and 256 KiB on, where its own kernel's table ends
/// (vllm/distributed/device_communicators/all_reduce_utils.py).
constexpr int kSwitchRanks = 8;
constexpr double kSwitchBytes = 262144.0;

/// Each block of the kernel waits for its peers. From this size on the kernel has its maximum number of blocks.
constexpr double kFullGridBytes = 8192.0;

/// One-shot: every rank reads and adds all peers' messages. Two-shot: reduce-scatter, then all-gather.
///   one-shot  a + c' (n-1) + S (n-1) / B1         two-shot  a + c' (n-1) + a2 + 2 S (n-1)/n / B2
///   c' = c min(1, S / 8 KiB)
///   in the switch  a3 + S / B3
/// Up to the size limit the engine takes the fastest of these, above it NCCL. Without a CUDA graph, the kernel takes at
/// least the host's launch time, and copies the message into and out of the registered buffer. Source:
/// docs/equations-collectives.md.
Seconds custom_all_reduce_time(Bytes bytes, const Group& group, const CustomAllReduceParameters& p,
                               const NcclParameters& fallback, const GpuSpec& gpu) {
  if (group.gpus <= 1) return Seconds{};
  const double n = static_cast<double>(group.gpus), s = bytes.base(), link = link_of(gpu, n);
  const double start = 1e-6 * (p.launch_us + p.peer_us * (n - 1.0) * std::min(1.0, s / kFullGridBytes));
  const double one = start + s * (n - 1.0) / (link * p.one_shot_fraction);
  const double two = start + 1e-6 * p.two_shot_us + 2.0 * s * (n - 1.0) / n / (link * p.two_shot_fraction);
  double library = nccl_time(Collective::kAllReduce, bytes, group, fallback, gpu).base();
  if (p.switch_fraction > 0.0 && gpu.node.switch_reduces && group.gpus >= kSwitchRanks && s >= kSwitchBytes) {
    library = std::min(library, 1e-6 * p.switch_us + s / (link * p.switch_fraction));
  }
  double time = std::min({one, two, library});
  if (p.size_limit_mb > 0.0) time = s < p.size_limit_mb * 1e6 ? std::min(one, two) : library;
  if (!group.captured) {
    const double copied = time + 2.0 * s / (gpu.memory_bandwidth.base() * p.copy_fraction);
    time = std::max(1e-6 * (p.eager_us + p.eager_us_per_doubling * std::log2(n)), copied);
  }
  return Seconds{time};
}

Cost nccl(Collective kind, Bytes bytes, const Group& group, const Machine& machine) {
  if (group.gpus <= 1 || bytes.base() <= 0.0) return {.bound = Bound::kNetwork};
  const Seconds time = machine.fidelity == Fidelity::kIdeal
                           ? ideal_time(kind, bytes, group, *machine.gpu)
                           : nccl_time(kind, bytes, group, nccl_parameters(kind, machine), *machine.gpu);
  return network_cost(time, kind, bytes, group);
}

bool fuses_all_reduce(const Group& group, const GpuSpec& gpu) {
  return has_fabric(gpu) && group.gpus > 1 && group.gpus <= std::min(group.gpus_per_node, kCustomRanks);
}

/// The all-reduce, plus reading and writing the residual. The sum is normalized in registers and written in place,
/// which saves a launch and two of the four passes of a separate norm.
///   time = all-reduce + 2 S / B      B: rate of memory or of L2, as for any elementwise kernel
Cost all_reduce_norm(Bytes bytes, const Group& group, const Machine& machine) {
  Cost cost = network_cost(custom_all_reduce_time(bytes, group, fused_parameters(efficiency_of(machine)),
                                                  nccl_parameters(Collective::kAllReduce, machine), *machine.gpu),
                           Collective::kAllReduce, bytes, group);
  cost.time += elementwise(bytes * 2.0, Flops(0), 0.0, machine).time;
  return cost;
}

/// The stages follow each other through groups of D GPUs (domains, nodes, leaves). If a stage fills a group, every
/// stage boundary crosses a group boundary, else ceil(n / D) - 1 of them do. Domains within one node (bridged cards)
/// are connected by PCIe.
Cost pipeline_send(Bytes bytes, int gpus, int stages, const Machine& machine) {
  if (stages <= 1 || bytes.base() <= 0.0) return {.bound = Bound::kNetwork};
  const GpuSpec& gpu = *machine.gpu;
  const int node = std::max(gpu.node.gpus_per_node, 1), all = gpus * stages;
  const int domain = has_fabric(gpu) ? std::max(gpu.node.fabric_domain, 1) : node, island = std::max(domain, node);
  const double borders = stages - 1;
  const auto crossing = [&](int place) {
    return gpus >= place ? borders : std::min(borders, std::ceil(static_cast<double>(all) / place) - 1.0);
  };
  const auto seconds = [&](int among, const GpuSpec& on) {
    Machine m = machine;
    m.gpu = &on;
    return nccl(Collective::kSend, bytes, Group{among, std::min(among, domain)}, m).time.base();
  };
  const double out = crossing(domain), away = crossing(island);
  const double up = gpu.node.leaf_gpus > 0 ? crossing(gpu.node.leaf_gpus) : 0.0;
  double time = 0;
  if (borders > out) time += (borders - out) * seconds(2, gpu);
  if (out > away) time += (out - away) * seconds(std::min(2 * domain, node), gpu);
  if (away > up) time += (away - up) * seconds(2 * island, gpu);
  if (up > 0) {
    GpuSpec slower = gpu;
    slower.node.nic_bandwidth *= 1.0 / spine_slowdown(spine_of(gpu, all), gpus);
    time += up * seconds(2 * island, slower);
  }
  return network_cost(Seconds{time / borders}, Collective::kSend, bytes, Group{2, 2});
}

Cost collective(Collective kind, Bytes bytes, const Group& group, const Machine& machine) {
  const bool custom = kind == Collective::kAllReduce && machine.fidelity == Fidelity::kCalibrated && group.gpus > 1 &&
                      bytes.base() > 0.0 && fuses_all_reduce(group, *machine.gpu);
  if (!custom) return nccl(kind, bytes, group, machine);
  return network_cost(custom_all_reduce_time(bytes, group, custom_parameters(efficiency_of(machine)),
                                             nccl_parameters(kind, machine), *machine.gpu),
                      kind, bytes, group);
}

}  // namespace roofcast
