#pragma once
// The question that a result answers, stored with it: a page with the engine can repeat it with changes.

#include <nlohmann/json.hpp>

#include "base/config_node.h"
#include "sim/plan/estimate.h"

namespace roofcast::reports {

/// {fidelity, document}: the document as JSON, which reads back as the same tree; a quantity is its text, "6 /s".
nlohmann::ordered_json question_json(const ConfigTree& document, Fidelity fidelity);
/// The same with batch, prompt_tokens, output_tokens and, if given, context.
nlohmann::ordered_json question_json(const ConfigTree& document, Fidelity fidelity, const EstimateRequest& request);

}  // namespace roofcast::reports
