#pragma once
// Requests sent as documents: the output of `roofcast estimate`, `plan`, `simulate` and `compare` for a text.

#include <string>
#include <string_view>

namespace roofcast::explore {

/// `body`: a JSON object of texts,
///   document  YAML of a plan (plan) or of a scenario (the others); required
///   trace     a trace of arrivals and lengths, in place of the document's workload
///   config    a config.json of Hugging Face, in place of the document's model
///   bench     of compare: the JSON of `vllm bench serve`, SGLang's bench_serving or AIPerf; required there
///   fidelity  calibrated | ideal
///   batch, prompt_tokens, output_tokens, context: of estimate
/// The answer equals the command's JSON byte for byte, except for the names of the texts. Documents may only name what
/// ships with the program, not files. Throws ConfigError with line and column of the text.
std::string estimate_document(std::string_view body);
std::string plan_document(std::string_view body);
std::string simulate_document(std::string_view body);
std::string compare_document(std::string_view body);

}  // namespace roofcast::explore
