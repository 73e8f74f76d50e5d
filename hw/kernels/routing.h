#pragma once

namespace roofcast {

/// How tokens choose experts.
///   kBalanced    evenly
///   kUniform     each token independently, all experts equally likely
///   kPowerLaw    as NVIDIA aiconfigurator draws its benchmarks
///   kPopularity  each token independently, some experts more popular than others
struct Routing {
  enum class Kind { kBalanced, kUniform, kPowerLaw, kPopularity };
  Kind kind = Kind::kPopularity;
  double exponent = 1.01;      ///< exponent of the power law
  double skew = 1.0;           ///< standard deviation of the logarithm of an expert's popularity
  bool rest_to_first = false;  ///< the power law as drawn by the benchmark of vLLM 0.14
  bool grouped = false;        ///< balanced or power law, then group-limited (hw/kernels/group_limit.h)
  double redundant = 0;        ///< redundant experts, beyond the first copy of each; copied and placed as by EPLB
  bool levelled = false;       ///< the power law with equal load on all ranks, as EPLB places experts
};

}  // namespace roofcast
