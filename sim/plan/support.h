#pragma once
// What runs where: engine, release, GPU, format, model, feature and parallelism (configs/support/*.yaml).

#include <string>
#include <vector>

#include "sim/plan/scenario.h"

namespace roofcast {

/// Thrown for what cannot run; a plan tells it from a mistake in its file.
class CannotRun : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

/// One rule of a table. Its `when` is a Condition (sim/plan/rules.h), and: method (of speculation), activations,
/// preemption: names; cut_blocks (sim/model/cut_blocks.h): experts, others; tp, pp, dcp, ep, attention_copies,
/// tree_width: [least, most]; not_model: none of these names; adapters, expert_adapters, media, beams, encoder,
/// encoder_decoder, sparse, prefix_caching: true or false.
struct SupportRule {
  bool runs = false;  ///< false: it does not; otherwise it is not known to
  std::string reason, source;
};

/// Defaults of an engine that its settings do not express (`traits` of its table).
struct EngineTraits {
  bool splits_by_layers = false;          ///< several GPUs hold layers one after another: a plan searches pp, not tp
  bool chunks_when_told = false;          ///< a prompt runs whole unless the launch asks for chunks
  bool static_batch_in_one_pass = false;  ///< all prompts of a static batch are one prefill step
};
/// All false for an engine without a table. Throws ConfigError for an unknown trait.
EngineTraits engine_traits(const std::string& engine);

/// Every rule that applies, those of the scenario's engine and of all engines.
std::vector<SupportRule> support_rules(const Scenario& scenario);

/// A line where a role's engine is a release older than the model, whose day of publication (yyyy-mm-dd; empty: not
/// known) its file says, and the table names no release with which the model came.
std::vector<std::string> older_than_model(const Scenario& scenario, const std::string& published);

/// Throws CannotRun at `mark` where the scenario cannot run, with the reason and its source, unless `forced`.
/// Returns what is not known to run, and what was forced.
std::vector<std::string> check_support(const Scenario& scenario, bool forced, const Mark& mark);

}  // namespace roofcast
