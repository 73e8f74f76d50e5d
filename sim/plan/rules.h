#pragma once
// Conditions of rules in recipes and clients: facts that are known of a deployment before its engine is.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_node.h"
#include "hw/gpu_spec.h"
#include "sim/model/precision.h"
#include "sim/model/sharding.h"

namespace roofcast {

struct ModelSpec;

struct Deployment;

/// Facts that a rule may use. Null pointers, empty strings and zeros mean unknown: a rule that uses an unknown fact
/// does not apply.
struct DeploymentFacts {
  std::string engine, version;  ///< a name in configs/engines, and a release
  std::string client_date;      ///< day of the client's version, yyyy-mm-dd; empty: the newest
  const GpuSpec* gpu = nullptr;
  const ModelSpec* model = nullptr;
  const Sharding* sharding = nullptr;
  const Precision* precision = nullptr;
  bool disaggregated = false;
  double prompt_tokens = 0, output_tokens = 0;  ///< of the longest request
  double concurrency = 0;                       ///< requests in flight of a closed loop
};

/// Facts of a deployment's engine, GPU, model, sharding and formats; the deployment must outlive them.
DeploymentFacts facts_of(const Deployment& deployment);

/// Whether a name matches a pattern, in which `*` stands for any text.
bool matches(std::string_view pattern, std::string_view text);

/// Whether any layer has routed experts.
bool has_experts(const ModelSpec& model);
/// Whether it has latent attention with an indexer.
bool has_indexed_latents(const ModelSpec& model);

/// A condition {engine, since, until, gpu, architecture, model, family, model_type, weights, kv_cache: a name or a list
/// of names, `*` stands for any text; experts, indexed, attention_dp, disaggregated: true or false; client_since,
/// client_until: a date; prompt_tokens, output_tokens, ep: [least, most]}. `since` and `until` are engine releases, the
/// latter exclusive.
class Condition {
 public:
  explicit Condition(const ConfigTree& when);  ///< null always holds; throws ConfigError for unknown keys

  bool holds(const DeploymentFacts& facts) const;  ///< whether all parts hold

 private:
  using Names = std::optional<std::vector<std::string>>;  ///< absent: any
  struct Amounts {
    double least, most;
  };
  Names engine_, gpu_, architecture_, model_, family_, model_type_, weights_, kv_cache_;
  std::string since_, until_, client_since_, client_until_;
  std::optional<bool> experts_, indexed_, attention_dp_, disaggregated_;
  std::optional<Amounts> prompt_tokens_, output_tokens_, ep_;
};

/// Whether a condition depends on the date of the client.
bool asks_for_day(const ConfigTree& when);

/// The same, parsed for one evaluation.
bool holds(const ConfigTree& when, const DeploymentFacts& facts);

/// Evaluates a sum of numbers, `prompt_tokens`, `output_tokens`, `concurrency`, `max_num_seqs` and `max(a, b)`, such as
/// "max_num_seqs + prompt_tokens + 1500". `known` is false if a quantity in it is unknown.
struct Amount {
  double value = 0;
  bool known = true;
};
Amount evaluate_amount(const ConfigNode& text, const DeploymentFacts& facts, double max_num_seqs);

}  // namespace roofcast
