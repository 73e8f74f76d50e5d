#include "reports/question.h"

#include <cmath>

#include "base/number_text.h"
#include "reports/html_text.h"

namespace roofcast::reports {
namespace {

using Json = nlohmann::ordered_json;

/// Numbers and booleans as such unless quoted; everything else as text.
Json scalar_json(const ConfigNode& node) {
  if (!node.quoted) {
    double number = 0;
    std::int64_t whole = 0;
    if (parse_integer(node.scalar, whole) == NumberFault::kNone) return whole;
    if (parse_number(node.scalar, number) == NumberFault::kNone) return number;
    if (node.scalar == "true" || node.scalar == "false") return node.scalar == "true";
  }
  return clean_utf8(node.scalar);
}

Json tree_json(const ConfigNode& node) {
  switch (node.kind) {
    case ConfigNode::Kind::kNull:
      return nullptr;
    case ConfigNode::Kind::kScalar:
      return scalar_json(node);
    case ConfigNode::Kind::kList: {
      Json out = Json::array();
      for (const ConfigTree& item : node.items) out.push_back(tree_json(*item));
      return out;
    }
    case ConfigNode::Kind::kMap:
      break;
  }
  Json out = Json::object();
  for (const ConfigNode::Entry& entry : node.entries) out[clean_utf8(entry.key)] = tree_json(*entry.value);
  return out;
}

}  // namespace

Json question_json(const ConfigTree& document, Fidelity fidelity) {
  return {{"fidelity", fidelity == Fidelity::kIdeal ? "ideal" : "calibrated"}, {"document", tree_json(*document)}};
}

Json question_json(const ConfigTree& document, Fidelity fidelity, const EstimateRequest& request) {
  Json out = question_json(document, fidelity);
  out["batch"] = request.batch;
  out["prompt_tokens"] = request.prompt_tokens;
  out["output_tokens"] = request.output_tokens;
  if (request.context) out["context"] = *request.context;
  return out;
}

}  // namespace roofcast::reports
