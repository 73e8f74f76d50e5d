#pragma once
// Tokens on their way to the ranks of their experts and back: all-to-alls of a mixture of experts.

#include <span>
#include <string_view>

#include "hw/collectives.h"

namespace roofcast {

/// Which all-to-all.
enum class ExchangeKernel {
  kNormal,      ///< DeepEP's normal mode: a token once to each rank, over the network once to each node
  kLowLatency,  ///< DeepEP's low-latency mode: a token once for each of its experts, straight to their ranks
  kOneSided,    ///< TensorRT-LLM's over NVLink: a token once to each rank, straight
};

/// One direction of one exchange, as one rank sees it.
struct ExchangeShape {
  ExchangeKernel kernel = ExchangeKernel::kNormal;
  bool combine = false;  ///< back from the experts; else to them
  double tokens = 0;     ///< tokens that the rank sends
  double hidden = 0;
  double value_bytes = 2.0;  ///< bytes per element, including its share of the scales
  double top_k = 1, experts = 1;
  double groups = 1, groups_kept = 1;  ///< groups of experts: a token's choices fall into `groups_kept` of `groups`
  int ranks = 1;
  double sms = 0;  ///< SMs that the engine lends it; 0: as many as DeepEP takes by itself
};

/// How far the copies of a token go, on average.
struct Copies {
  double ranks = 0;         ///< ranks that get one, its own included
  double nodes = 0;         ///< nodes that get one, its own included
  double over_fabric = 0;   ///< copies sent to GPUs of the same fabric domain
  double over_network = 0;  ///< copies sent to another domain
};
/// Every rank is as likely a choice, within the groups of experts that a token may choose from.
Copies copies_of(const ExchangeShape& shape, const GpuSpec& gpu);

struct ExchangeParameters {
  double dispatch_us = 15.0;
  double combine_us = 15.0;
  double expert_ns = 10.0;
  double rank_scan_bytes = 30.0;
  double sm_gb_per_s = 19.0;
  double network_sm_share = 0.7;
  double dispatch_fraction = 0.7;
  double combine_fraction = 0.7;
  double hop_us = 8.0;
  double network_fraction = 0.9;
  static std::span<const Parameter<ExchangeParameters>> fields();
};

class ExchangeKernelModel final : public KernelOf<ExchangeParameters> {
 public:
  using KernelOf::KernelOf;
  std::vector<FieldFacts> fields() const override;
};
const ExchangeKernelModel& exchange_kernel(ExchangeKernel kernel);

/// One rank costs nothing. Never less than the bytes take on the wire.
Cost exchange(const ExchangeShape& shape, const Machine& machine);
/// The SMs that an exchange takes from the kernels beside it: a share of them as long as it lasts, or all of them for a
/// while.
struct ExchangeOnSms {
  double share = 0;
  Seconds alone{};
};
ExchangeOnSms exchange_on_sms(const ExchangeShape& shape, const Machine& machine);
/// The time under given constants; fits call it.
Seconds exchange_time(const ExchangeShape& shape, const ExchangeParameters& p, const GpuSpec& gpu);

}  // namespace roofcast
