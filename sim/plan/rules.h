#pragma once
// Conditions of the rules in recipes and clients: what is known of a deployment before its engine is.

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

/// The facts that a rule may ask about. Null pointers, empty texts and zeros are unknown: a rule that asks about them
/// is not in force.
struct DeploymentFacts {
  std::string engine, version;  ///< a name of configs/engines and one of its releases
  std::string client_date;      ///< day of the client's version, yyyy-mm-dd; empty: the newest
  const GpuSpec* gpu = nullptr;
  const ModelSpec* model = nullptr;
  const Sharding* sharding = nullptr;
  const Precision* precision = nullptr;
  bool disaggregated = false;
  double prompt_tokens = 0, output_tokens = 0;  ///< of the longest request
  double concurrency = 0;                       ///< requests in flight of a closed loop
};

/// Those of its engine, GPU, model, parts and formats; the deployment must outlive them.
DeploymentFacts facts_of(const Deployment& deployment);

/// Whether a name fits a pattern, in which `*` stands for any text.
bool matches(std::string_view pattern, std::string_view text);

/// Routed experts in any layer.
bool has_experts(const ModelSpec& model);
/// Latent attention to tokens that an indexer chooses.
bool has_indexed_latents(const ModelSpec& model);

/// {engine, since, until, gpu, architecture, model, family, model_type, weights, kv_cache: a name or a list of names,
/// `*` stands for any text; experts, indexed, attention_dp, disaggregated: true or false; client_since, client_until: a
/// day; prompt_tokens, output_tokens: [least, most]}. `since` and `until` are releases of the engine, the latter
/// excluded.
class Condition {
 public:
  explicit Condition(const ConfigTree& when);  ///< null holds always; throws ConfigError for other keys

  bool holds(const DeploymentFacts& facts) const;  ///< all of them

 private:
  using Names = std::optional<std::vector<std::string>>;  ///< absent: any
  struct Amounts {
    double least, most;
  };
  Names engine_, gpu_, architecture_, model_, family_, model_type_, weights_, kv_cache_;
  std::string since_, until_, client_since_, client_until_;
  std::optional<bool> experts_, indexed_, attention_dp_, disaggregated_;
  std::optional<Amounts> prompt_tokens_, output_tokens_;
};

/// Whether a condition asks for the client's day.
bool asks_for_day(const ConfigTree& when);

/// The same, read for one answer.
bool holds(const ConfigTree& when, const DeploymentFacts& facts);

/// A sum of numbers, `prompt_tokens`, `output_tokens`, `concurrency`, `max_num_seqs` and `max(a, b)`, as in
/// "max_num_seqs + prompt_tokens + 1500". `known` is false where a quantity in it is not known.
struct Amount {
  double value = 0;
  bool known = true;
};
Amount evaluate_amount(const ConfigNode& text, const DeploymentFacts& facts, double max_num_seqs);

}  // namespace roofcast
