#pragma once
// What a result answers, kept beside it: a page that carries the engine asks it again with something changed.

#include <nlohmann/json.hpp>

#include "base/config_node.h"
#include "sim/plan/estimate.h"

namespace roofcast::reports {

/// {fidelity, document}: the document as JSON, which reads back as the same tree; a quantity is its text, "6 /s".
nlohmann::ordered_json question_json(const ConfigTree& document, Fidelity fidelity);
/// The same with batch, prompt_tokens, output_tokens and, where it was given, context.
nlohmann::ordered_json question_json(const ConfigTree& document, Fidelity fidelity, const EstimateRequest& request);

}  // namespace roofcast::reports
