#include "hw/exchange.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "hw/efficiency.h"
#include "hw/gpu_spec.h"
#include "hw/outer_link.h"

namespace roofcast {
namespace {

/// SMs that DeepEP's normal mode uses (deepseek-ai/DeepEP, deep_ep/buffer.py, Buffer.num_sms).
constexpr double kNormalSms = 20.0;
/// Most ranks per node that its kernels support (deepseek-ai/DeepEP, csrc/kernels/configs.cuh, NUM_MAX_NVL_PEERS).
constexpr int kMostPeers = 8;
/// SMs of the H100, which DeepEP was written for. On a GPU without a known SM count the same share is assumed.
constexpr double kTunedSms = 132.0;
/// Exponent of the overlap of SMs, links and network: the larger it is, the more the slowest one dominates.
constexpr double kSharpness = 4.0;

/// GPUs of the group per fabric domain, and number of domains.
struct Domains {
  double local = 1, count = 1;
};
Domains domains_of(const ExchangeShape& shape, const GpuSpec& gpu) {
  SIM_CHECK(shape.ranks >= 1, "an exchange needs a rank");
  const NodeSpec& node = gpu.node;
  const int domain = node.fabric_bandwidth.base() > 0.0 ? node.fabric_domain : std::max(node.gpus_per_node, 1);
  const int local = std::min(shape.ranks, std::max(domain, 1));
  return {static_cast<double>(local), std::ceil(static_cast<double>(shape.ranks) / local)};
}

/// Expected number of `places` (ranks or nodes that share the experts evenly) with a group of experts that a token may
/// choose from: places x (1 - (1 - 1/places)^kept) if a place has several groups, kept / groups of them if a group
/// spans several places.
double reachable(double places, const ExchangeShape& shape) {
  if (shape.groups_kept >= shape.groups) return places;
  if (places >= shape.groups) return places * shape.groups_kept / shape.groups;
  double none = 1.0;  // probability that a place has none of the kept groups, drawn without replacement
  const double elsewhere = shape.groups - shape.groups / places;
  for (double i = 0; i < shape.groups_kept; ++i) none *= std::max(0.0, elsewhere - i) / (shape.groups - i);
  return places * (1.0 - none);
}

/// Expected number of distinct places that k choices hit among `places` equally likely ones.
double distinct(double places, double k) {
  return places <= 1.0 ? 1.0 : places * (1.0 - std::pow(1.0 - 1.0 / places, k));
}

/// GPUs that are priced by a roofline may leave out their number of SMs.
bool has_known_sms(const GpuSpec& gpu) { return gpu.sm_count > 1; }

/// SMs that copy, for a GPU with a known number of SMs.
double sms_of(const ExchangeShape& shape, const GpuSpec& gpu) {
  if (shape.kernel == ExchangeKernel::kNormal)
    return std::min<double>(shape.sms > 0.0 ? shape.sms : kNormalSms, gpu.sm_count);
  // One thread block copies the tokens from one rank to one expert (DeepEP, csrc/kernels/internode_ll.cu).
  const double most = shape.sms > 0.0 ? std::min<double>(shape.sms, gpu.sm_count) : gpu.sm_count;
  return std::clamp<double>(shape.experts, 1.0, most);
}

double fabric_of(const GpuSpec& gpu, double local) {
  const NodeSpec& node = gpu.node;
  if (node.fabric_bandwidth.base() <= 0.0) return node.pcie_bandwidth.base();
  return node.fabric_bandwidth.base() * share_of_links(node.fabric, local, node.fabric_domain);
}

/// Seconds on the fabric links and on the network.
struct LinkTimes {
  double fabric = 0, network = 0;
};
LinkTimes link_times(const ExchangeShape& shape, const Copies& copies, const GpuSpec& gpu) {
  const double bytes = shape.tokens * shape.hidden * shape.value_bytes;
  const Domains at = domains_of(shape, gpu);
  LinkTimes times;
  if (at.local > 1.0) times.fabric = copies.over_fabric * bytes / fabric_of(gpu, at.local);
  if (at.count > 1.0) {
    const double border = outer_link_of(gpu, shape.ranks, 1.0).bandwidth;
    SIM_CHECK(border > 0.0, "an exchange over several nodes without a network");
    const double n = at.local * at.count;
    const double longer = all_to_all_parts(spine_of(gpu, n), n, at.local) / (n - at.local);
    times.network = copies.over_network * longer * bytes / border;
  }
  return times;
}

const ExchangeParameters& constants_of(ExchangeKernel kernel, const Machine& machine) {
  static const ExchangeParameters priors;
  const auto* fitted = efficiency_of(machine).find(exchange_kernel(kernel), Dtype::kBf16);
  return fitted ? fitted->value : priors;
}

double start_us(const ExchangeShape& shape, const ExchangeParameters& p) {
  return (shape.combine ? p.combine_us : p.dispatch_us) + 1e-3 * p.expert_ns * shape.experts;
}

/// The share of the links' bandwidth that is reached.
double fabric_share(const ExchangeShape& shape, const ExchangeParameters& p, const GpuSpec& gpu) {
  const double share = shape.combine ? p.combine_fraction : p.dispatch_fraction;
  return gpu.node.fabric_bandwidth.base() > 0.0 ? share : std::min(share, pcie_share(domains_of(shape, gpu).local));
}

/// Smooth maximum of the times of SMs, links and network.
double slowest(double sms, double links, double network) {
  return std::pow(std::pow(sms, kSharpness) + std::pow(links, kSharpness) + std::pow(network, kSharpness),
                  1.0 / kSharpness);
}

/// Seconds that the SMs take to copy; 0 if the GPU has no known number of SMs.
double copying_seconds(const ExchangeShape& shape, const Copies& copies, const ExchangeParameters& p,
                       const GpuSpec& gpu) {
  if (!has_known_sms(gpu)) return 0.0;
  const bool normal = shape.kernel == ExchangeKernel::kNormal;
  const bool forwards = normal && domains_of(shape, gpu).count > 1.0;
  const double rate = 1e9 * p.sm_gb_per_s * (forwards ? p.network_sm_share : 1.0);
  const double scanned = normal ? p.rank_scan_bytes * std::min(shape.ranks, kMostPeers) : 0.0;
  return shape.tokens * (copies.ranks * shape.hidden * shape.value_bytes + scanned) / (sms_of(shape, gpu) * rate);
}

}  // namespace

std::span<const Parameter<ExchangeParameters>> ExchangeParameters::fields() {
  using P = ExchangeParameters;
  using enum Transfer;
  static constexpr std::array<Parameter<P>, 10> kFields{{
      {"dispatch_us", &P::dispatch_us, 1.0, 80.0, kCycles, "launch and barriers of the dispatch"},
      {"combine_us", &P::combine_us, 1.0, 80.0, kCycles, "launch and barriers of the combine"},
      {"expert_ns", &P::expert_ns, 0.0, 100.0, kCycles, "counters, per expert"},
      {"rank_scan_bytes", &P::rank_scan_bytes, 0.0, 2000.0, kKept,
       "cost of checking whether a token goes to a rank, in bytes that an SM copies in that time"},
      {"sm_gb_per_s", &P::sm_gb_per_s, 2.0, 60.0, kL2Rate, "GB/s that one SM copies to a peer"},
      {"network_sm_share", &P::network_sm_share, 0.2, 1.0, kKept,
       "share of that rate when SMs also forward between nodes"},
      {"dispatch_fraction", &P::dispatch_fraction, 0.1, 1.0, kKept, "share of the fabric's bandwidth in the dispatch"},
      {"combine_fraction", &P::combine_fraction, 0.1, 1.0, kKept, "share of the fabric's bandwidth in the combine"},
      {"hop_us", &P::hop_us, 0.0, 100.0, kKept, "latency per doubling of the nodes"},
      {"network_fraction", &P::network_fraction, 0.1, 1.0, kKept, "share of a NIC's bandwidth"},
  }};
  return kFields;
}

namespace {

/// Only DeepEP's normal mode scans ranks and forwards between nodes.
class ExchangeKernelModel final : public KernelOf<ExchangeParameters> {
 public:
  using KernelOf::KernelOf;
  std::vector<FieldFacts> fields() const override {
    using P = ExchangeParameters;
    std::vector<FieldFacts> all = KernelOf::fields();
    const bool scans = this == &exchange_kernel(ExchangeKernel::kNormal);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto member = P::fields()[i].member;
      if (member == &P::rank_scan_bytes || member == &P::network_sm_share) all[i].fixed = !scans;
    }
    return all;
  }
};

}  // namespace

const KernelOf<ExchangeParameters>& exchange_kernel(ExchangeKernel kernel) {
  static const ExchangeKernelModel normal(
      {"deep_ep_normal", "DeepEP's normal mode, dispatch and combine", "equations-moe.md#exchange"});
  static const ExchangeKernelModel low_latency(
      {"deep_ep_low_latency", "DeepEP's low-latency mode, dispatch and combine", "equations-moe.md#exchange"});
  static const ExchangeKernelModel one_sided([] {
    KernelFacts facts{.name = "one_sided_exchange",
                      .help = "TensorRT-LLM's all-to-all over NVLink",
                      .form = "equations-moe.md#exchange"};
    facts.unexplained = {0.05, 0.27, 0.3};
    facts.lenders[0] = &low_latency;
    return facts;
  }());
  switch (kernel) {
    case ExchangeKernel::kNormal:
      return normal;
    case ExchangeKernel::kLowLatency:
      return low_latency;
    case ExchangeKernel::kOneSided:
      return one_sided;
  }
  fail_check("kernel", __FILE__, __LINE__, "no such exchange");
}

Copies copies_of(const ExchangeShape& shape, const GpuSpec& gpu) {
  const Domains at = domains_of(shape, gpu);
  const double away = (at.count - 1.0) / at.count, beside = (at.local - 1.0) / at.local;
  const double k = std::min(shape.top_k, shape.experts), ranks = static_cast<double>(shape.ranks);
  Copies copies{.ranks = distinct(reachable(ranks, shape), k), .nodes = distinct(reachable(at.count, shape), k)};
  switch (shape.kernel) {
    case ExchangeKernel::kNormal:  // over the network to one GPU of the node, which forwards it
      copies.over_fabric = copies.ranks * beside;
      copies.over_network = copies.nodes * away;
      break;
    case ExchangeKernel::kLowLatency:
      copies.ranks = k;
      copies.over_fabric = k / at.count * beside;
      copies.over_network = k * away;
      break;
    case ExchangeKernel::kOneSided:
      copies.over_fabric = copies.ranks / at.count * beside;
      copies.over_network = copies.ranks * away;
      break;
  }
  return copies;
}

/// Fixed start time, plus the smooth maximum of three times:
///   start   = dispatch_us or combine_us + expert_ns E + hop_us log2(nodes)
///   SMs     = T (copies H b + scan min(ranks, 8)) / (SMs rate);  links = copies over them / (fraction L);  NIC
///   likewise time    = start + (SMs^4 + links^4 + NIC^4)^(1/4)
/// Source: docs/equations-moe.md#exchange.
Seconds exchange_time(const ExchangeShape& shape, const ExchangeParameters& p, const GpuSpec& gpu) {
  if (shape.ranks <= 1 || shape.tokens <= 0.0) return Seconds{};
  const Domains at = domains_of(shape, gpu);
  const Copies copies = copies_of(shape, gpu);
  const LinkTimes times = link_times(shape, copies, gpu);
  const double copied = copying_seconds(shape, copies, p, gpu);
  const double moved = slowest(copied, times.fabric / fabric_share(shape, p, gpu),
                               times.network / outer_link_of(gpu, shape.ranks, p.network_fraction).share);
  return Seconds{1e-6 * (start_us(shape, p) + p.hop_us * std::log2(at.count)) + moved};
}

/// DeepEP's normal mode occupies its SMs from start to end. Its low-latency mode has a sending and a receiving kernel;
/// a hook starts the latter later, and in between the network works alone (deepseek-ai/DeepEP, README,
/// return_recv_hook). Only the start and the copies by SMs, including those over the links, then occupy SMs.
/// TensorRT-LLM's exchange takes all SMs.
ExchangeOnSms exchange_on_sms(const ExchangeShape& shape, const Machine& machine) {
  if (shape.ranks <= 1 || shape.tokens <= 0.0) return {};
  const GpuSpec& gpu = *machine.gpu;
  switch (shape.kernel) {
    case ExchangeKernel::kNormal:
      return {.share = has_known_sms(gpu) ? sms_of(shape, gpu) / gpu.sm_count : kNormalSms / kTunedSms};
    case ExchangeKernel::kLowLatency: {
      const Copies copies = copies_of(shape, gpu);
      const double fabric = link_times(shape, copies, gpu).fabric;
      if (machine.fidelity == Fidelity::kIdeal) return {.alone = Seconds{fabric}};
      const ExchangeParameters& p = constants_of(shape.kernel, machine);
      const double copied = copying_seconds(shape, copies, p, gpu);
      return {.alone = Seconds{1e-6 * start_us(shape, p) + slowest(copied, fabric / fabric_share(shape, p, gpu), 0.0)}};
    }
    case ExchangeKernel::kOneSided:
      return {.alone = exchange(shape, machine).time};
  }
  fail_check("kernel", __FILE__, __LINE__, "no such exchange");
}

/// TensorRT-LLM's own exchange needs NVLink between all ranks. Otherwise it uses DeepEP
/// (tensorrt_llm/_torch/modules/fused_moe/fused_moe_wide_ep.py, select_alltoall_method_type); here, the faster of its
/// two modes.
Cost exchange(const ExchangeShape& shape, const Machine& machine) {
  if (shape.ranks <= 1 || shape.tokens <= 0.0) return {.bound = Bound::kNetwork};
  if (shape.kernel == ExchangeKernel::kOneSided && domains_of(shape, *machine.gpu).count > 1.0) {
    ExchangeShape other = shape;
    other.kernel = ExchangeKernel::kNormal;
    const Cost normal = exchange(other, machine);
    other.kernel = ExchangeKernel::kLowLatency;
    const Cost low_latency = exchange(other, machine);
    return normal.time < low_latency.time ? normal : low_latency;
  }
  const Copies copies = copies_of(shape, *machine.gpu);
  const LinkTimes times = link_times(shape, copies, *machine.gpu);
  const Seconds time = machine.fidelity == Fidelity::kIdeal
                           ? Seconds{std::max(times.fabric, times.network)}
                           : exchange_time(shape, constants_of(shape.kernel, machine), *machine.gpu);
  const double sent = (copies.over_fabric + copies.over_network) * shape.tokens * shape.hidden * shape.value_bytes;
  return {.time = time, .flops = Flops{}, .bytes = Bytes{sent}, .bound = Bound::kNetwork};
}

}  // namespace roofcast
