#pragma once
// Dispatch and combine of expert parallelism: the all-to-alls that move tokens to their experts' ranks and back.

#include <span>

#include "hw/collectives.h"

namespace roofcast {

/// Which all-to-all.
enum class ExchangeKernel {
  kNormal,      ///< DeepEP's normal mode: a token is sent once per rank, and once per node over the network
  kLowLatency,  ///< DeepEP's low-latency mode: a token is sent once per expert, directly to its rank
  kOneSided,    ///< TensorRT-LLM's, over NVLink: a token is sent once per rank, directly
};

/// One direction of one exchange, seen from one rank.
struct ExchangeShape {
  ExchangeKernel kernel = ExchangeKernel::kNormal;
  bool combine = false;  ///< from the experts back; else dispatch to them
  double tokens = 0;     ///< tokens that the rank sends
  double hidden = 0;
  double value_bytes = 2.0;  ///< bytes per element, including its share of the scales
  double top_k = 1, experts = 1;
  double groups = 1, groups_kept = 1;  ///< group-limited routing: a token chooses from `groups_kept` of `groups`
  int ranks = 1;
  double sms = 0;  ///< SMs that the engine gives to it; 0: DeepEP's default
};

/// Average number and destination of the copies of a token.
struct Copies {
  double ranks = 0;         ///< ranks that receive a copy, including its own
  double nodes = 0;         ///< nodes that receive a copy, including its own
  double over_fabric = 0;   ///< copies sent to GPUs of the same fabric domain
  double over_network = 0;  ///< copies sent to another domain
};
/// All ranks are equally likely, within the groups of experts that a token may choose from.
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

const KernelOf<ExchangeParameters>& exchange_kernel(ExchangeKernel kernel);

/// One rank costs nothing. The time is never below bytes / bandwidth of the links.
Cost exchange(const ExchangeShape& shape, const Machine& machine);
/// The SMs that an exchange takes from concurrent kernels: a share of the SMs for its whole duration, or all of them
/// for some time.
struct ExchangeOnSms {
  double share = 0;
  Seconds alone{};
};
ExchangeOnSms exchange_on_sms(const ExchangeShape& shape, const Machine& machine);
/// The time for given constants, for fits.
Seconds exchange_time(const ExchangeShape& shape, const ExchangeParameters& p, const GpuSpec& gpu);

}  // namespace roofcast
