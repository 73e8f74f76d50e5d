#pragma once

namespace roofcast {

/// How tokens choose experts. kBalanced: evenly. kUniform: each token for itself, all experts alike. kPowerLaw: as
/// NVIDIA aiconfigurator draws its benchmarks. kPopularity: each token for itself, some experts more popular than
/// others.
struct Routing {
  enum class Kind { kBalanced, kUniform, kPowerLaw, kPopularity };
  Kind kind = Kind::kPopularity;
  double exponent = 1.01;      ///< exponent of the power law
  double skew = 1.0;           ///< standard deviation of the logarithm of an expert's popularity
  bool rest_to_first = false;  ///< the power law as the benchmark of vLLM 0.14 drew it
  bool grouped = false;        ///< balanced or power law, then limited to groups (hw/kernels/group_limit.h)
  double redundant = 0;        ///< copies of experts beside the first of each; copies and ranks are chosen as EPLB does
  bool levelled = false;       ///< the power law, with equal load on all ranks, as EPLB places experts
};

}  // namespace roofcast
