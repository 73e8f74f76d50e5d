#pragma once
// How much of the memory set aside for a KV cache holds tokens.

namespace roofcast {

/// Tokens that a sequence holds on average over its life. It holds p + t after t outputs, and time passes with
/// outputs, so over many requests  E[o (p + o / 2)] / E[o] = p + o (1 + cv^2) / 2  with independent lengths;
/// cv is the coefficient of variation of the outputs.
constexpr double mean_tokens_held(double prompt_tokens, double output_tokens, double output_cv = 0) {
  return prompt_tokens + output_tokens * (1 + output_cv * output_cv) / 2;
}

/// Share of a contiguous allocation that holds tokens: every sequence reserves the longest one the engine allows.
constexpr double contiguous_usage(double tokens_held, double max_model_len) { return tokens_held / max_model_len; }

/// Share of paged blocks that holds tokens: the last block of a sequence is (block - 1) / 2 tokens short on average.
/// Block size 1 wastes nothing.
constexpr double paged_usage(double tokens_held, double block_size) {
  return tokens_held / (tokens_held + (block_size - 1) / 2);
}

}  // namespace roofcast
