#pragma once
#include <string>

#include "base/error.h"

namespace roofcast {

struct ModelSpec;
struct Precision;

/// How one replica is spread over GPUs: tp x pp x attention_dp of them.
struct Sharding {
  int tp = 1;            ///< tensor parallel, of the attention (and of everything when attention_dp is 1)
  int pp = 1;            ///< pipeline stages
  int dcp = 1;           ///< decode context parallel: of the tp GPUs so many share a sequence's cache token by token
  int attention_dp = 1;  ///< copies of the attention, each with its own sequences, over one set of experts
  int ep = 1;            ///< expert parallel; experts' tensor parallel is tp * attention_dp / ep
  int redundant_experts = 0;  ///< copies of experts beside the first of each, over all ep ranks

  int gpus() const { return tp * pp * attention_dp; }
  int expert_copies() const { return ep > 1 ? redundant_experts : 0; }
  int expert_tp() const { return tp * attention_dp / ep; }
};

/// Where each number of a Sharding was written.
struct ShardingMarks {
  Mark tp, pp, dcp, attention_dp, ep;
  ShardingMarks(const Mark& all = {}) : tp(all), pp(all), dcp(all), attention_dp(all), ep(all) {}  ///< all in one place
};

/// Thrown for a model that so many GPUs cannot share; a plan tells it from a mistake in its file.
class CannotSplit : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

/// Refuses what cannot be split (heads by tp, copies of a cache by dcp, experts and their copies by ep, layers by pp),
/// at the mark of what splits it.
void check_sharding(const ModelSpec& model, const Sharding& sharding, const ShardingMarks& marks);

/// The same of `heads` of a model of that name.
void check_heads(const std::string& model, double heads, int tp, const Mark& mark);
/// Throws CannotSplit if `wrong`.
void refuse(bool wrong, const Mark& mark, const std::string& message);
bool divides(int parts, double whole);

/// Refuses groups of quantized weights into which the inputs of a matrix, or a GPU's share of them, do not divide.
/// GGUF is exempt, which falls back to smaller blocks, and NF4, whose blocks run on over rows.
void check_groups(const ModelSpec& model, const Precision& precision, const Sharding& sharding, const Mark& mark);

}  // namespace roofcast
