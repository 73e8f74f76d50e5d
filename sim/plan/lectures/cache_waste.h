#pragma once
// How much of the memory allocated for a KV cache holds tokens.

namespace roofcast {

/// Mean tokens that a sequence holds over its life. It holds p + t after t outputs, and outputs are evenly spaced in
/// time, so over many requests  E[o (p + o / 2)] / E[o] = p + o (1 + cv^2) / 2  for independent lengths; cv is the
/// coefficient of variation of the outputs.
constexpr double mean_tokens_held(double prompt_tokens, double output_tokens, double output_cv = 0) {
  return prompt_tokens + output_tokens * (1 + output_cv * output_cv) / 2;
}

/// Fraction of a contiguous allocation that holds tokens: every sequence reserves max_model_len tokens.
constexpr double contiguous_usage(double tokens_held, double max_model_len) { return tokens_held / max_model_len; }

/// Fraction of paged blocks that holds tokens: the last block of a sequence lacks (block - 1) / 2 tokens on average.
constexpr double paged_usage(double tokens_held, double block_size) {
  return tokens_held / (tokens_held + (block_size - 1) / 2);
}

}  // namespace roofcast
