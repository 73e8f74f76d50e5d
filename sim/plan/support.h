#pragma once
// Support tables: which engine release runs which GPU, format, model, feature and parallelism (configs/support/*.yaml).

#include <string>
#include <vector>

#include "sim/plan/scenario.h"

namespace roofcast {

/// Thrown for what cannot run; a plan distinguishes it from a mistake in its file.
class CannotRun : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

/// One rule of a table. Its `when` is a Condition (sim/plan/rules.h), plus: method (of speculation), activations,
/// preemption: names; cut_blocks (sim/model/cut_blocks.h): experts, others; tp, pp, dcp, ep, attention_copies,
/// tree_width: [least, most]; not_model: excluded names; adapters, expert_adapters, media, beams, encoder,
/// encoder_decoder, sparse, prefix_caching: true or false.
struct SupportRule {
  bool runs = false;  ///< true: it is not known to run; false: it does not run
  std::string reason, source;
};

/// Defaults of an engine that are not settings (`traits` of its table).
struct EngineTraits {
  bool splits_by_layers = false;          ///< several GPUs split by layers: a plan searches pp, not tp
  bool chunks_when_told = false;          ///< prompts are not chunked unless the launch asks for it
  bool static_batch_in_one_pass = false;  ///< all prompts of a static batch are one prefill step
};
/// All false for an engine without a table. Throws ConfigError for an unknown trait.
EngineTraits engine_traits(const std::string& engine);

/// Every rule that applies, those of the scenario's engine and of all engines.
std::vector<SupportRule> support_rules(const Scenario& scenario);

/// Notes where a role's engine release is older than the model (published on the given date, yyyy-mm-dd; empty:
/// unknown) and the table names no release that supports the model.
std::vector<std::string> older_than_model(const Scenario& scenario, const std::string& published);

/// Throws CannotRun at `location` with reason and source if the scenario cannot run, unless `forced`. Returns what is
/// not known to run, and what was forced.
std::vector<std::string> check_support(const Scenario& scenario, bool forced, const SourceLocation& location);

}  // namespace roofcast
