#pragma once
#include <string>

#include "base/error.h"

namespace roofcast {

struct ModelSpec;
struct Precision;

/// How one replica is distributed over tp x pp x attention_dp GPUs.
struct Sharding {
  int tp = 1;                 ///< tensor parallelism of attention (of everything if attention_dp is 1)
  int pp = 1;                 ///< pipeline stages
  int dcp = 1;                ///< decode context parallelism: this many of the tp GPUs split a cache by tokens
  int attention_dp = 1;       ///< data-parallel attention ranks, which share one set of experts
  int ep = 1;                 ///< expert parallelism; the experts' tensor parallelism is tp * attention_dp / ep
  int redundant_experts = 0;  ///< further copies of popular experts, over all ep ranks together (EPLB)

  int gpus() const { return tp * pp * attention_dp; }
  int expert_copies() const { return ep > 1 ? redundant_experts : 0; }
  int expert_tp() const { return tp * attention_dp / ep; }
};

/// The source location of each number of a Sharding.
struct ShardingLocations {
  SourceLocation tp, pp, dcp, attention_dp, ep;
  ShardingLocations(const SourceLocation& all = {})
      : tp(all), pp(all), dcp(all), attention_dp(all), ep(all) {}  ///< all at one location
};

/// Thrown if a model cannot be split over that many GPUs; a plan distinguishes it from a mistake in its file.
class CannotSplit : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

/// Throws CannotSplit if heads do not divide by tp, KV copies by dcp, experts and redundant experts by ep, or layers by
/// pp, at the source location of that number.
void check_sharding(const ModelSpec& model, const Sharding& sharding, const ShardingLocations& locations);

/// The same check for `heads` heads of model `model`.
void check_heads(const std::string& model, double heads, int tp, const SourceLocation& location);
/// Throws CannotSplit if `wrong`.
void refuse(bool wrong, const SourceLocation& location, const std::string& message);
bool divides(int parts, double whole);

/// Throws ConfigError if groups of quantized weights do not divide the inputs of a matrix, or a GPU's share of them.
/// GGUF is exempt because it falls back to smaller blocks, NF4 because its blocks continue across rows.
void check_groups(const ModelSpec& model, const Precision& precision, const Sharding& sharding,
                  const SourceLocation& location);

}  // namespace roofcast
